"""Storage: claims that are bound, claims that choose their volume by the node, limits, disks that two cannot share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from random import Random
from typing import Any

from tests.differential.worlds import HOST, NAMESPACES, ZONE, Feature, World

Json = dict[str, Any]
_CLASSES = ("made", "made-elsewhere", "local", "now")
_DRIVERS = ("a.csi.example", "b.csi.example")
_ODD = ("classless", "unknown", "now", "named", "nowhere", "gone", "lost")
_SIZES = ("1Gi", "2Gi", "5Gi")


def _classes(rng: Random, world: World) -> None:
    """Once a world, whichever features of storage it has."""
    if any(one["kind"] == "StorageClass" for one in world.others):
        return
    for name in _CLASSES:
        made: Json = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": "kubernetes.io/no-provisioner" if name == "local" else _DRIVERS[0],
            "volumeBindingMode": "Immediate" if name == "now" else "WaitForFirstConsumer",
        }
        if name == "made-elsewhere":
            zones = rng.sample(["zone-0", "zone-1", "zone-2"], 2)
            made["allowedTopologies"] = [
                {"matchLabelExpressions": [{"key": ZONE, "values": zones}]}
            ]
        world.others.append(made)


def _volume(rng: Random, world: World, name: str, storage_class: str) -> Json:
    host = rng.choice(world.nodes)["metadata"]["labels"].get(HOST, "nowhere")
    here = rng.choice([
        {"key": HOST, "operator": "In", "values": [host]},
        {"key": ZONE, "operator": "In", "values": ["zone-0", "zone-1"]},
        {"key": "rack", "operator": "NotIn", "values": ["rack-0"]},
    ])  # fmt: skip
    spec: Json = {
        "capacity": {"storage": rng.choice(_SIZES)},
        "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
        "storageClassName": storage_class,
        "persistentVolumeReclaimPolicy": "Retain",
        "csi": {"driver": rng.choice(_DRIVERS), "volumeHandle": rng.choice([name, name, "shared"])},
    }
    labels = {}
    if storage_class == "local" or rng.random() < 0.4:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
    elif rng.random() < 0.6:
        labels = {ZONE: rng.choice(["zone-0", "zone-1", "zone-0__zone-2"])}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"phase": "Available"},
    }


def new_claim(rng: Random, space: str, name: str, storage_class: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": space},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": rng.choice(_SIZES)}},
        },
        "status": {"phase": "Pending"},
    }


def use(pod: Json, volume: Json) -> None:
    volumes = pod["spec"].setdefault("volumes", [])
    volumes.append({"name": f"v{len(volumes)}"} | volume)


def use_claim(pod: Json, name: str) -> None:
    """Once: of a claim that waits and is named twice kube-scheduler makes two, see docs/limits.md."""
    source = {"persistentVolumeClaim": {"claimName": name}}
    if not any(source.items() <= one.items() for one in pod["spec"].get("volumes", ())):
        use(pod, source)


def _bound_world(rng: Random, world: World) -> None:
    """Of each namespace some claims that have their volumes; running pods use some of them."""
    _classes(rng, world)
    for space in NAMESPACES:
        for i in range(4):
            name = f"bound-{i}"
            volume = _volume(rng, world, f"{space}-{name}", "made")
            claim = new_claim(rng, space, name, "made")
            if i == 0:
                volume["spec"]["accessModes"] = claim["spec"]["accessModes"] = ["ReadWriteOncePod"]
            claim["spec"]["volumeName"] = volume["metadata"]["name"]
            claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
            claim["status"] = {"phase": "Bound"}
            reference = {"kind": "PersistentVolumeClaim", "namespace": space, "name": name}
            volume["spec"]["claimRef"] = {"apiVersion": "v1"} | reference
            volume["status"] = {"phase": "Bound"}
            world.others += [volume, claim]
    # A claim for one pod has one: of more kube-scheduler takes each for the only one when it looks for victims.
    alone: set[str] = set()
    for pod in world.pods:
        if rng.random() < 0.4:
            space = pod["metadata"]["namespace"]
            _use_bound(rng, pod, range(1 if space in alone else 0, 4))
            alone.add(space)


def _bound(rng: Random, _world: World, pod: Json) -> None:
    _use_bound(rng, pod, range(4))


def _use_bound(rng: Random, pod: Json, among: Sequence[int]) -> None:
    for i in rng.sample(among, rng.choice([1, 1, 2])):
        use_claim(pod, f"bound-{i}")


def _waiting_world(rng: Random, world: World) -> None:
    """Claims that wait for a pod, volumes that are free, and how much there is to make more of them."""
    _classes(rng, world)
    spaces = rng.sample([*NAMESPACES], len(NAMESPACES))
    for i in range(rng.randint(2, 6)):
        free = _volume(rng, world, f"free-{i}", rng.choice(["local", "local", "made"]))
        if spaces and rng.random() < 0.15:
            # Of two for one claim kube-scheduler takes any.
            meant = {"namespace": spaces.pop(), "name": f"waiting-{rng.randrange(5)}"}
            free["spec"]["claimRef"] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"} | meant
        world.others.append(free)
    for space in NAMESPACES:
        for i, storage_class in enumerate((*_CLASSES, "local")):
            waits = new_claim(rng, space, f"waiting-{i}", storage_class)
            if rng.random() < 0.1:
                node = rng.choice(world.nodes)["metadata"]["name"]
                waits["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": node}
            world.others.append(waits)
    world.others.append(new_driver(_DRIVERS[0], storageCapacity=rng.random() < 0.7))
    # Of two for one class on one node kube-scheduler takes any.
    places = list(product(["made", "made-elsewhere"], ["zone-0", "zone-1", "zone-2"]))
    for storage_class, zone in rng.sample(places, rng.randint(2, 6)):
        room = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIStorageCapacity",
            "metadata": {"name": f"{storage_class}-{zone}", "namespace": "blue"},
            "storageClassName": storage_class,
            "nodeTopology": {"matchLabels": {ZONE: zone}},
            "capacity": rng.choice(["1Gi", "4Gi", "20Gi"]),
        }
        if rng.random() < 0.3:
            room["maximumVolumeSize"] = rng.choice(["1Gi", "3Gi"])
        world.others.append(room)


def _waiting(rng: Random, _world: World, pod: Json) -> None:
    """Also one that nobody made, and one that does not wait."""
    for i in rng.sample([0, 0, 1, 2, 2, 3, 4, 9], rng.choice([1, 1, 2])):
        use_claim(pod, f"waiting-{i}")


def _odd_world(rng: Random, world: World) -> None:
    """Claims that something is wrong with: no two rules about volumes say the same of them."""
    _classes(rng, world)
    for space in NAMESPACES:
        volume = _volume(rng, world, f"{space}-odd", "made")
        meant = {"namespace": space, "name": "odd-named"}
        volume["spec"]["claimRef"] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"} | meant
        odd = {name: new_claim(rng, space, f"odd-{name}", "made") for name in _ODD}
        odd["classless"]["spec"]["storageClassName"] = ""
        odd["unknown"]["spec"]["storageClassName"] = "unknown"
        odd["now"]["spec"]["storageClassName"] = "now"
        odd["named"]["spec"]["volumeName"] = volume["metadata"]["name"]
        if rng.random() < 0.5:
            odd["named"]["spec"]["accessModes"] = ["ReadWriteOncePod"]
        odd["nowhere"]["spec"]["volumeName"] = odd["lost"]["spec"]["volumeName"] = "nowhere"
        odd["gone"]["spec"]["volumeName"] = "gone"
        odd["gone"]["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        odd["lost"]["status"] = {"phase": "Lost"}
        world.others += [volume, *odd.values()]
    for pod in world.pods:
        if rng.random() < 0.15:
            use_claim(pod, "odd-named")


def _odd(rng: Random, world: World, pod: Json) -> None:
    """Also one that is not there, and one that has the name of the pod's own but was made by somebody else."""
    for name in rng.sample([*_ODD, "named", "absent", "own"], rng.choice([1, 1, 2])):
        if name == "own":
            meta, n = pod["metadata"], len(pod["spec"].get("volumes", ()))
            foreign = new_claim(rng, meta["namespace"], f"{meta['name']}-v{n}", "made")
            world.others.append(foreign)
            use(pod, {"ephemeral": {"volumeClaimTemplate": {"spec": foreign["spec"]}}})
        else:
            use_claim(pod, f"odd-{name}")


def new_driver(name: str, **spec: Any) -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": name},
        "spec": spec,
    }


def csi_node(rng: Random, world: World, node: str, names: Sequence[str]) -> Json:
    """The CSINode of a node, with some of these drivers and what they can attach there."""
    for one in world.others:
        if one["kind"] == "CSINode" and one["metadata"]["name"] == node:
            found = one
            break
    else:
        found = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": node},
            "spec": {"drivers": []},
        }
        world.others.append(found)
    found["spec"]["drivers"] += [
        {"name": name, "nodeID": node, "allocatable": {"count": rng.randint(0, 2)}}
        for name in names
        if rng.random() < 0.8
    ]
    return found


def _limits_world(rng: Random, world: World) -> None:
    """What a node can attach; without a CSINode nothing is known of it. The volumes are those of bound claims."""
    if not any(one["kind"] == "PersistentVolume" for one in world.others):
        _bound_world(rng, world)
    for node in world.nodes:
        if rng.random() < 0.85:
            csi_node(rng, world, node["metadata"]["name"], _DRIVERS)
    world.others.append(new_driver(_DRIVERS[1], preventPodSchedulingIfMissing=rng.random() < 0.5))
    volumes = [one["metadata"]["name"] for one in world.others if one["kind"] == "PersistentVolume"]
    for i in range(3):
        world.others.append({
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": {"name": f"attached-{i}"},
            "spec": {
                "attacher": rng.choice(_DRIVERS),
                "nodeName": rng.choice(world.nodes)["metadata"]["name"],
                "source": {"persistentVolumeName": rng.choice(volumes)},
            },
        })  # fmt: skip


def _limits(rng: Random, world: World, pod: Json) -> None:
    if not pod["spec"].get("volumes"):
        _bound(rng, world, pod)


def _disks(rng: Random, _world: World, pod: Json) -> None:
    """Disks that pods name themselves: two writers of one disk cannot be on one node."""
    disk, is_read_only = rng.choice(["d0", "d1"]), rng.random() < 0.4
    iscsi = {"targetPortal": "10.0.0.1:3260", "iqn": f"iqn.2026-01.example:{disk}", "lun": 0}
    rbd = {"monitors": [f"{disk}:1", "m:1"], "image": "i", "pool": "p"}
    use(pod, rng.choice([
        {"gcePersistentDisk": {"pdName": disk, "readOnly": is_read_only}},
        {"iscsi": iscsi | {"readOnly": is_read_only}},
        {"rbd": rbd | {"readOnly": is_read_only}},
    ]))  # fmt: skip


def _disks_world(rng: Random, world: World) -> None:
    for pod in world.pods:
        if rng.random() < 0.5:
            _disks(rng, world, pod)


FEATURES = (
    Feature(name="bound claims", world=_bound_world, pod=_bound),
    Feature(name="waiting claims", world=_waiting_world, pod=_waiting),
    Feature(name="volume limits", world=_limits_world, pod=_limits),
    Feature(name="odd claims", world=_odd_world, pod=_odd),
    Feature(name="shared disks", world=_disks_world, pod=_disks),
)
