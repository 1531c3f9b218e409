"""Rules about storage, one node and one claim at a time, from raw objects: kube-scheduler's own steps in plain words.

Where kube-scheduler may take any of several that are as good, this takes the first by name.
"""

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


def refusal(world: World, pod: Json) -> str:
    """Why the pod goes nowhere, whatever nodes there are; empty when that hangs on nodes."""
    namespace = pod["metadata"]["namespace"]
    claims = [(name, is_own, world.claim(namespace, name)) for name, is_own in claims_of(pod)]
    told = [
        *(
            f'persistentvolumeclaim "{name}" not found'
            for name, is_own, claim in claims
            if claim is None and not is_own
        ),
        *(_problem(pod, name, claim, is_own=is_own) for name, is_own, claim in claims),
        *(
            "pod has unbound immediate PersistentVolumeClaims"
            for _, _, claim in claims
            if claim and not is_bound(claim) and (volume_of(claim) or not waits(world, claim))
        ),
        *(
            f'persistentvolume "{volume_of(claim)}" not found'
            for _, is_own, claim in claims
            if claim and not is_own and volume_of(claim)
            and volume_of(claim) not in world.of("PersistentVolume")
        ),
    ]  # fmt: skip
    return next(filter(None, told), "")


def _problem(pod: Json, name: str, claim: Json | None, *, is_own: bool) -> str:
    if claim is None:
        return (
            f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        )
    if claim.get("status", {}).get("phase") == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume_of(claim)}"'
    if claim["metadata"].get("deletionTimestamp"):
        return f'persistentvolumeclaim "{name}" is being deleted'
    meta = pod["metadata"]
    owners = [one["uid"] for one in claim["metadata"].get("ownerReferences", ())]
    if is_own and meta["uid"] not in owners:
        where = meta["namespace"]
        return (
            f"PVC {where}/{name} was not created for pod {where}/{meta['name']} (pod is not owner)"
        )
    return ""


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
        volume = volume_of(world.claim(pod["metadata"]["namespace"], name))
        if is_own or not volume:
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
