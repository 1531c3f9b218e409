"""Rules about storage, one node and one claim at a time, from raw objects: kube-scheduler's own steps in plain words.

Where kube-scheduler may take any of several that are as good, this takes the first by name.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
SELECTED, BOUND = "volume.kubernetes.io/selected-node", "pv.kubernetes.io/bind-completed"
DISK = "node(s) had no available disk"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)
FULL = "node(s) exceed max volume count"
AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
NO_MATCH = "node(s) didn't find available persistent volumes to bind"
NO_ROOM = "node(s) did not have enough free storage"
MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
ZONE = "node(s) had no available volume zone"
ZONES = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
GI = 1 << 30


@dataclass
class World:
    """All there is: nodes, pods on them, and storage objects by kind."""

    nodes: list[Json] = field(default_factory=list)
    pods: list[Json] = field(default_factory=list)
    storage: list[Json] = field(default_factory=list)

    def of(self, kind: str) -> dict[str, Json]:
        found = [one for one in self.storage if one["kind"] == kind]
        return {one["metadata"]["name"]: one for one in sorted(found, key=_name)}

    def claim(self, namespace: str, name: str) -> Json | None:
        for one in self.storage:
            meta = one["metadata"]
            if one["kind"] == "PersistentVolumeClaim" and (
                meta["namespace"],
                meta["name"],
            ) == (namespace, name):
                return one
        return None


def refusal(world: World, pod: Json, off: Collection[str] = ()) -> str:
    """Why the pod goes nowhere, whatever nodes there are; empty when that hangs on nodes. ``off`` are not asked."""
    before_nodes = {
        "VolumeRestrictions": _before_restrictions,
        "VolumeBinding": _before_binding,
        "VolumeZone": _before_zone,
    }
    told = [
        text for rule, says in before_nodes.items() if rule not in off for text in says(world, pod)
    ]
    return next(filter(None, told), "")


def _before_restrictions(world: World, pod: Json) -> list[str]:
    return [
        f'persistentvolumeclaim "{name}" not found'
        for name, is_own, claim in _named(world, pod)
        if claim is None and not is_own
    ]


def _before_binding(world: World, pod: Json) -> list[str]:
    claims = _named(world, pod)
    told = [_problem(pod, name, claim, is_own=is_own) for name, is_own, claim in claims]
    for _, _, claim in claims:
        if claim and not is_bound(claim) and (volume_of(claim) or not waits(world, claim)):
            told.append("pod has unbound immediate PersistentVolumeClaims")
    return told


def _before_zone(world: World, pod: Json) -> list[str]:
    told = []
    for name, is_own, claim in _named(world, pod):
        if is_own:
            continue
        if claim is None:
            told.append(f'persistentvolumeclaim "{name}" not found')
        elif volume_of(claim):
            if volume_of(claim) not in world.of("PersistentVolume"):
                told.append(f'persistentvolume "{volume_of(claim)}" not found')
        elif not class_of(claim):
            told.append("PersistentVolumeClaim had no pv name and storageClass name")
        elif class_of(claim) not in world.of("StorageClass"):
            told.append(f'storageclass.storage.k8s.io "{class_of(claim)}" not found')
        elif not world.of("StorageClass")[class_of(claim)].get("volumeBindingMode"):
            told.append(f'VolumeBindingMode not set for StorageClass "{class_of(claim)}"')
        elif not waits(world, claim):
            told.append("PersistentVolume had no name")
    return told


def _named(world: World, pod: Json) -> list[tuple[str, bool, Json | None]]:
    space = pod["metadata"]["namespace"]
    return [(name, is_own, world.claim(space, name)) for name, is_own in claims_of(pod)]


def _problem(pod: Json, name: str, claim: Json | None, *, is_own: bool) -> str:
    if claim is None and not is_own:
        return f'persistentvolumeclaim "{name}" not found'
    if claim is None:
        return (
            f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        )
    if claim.get("status", {}).get("phase") == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume_of(claim)}"'
    if claim["metadata"].get("deletionTimestamp"):
        return f'persistentvolumeclaim "{name}" is being deleted'
    return _of_others(pod, name, claim) if is_own else ""


def _of_others(pod: Json, name: str, claim: Json) -> str:
    meta = pod["metadata"]
    owners = [one["uid"] for one in claim["metadata"].get("ownerReferences", ())]
    if meta["uid"] in owners:
        return ""
    where = meta["namespace"]
    return f"PVC {where}/{name} was not created for pod {where}/{meta['name']} (pod is not owner)"


def uncounted(world: World, pod: Json) -> list[str]:
    """What NodeVolumeLimits says of every node where it cannot look a claim up."""
    for name, is_own, claim in _named(world, pod):
        if claim is None:
            where = f"{pod['metadata']['namespace']}/{name}"
            return [f'looking up PVC {where}: persistentvolumeclaim "{name}" not found']
        if is_own and (text := _of_others(pod, name, claim)):
            return [text]
    return []


def restrictions(world: World, pod: Json, node: Json) -> list[str]:
    here = [one for one in world.pods if one["spec"]["nodeName"] == node["metadata"]["name"]]
    for mine in pod["spec"].get("volumes", ()):
        for other in here:
            if any(_conflict(mine, theirs) for theirs in other["spec"].get("volumes", ())):
                return [DISK]
    namespace = pod["metadata"]["namespace"]
    there = {one["metadata"]["name"] for one in world.nodes}
    for name, is_own in claims_of(pod):
        claim = world.claim(namespace, name)
        if is_own or claim is None or "ReadWriteOncePod" not in claim["spec"]["accessModes"]:
            continue
        if any(
            other["spec"]["nodeName"] in there
            and other["metadata"]["namespace"] == namespace
            and (name, False) in claims_of(other)
            for other in world.pods
        ):
            return [IN_USE]
    return []


def _conflict(mine: Json, theirs: Json) -> bool:
    for kind, name in (("gcePersistentDisk", "pdName"), ("iscsi", "iqn")):
        if kind in mine and kind in theirs and mine[kind][name] == theirs[kind][name]:
            return not (mine[kind].get("readOnly") and theirs[kind].get("readOnly"))
    if "awsElasticBlockStore" in mine and "awsElasticBlockStore" in theirs:
        return bool(mine["awsElasticBlockStore"] == theirs["awsElasticBlockStore"])
    if "rbd" in mine and "rbd" in theirs:
        a, b = mine["rbd"], theirs["rbd"]
        same = (a.get("pool", "rbd"), a["image"]) == (b.get("pool", "rbd"), b["image"])
        read_only = a.get("readOnly") and b.get("readOnly")
        return same and bool(set(a["monitors"]) & set(b["monitors"])) and not read_only
    return False


def limits(world: World, pod: Json, node: Json) -> list[str]:
    if told := uncounted(world, pod):
        return told
    name = node["metadata"]["name"]
    drivers = world.of("CSINode").get(name)
    brought = handles(world, pod)
    installed = {one["name"] for one in drivers["spec"]["drivers"]} if drivers else set()
    for driver in sorted({driver for driver, _ in brought}):
        known = world.of("CSIDriver").get(driver)
        if known and known["spec"].get("preventPodSchedulingIfMissing") and driver not in installed:
            return [f"{driver} CSI driver is not installed on the node"]
    held = set()
    for other in world.pods:
        if other["spec"]["nodeName"] == name:
            held |= handles(world, other)
    attached = set()
    for one in world.of("VolumeAttachment").values():
        volume = world.of("PersistentVolume").get(
            one["spec"]["source"].get("persistentVolumeName", "")
        )
        if one["spec"]["nodeName"] == name and volume and "csi" in volume["spec"]:
            attached.add((one["spec"]["attacher"], volume["spec"]["csi"]["volumeHandle"]))
    for driver in drivers["spec"]["drivers"] if drivers else ():
        most = driver.get("allocatable", {}).get("count")
        new = [one for one in brought - held if one[0] == driver["name"]]
        used = [one for one in held | attached if one[0] == driver["name"]]
        if most is not None and new and len(used) + len(new) > most:
            return [FULL]
    return []


def handles(world: World, pod: Json) -> set[tuple[str, str]]:
    """The volumes of a pod as drivers know them."""
    found = set()
    namespace = pod["metadata"]["namespace"]
    for name, _ in claims_of(pod):
        claim = world.claim(namespace, name)
        if claim is None:
            continue
        volume = world.of("PersistentVolume").get(volume_of(claim))
        if volume is not None:
            if "csi" in volume["spec"]:
                found.add((volume["spec"]["csi"]["driver"], volume["spec"]["csi"]["volumeHandle"]))
            continue
        known = world.of("StorageClass").get(class_of(claim))
        if known is not None:
            found.add((known["provisioner"], f"(to be made for {namespace}/{name})"))
    return found


def zone(world: World, pod: Json, node: Json) -> list[str]:
    labels = node["metadata"].get("labels", {})
    if not any(key in labels for key in ZONES):
        return []
    for name, is_own in claims_of(pod):
        claim = world.claim(pod["metadata"]["namespace"], name)
        volume = "" if is_own else volume_of(claim)
        if not volume:
            continue
        of_volume = world.of("PersistentVolume")[volume]["metadata"].get("labels", {})
        for key, new in ZONES.items():
            if key not in of_volume:
                continue
            values = [part.strip() for part in of_volume[key].split("__")]
            if "" in values:
                continue
            if labels.get(key, labels.get(new)) not in values:
                return [ZONE]
    return []


def claims_of(pod: Json) -> list[tuple[str, bool]]:
    """The names of a pod's claims, and whether they are made for it."""
    found = []
    for volume in pod["spec"].get("volumes", ()):
        if "persistentVolumeClaim" in volume:
            found.append((volume["persistentVolumeClaim"]["claimName"], False))
        elif "ephemeral" in volume:
            found.append((f"{pod['metadata']['name']}-{volume['name']}", True))
    return found


def is_bound(claim: Any) -> bool:
    return bool(volume_of(claim)) and BOUND in claim["metadata"].get("annotations", {})


def volume_of(claim: Any) -> str:
    return str(claim["spec"].get("volumeName", ""))


def class_of(claim: Any) -> str:
    return str(claim["spec"].get("storageClassName", ""))


def waits(world: World, claim: Any) -> bool:
    known = world.of("StorageClass").get(class_of(claim))
    return known is not None and known.get("volumeBindingMode") == "WaitForFirstConsumer"


def size(claim: Any) -> int:
    return int(claim["spec"]["resources"]["requests"]["storage"])


def _name(one: Json) -> str:
    return str(one["metadata"]["name"])
