"""What is near a name that is not there: the same name elsewhere, what begins with it, what made or is called so."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from scheduler.api import wire
from scheduler.errors import BadInput
from scheduler.explain.asked import KINDS, NODE, POD
from scheduler.explain.layout import some
from scheduler.explain.scene import Scene
from scheduler.printing import count_nouns
from scheduler.simulate import alike
from scheduler.simulate.reading import kinds, objects
from scheduler.simulate.reading.kinds import ObjectKey
from scheduler.simulate.workloads.owned import HASH

_NAMED = 5


def owners(scene: Scene, pod: wire.Pod) -> set[ObjectKey]:
    """What made a pod, what made that, and the Deployment whose name is in that of a ReplicaSet."""
    namespace, labels = pod.metadata.namespace, pod.metadata.labels or {}
    found = {scene.situation.making.owners.get(pod.metadata.uid)}
    if (owner := objects.find_owner(pod)) is not None:
        found.add(ObjectKey(owner.kind, namespace, owner.name))
        ending = f"-{labels.get(HASH, '')}"
        if owner.kind == "ReplicaSet" and HASH in labels and owner.name.endswith(ending):
            found.add(ObjectKey("Deployment", namespace, owner.name.removesuffix(ending)))
    return {one for one in found if one is not None}


def unknown(scene: Scene, wanted: ObjectKey) -> BadInput:
    """That something does not exist, with what is near of its kind, and what of other kinds may be meant."""
    there = _there(scene)
    mine = [one for one in there if one.kind == wanted.kind]
    others = [one for one in there if one.kind != wanted.kind]
    what = wanted.kind.lower() if wanted.kind in (POD, NODE) else wanted.kind
    called = _called(wanted, mine)
    near = [*map(_name, called)] or _pods_of(scene, wanted) or [*map(_name, _spelt(wanted, mine))]
    # Beside names of its own kind, what only begins so is of no help.
    meant = _same(wanted, others) if called else _called(wanted, others)
    hint = ", ".join(f"{one.kind.lower()} {_name(one)}" for one in meant[:_NAMED])
    count = count_nouns(len(mine), what)
    if near:
        said = f". Of {count}, similar: {some(near, most=_NAMED)}"
    elif len(mine) > _NAMED:
        said = f". None of {count} has a similar name"
    elif mine:
        is_there = "There is" if len(mine) == 1 else "There are"
        said = f". {is_there} {count}: {some([*map(_name, mine)], most=_NAMED)}"
    else:
        said = f", and no other {what} does"
    said += f". Did you mean {hint}?" if hint else ""
    return BadInput(f"{what} {_name(wanted)}", f"does not exist{said}")


def _pods_of(scene: Scene, wanted: ObjectKey) -> list[str]:
    """Of a pod that does not exist, the workloads, or the names without endings, that are spelt alike."""
    if wanted.kind != POD:
        return []
    groups: set[ObjectKey] = set()
    for pod in scene.pods.values():
        top = scene.situation.making.owners.get(pod.metadata.uid)
        name = alike.cut_ending(pod.metadata.name)
        if top is not None and top.kind != "ReplicaSet":
            groups.add(top)
        elif name != pod.metadata.name:
            groups.add(ObjectKey("", pod.metadata.namespace, name))
    return [
        f"pods of {one.kind} {_name(one)}" if one.kind else f"pods {_name(one)}-…"
        for one in _spelt(wanted, sorted(groups))
    ]


def _there(scene: Scene) -> list[ObjectKey]:
    """All that could be explained, sorted."""
    found = {ObjectKey(NODE, "", name) for name in scene.nodes}
    for pod in scene.pods.values():
        found.add(ObjectKey(POD, pod.metadata.namespace, pod.metadata.name))
        found |= owners(scene, pod)
    found |= {
        kinds.read_key(body)
        for body in scene.situation.inventory.objects
        if kinds.find_kind(body) in kinds.WORKLOADS
    }
    return sorted(one for one in found if one.kind in KINDS)


def _called(wanted: ObjectKey, there: Sequence[ObjectKey]) -> list[ObjectKey]:
    """Those of the name, first in its own namespace; else those whose names begin with it."""
    return _same(wanted, there) or _sorted(
        wanted, (one for one in there if one.name.startswith(wanted.name))
    )


def _same(wanted: ObjectKey, there: Sequence[ObjectKey]) -> list[ObjectKey]:
    return _sorted(wanted, (one for one in there if one.name == wanted.name))


def _sorted(wanted: ObjectKey, found: Iterable[ObjectKey]) -> list[ObjectKey]:
    return sorted(found, key=lambda one: (one.namespace != wanted.namespace, one.kind == POD, one))


def _spelt(wanted: ObjectKey, there: Sequence[ObjectKey]) -> list[ObjectKey]:
    names = {one.name for one in there}
    close = difflib.get_close_matches(wanted.name, sorted(names), _NAMED, cutoff=0.6)
    return [one for name in close for one in _sorted(wanted, there) if one.name == name]


def _name(key: ObjectKey) -> str:
    return "/".join(filter(None, (key.namespace, key.name)))
