"""Volumes of code that was once part of Kubernetes, which drivers look after on nodes that say so."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.features import volumes
from tests.differential.worlds import NAMESPACES, ZONE, Feature, World

Json = dict[str, Any]
_OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
# Of the old provisioners the driver, and the label by which it knows zones.
_MOVED = {
    "kubernetes.io/gce-pd": ("pd.csi.storage.gke.io", "topology.gke.io/zone"),
    "kubernetes.io/aws-ebs": ("ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"),
    "kubernetes.io/azure-disk": ("disk.csi.azure.com", "topology.disk.csi.azure.com/zone"),
    "kubernetes.io/cinder": ("cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"),
}
_ZONES = ("zone-0", "zone-1", "zone-2")
_CLASSES = ("old-ebs", "old-disk")


def _source(rng: Random, name: str) -> Json:
    match rng.randrange(5):
        case 0:
            return {"gcePersistentDisk": {"pdName": name}}
        case 1:
            prefix = rng.choice(["", "aws://zone-0/", "aws:///"])
            return {"awsElasticBlockStore": {"volumeID": f"{prefix}vol-{name}"}}
        case 2:
            uri = f"/subscriptions/{name}"
            return {"azureDisk": {"diskName": name, "diskURI": uri, "kind": "Managed"}}
        case 3:
            return {"cinder": {"volumeID": name}}
        case _:
            return {"portworxVolume": {"volumeID": name}}


def _nodes(rng: Random, world: World) -> None:
    """Where drivers know zones by labels of their own, and which of the old provisioners they stand in for."""
    for node in world.nodes:
        labels = node["metadata"]["labels"]
        for _, key in _MOVED.values():
            if rng.random() < 0.7:
                labels[key] = labels.get(ZONE, rng.choice(_ZONES))
        if rng.random() < 0.3:
            labels[_OLD_ZONE] = rng.choice(_ZONES)
        if rng.random() < 0.9:
            names = [driver for driver, _ in _MOVED.values()]
            found = volumes.csi_node(rng, world, node["metadata"]["name"], names)
            moved = [plugin for plugin in _MOVED if rng.random() < 0.7]
            if moved:
                notes = {"storage.alpha.kubernetes.io/migrated-plugins": ",".join(moved)}
                found["metadata"]["annotations"] = notes


def _world(rng: Random, world: World) -> None:
    _nodes(rng, world)
    must_run = volumes.new_driver(
        "ebs.csi.aws.com", preventPodSchedulingIfMissing=rng.random() < 0.5
    )
    world.others.append(must_run)
    for name, plugin in zip(_CLASSES, ("kubernetes.io/aws-ebs", "kubernetes.io/azure-disk"), strict=True):  # fmt: skip
        world.others.append(_class(rng, name, plugin))
    for space in NAMESPACES:
        for i in range(4):
            world.others += _bound(rng, space, f"old-{i}")
        world.others += [volumes.new_claim(rng, space, f"wants-{one}", one) for one in _CLASSES]
    for pod in world.pods:
        if rng.random() < 0.5:
            _pod(rng, world, pod)


def _class(rng: Random, name: str, plugin: str) -> Json:
    found: Json = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": plugin,
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    if rng.random() < 0.5:
        key = rng.choice([ZONE, _MOVED[plugin][1]])
        here = {"key": key, "values": ["zone-0", "zone-1"]}
        found["allowedTopologies"] = [{"matchLabelExpressions": [here]}]
    return found


def _bound(rng: Random, space: str, name: str) -> tuple[Json, Json]:
    """A volume and its claim."""
    source = _source(rng, f"{space}-{name}")
    labels = {}
    if rng.random() < 0.5:
        zones = [*_ZONES]
        if "gcePersistentDisk" not in source:  # its handle would need zones of that cloud
            zones.append("zone-0__zone-2")
        labels[rng.choice([ZONE, _OLD_ZONE])] = rng.choice(zones)
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "old",
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": space, "name": name,
        },
    } | source  # fmt: skip
    if rng.random() < 0.5:
        zones = rng.sample(_ZONES, rng.choice([1, 2]))
        here = {"key": rng.choice([ZONE, _OLD_ZONE]), "operator": "In", "values": zones}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
    volume: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{space}-{name}", "labels": labels},
        "spec": spec,
        "status": {"phase": "Bound"},
    }
    claim = volumes.new_claim(rng, space, name, "old")
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    claim["spec"]["volumeName"] = volume["metadata"]["name"]
    claim["status"] = {"phase": "Bound"}
    return volume, claim


def _pod(rng: Random, _world: World, pod: Json) -> None:
    for _ in range(rng.choice([1, 1, 2])):
        if rng.random() < 0.3:
            volumes.use(pod, _source(rng, rng.choice(["inline-0", "inline-1"])))
            continue
        name = rng.choice([*(f"old-{i}" for i in range(4)), *(f"wants-{one}" for one in _CLASSES)])
        volumes.use_claim(pod, name)


FEATURES = (Feature(name="in-tree volumes", world=_world, pod=_pod),)
