"""Claims that are bound, and what others are given, on one node at a time, from raw objects: kube-scheduler's own steps.

Where kube-scheduler may take any of several that are as good, this takes the first by name.
"""

from collections.abc import Collection, Sequence
from typing import Any

from tests.oracles import kube_scores, selectors
from tests.oracles.volumes import (
    AFFINITY,
    MISSING,
    NO_MATCH,
    NO_ROOM,
    SELECTED,
    World,
    claims_of,
    class_of,
    is_bound,
    limits,
    restrictions,
    size,
    volume_of,
    zone,
)

Json = dict[str, Any]
Shape = Sequence[tuple[int, int]]
# Points of utilisation and score, as kube-scheduler has them if nothing else is said.
DEFAULT = ((0, 10), (100, 0))


def binding(world: World, pod: Json, node: Json) -> list[str]:
    return plan(world, pod, node)[0]


def plan(
    world: World, pod: Json, node: Json, shape: Shape = DEFAULT
) -> tuple[list[str], int, dict[str, str]]:
    """Why the claims cannot be used or bound on a node, else its score and the volume of each unbound claim."""
    namespace, labels = pod["metadata"]["namespace"], node["metadata"].get("labels", {})
    name = node["metadata"]["name"]
    volumes = world.of("PersistentVolume")
    claims = [(one, world.claim(namespace, one)) for one, _ in claims_of(pod)]
    found: list[str] = []
    missing = False
    for _, claim in claims:
        if not is_bound(claim):
            continue
        volume = volumes.get(volume_of(claim))
        if volume is None:
            missing = True
            break
        if not usable(volume, labels):
            found.append(AFFINITY)
            break
    unbound = {one: claim for one, claim in claims if not is_bound(claim)}
    bits, taken, given = _bind(world, unbound, name, labels)
    found += bits
    if missing:
        found.append(MISSING)
    return found, _score(taken, shape), given


def _bind(
    world: World, unbound: dict[str, Any], node: str, labels: Json
) -> tuple[list[str], dict[str, list[int]], dict[str, str]]:
    """Why not, else by class what is taken of how much, and what each claim is given."""
    selected = {
        one: claim["metadata"]["annotations"][SELECTED]
        for one, claim in unbound.items()
        if SELECTED in claim["metadata"].get("annotations", {})
    }
    if any(value != node for value in selected.values()):
        return [NO_MATCH], {}, {}
    volumes = world.of("PersistentVolume")
    given = dict.fromkeys(unbound, "")
    to_find = [one for one in unbound if one not in selected]
    bound: dict[str, list[int]] = {}
    for one in sorted(to_find, key=lambda one: size(unbound[one])):
        free = {n: v for n, v in volumes.items() if n not in given.values()}
        given[one] = match(unbound[one], free, labels)
        if found := given[one]:
            of_class = bound.setdefault(volumes[found]["spec"].get("storageClassName", ""), [0, 0])
            of_class[0] += size(unbound[one])
            of_class[1] += int(volumes[found]["spec"]["capacity"]["storage"])
    left = sorted((one for one in to_find if not given[one]), key=lambda one: size(unbound[one]))
    made: dict[str, list[int]] = {}
    for one in [*selected, *left]:
        why = _make(world, unbound[one], labels, made)
        if why:
            return [why], {}, {}
    return [], bound or made, given


def _make(world: World, claim: Any, labels: Json, made: dict[str, list[int]]) -> str:
    """Why no volume can be made for a claim; else what it takes of the room goes into ``made``."""
    known = world.of("StorageClass").get(class_of(claim))
    if known is None or known["provisioner"] in {"", "kubernetes.io/no-provisioner"}:
        return NO_MATCH
    if not _topologies(known, labels):
        return NO_MATCH
    driver = world.of("CSIDriver").get(known["provisioner"])
    if driver is None or not driver["spec"].get("storageCapacity"):
        return ""
    room = _room(world, claim, labels)
    if room is None:
        return NO_ROOM
    if "capacity" in room:
        of_class = made.setdefault(class_of(claim), [0, 0])
        of_class[0] += size(claim)
        of_class[1] = int(room["capacity"])
    return ""


def match(claim: Json, volumes: dict[str, Json], labels: Json) -> str:
    """The volume for a claim among these, empty for none."""
    spec, meta = claim["spec"], claim["metadata"]
    smallest = ""
    mine: list[str] = []
    for name, volume in volumes.items():
        theirs, reference = volume["spec"], volume["spec"].get("claimRef")
        is_mine = (
            reference is not None
            and (reference["namespace"], reference["name"]) == (meta["namespace"], meta["name"])
            and reference.get("uid", "") in {"", meta["uid"]}
        )
        if (
            theirs.get("storageClassName", "") != class_of(claim)
            or (reference is not None and not is_mine)
            or int(theirs["capacity"]["storage"]) < size(claim)
            or theirs.get("volumeMode", "Filesystem") != spec.get("volumeMode", "Filesystem")
            or volume["metadata"].get("deletionTimestamp")
        ):
            continue
        if is_mine:
            mine.append(name)
            continue
        if (
            volume["status"]["phase"] == "Available"
            and usable(volume, labels)
            and set(spec["accessModes"]) <= set(theirs["accessModes"])
            and (
                "selector" not in spec
                or selectors.matches(spec["selector"], volume["metadata"].get("labels", {}))
            )
            and (
                not smallest
                or int(theirs["capacity"]["storage"])
                < int(volumes[smallest]["spec"]["capacity"]["storage"])
            )
        ):
            smallest = name
    if mine:
        return mine[0] if usable(volumes[mine[0]], labels) else ""
    return smallest


def usable(volume: Json, labels: Json) -> bool:
    """Whether a node with these labels can use a volume."""
    affinity = volume["spec"].get("nodeAffinity")
    if affinity is None:
        return True
    terms = affinity["required"]["nodeSelectorTerms"]
    return any(_holds(term["matchExpressions"], labels) for term in terms)


def _topologies(known: Json, labels: Json) -> bool:
    terms = known.get("allowedTopologies")
    if not terms:
        return True
    return any(
        all(labels.get(one["key"]) in one["values"] for one in term["matchLabelExpressions"])
        for term in terms
    )


def _holds(expressions: list[Json], labels: Json) -> bool:
    return all(
        {
            "In": labels.get(one["key"]) in one.get("values", ()),
            "NotIn": labels.get(one["key"]) not in one.get("values", ()),
            "Exists": one["key"] in labels,
            "DoesNotExist": one["key"] not in labels,
        }[one["operator"]]
        for one in expressions
    )


def _room(world: World, claim: Json, labels: Json) -> Json | None:
    for one in world.of("CSIStorageCapacity").values():
        most = one.get("maximumVolumeSize", one.get("capacity"))
        if (
            one["storageClassName"] == class_of(claim)
            and most is not None
            and int(most) >= size(claim)
            and "nodeTopology" in one
            and selectors.matches(one["nodeTopology"], labels)
        ):
            return one
    return None


def _score(of_classes: dict[str, list[int]], shape: Shape) -> int:
    if not of_classes:
        return 0
    used = [100 if not most or asked > most else asked * 100 // most for asked, most in of_classes.values()]  # fmt: skip
    points = [kube_scores.on_shape(percent, shape) for percent in used]
    mean = sum(points) / len(points)
    return int(mean + 0.5)


def reasons(world: World, pod: Json, node: Json, off: Collection[str] = ()) -> list[str]:
    """Why the pod cannot go to a node, of the first rule that says so; ``off`` are not asked."""
    rules = {
        "VolumeRestrictions": restrictions,
        "NodeVolumeLimits": limits,
        "VolumeBinding": binding,
        "VolumeZone": zone,
    }
    for name, rule in rules.items():
        if name not in off and (found := rule(world, pod, node)):
            return found
    return []
