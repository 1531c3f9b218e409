"""Finds names that are similar to one that does not exist: the same elsewhere, those that begin with it, owners."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from scheduler.api import wire
from scheduler.engine.questions.waiting import AllGroups
from scheduler.errors import BadInput
from scheduler.explain.asked import GROUP, KINDS, NODE, POD
from scheduler.explain.layout import name_some
from scheduler.explain.scene import Scene
from scheduler.printing import count_nouns
from scheduler.simulate import alike
from scheduler.simulate.reading import kinds, objects
from scheduler.simulate.reading.kinds import ObjectKey
from scheduler.simulate.workloads.owned import HASH

_NAMED = 5


def find_owners(scene: Scene, pod: wire.Pod) -> set[ObjectKey]:
    """Find the owner of a pod, the owner of that, and the Deployment whose name is in that of a ReplicaSet."""
    namespace, labels = pod.metadata.namespace, pod.metadata.labels or {}
    found = {scene.situation.making.owners.get(pod.metadata.uid)}
    if (owner := objects.find_owner(pod)) is not None:
        found.add(ObjectKey(owner.kind, namespace, owner.name))
        ending = f"-{labels.get(HASH, '')}"
        if owner.kind == "ReplicaSet" and HASH in labels and owner.name.endswith(ending):
            found.add(ObjectKey("Deployment", namespace, owner.name.removesuffix(ending)))
    return {one for one in found if one is not None}


def report_unknown(scene: Scene, wanted: ObjectKey) -> BadInput:
    """Report that an object does not exist, with similar ones of its kind, and those of other kinds that may be meant."""
    there = _list_all(scene)
    mine = [one for one in there if one.kind == wanted.kind]
    others = [one for one in there if one.kind != wanted.kind]
    what = wanted.kind.lower() if wanted.kind in (POD, NODE, GROUP) else wanted.kind
    called = _find_called(wanted, mine)
    near = (
        [*map(_write_name, called)]
        or _list_near_pods(scene, wanted)
        or [*map(_write_name, _find_alike(wanted, mine))]
    )
    # If there are names of its own kind, names of other kinds that only begin with it do not help.
    meant = _find_same(wanted, others) if called else _find_called(wanted, others)
    hint = ", ".join(f"{one.kind.lower()} {_write_name(one)}" for one in meant[:_NAMED])
    count = count_nouns(len(mine), what)
    if near:
        said = f". Of {count}, similar: {name_some(near, most=_NAMED)}"
    elif len(mine) > _NAMED:
        said = f". None of {count} has a similar name"
    elif mine:
        is_there = "There is" if len(mine) == 1 else "There are"
        said = f". {is_there} {count}: {name_some([*map(_write_name, mine)], most=_NAMED)}"
    else:
        said = f", and no other {what} does"
    said += f". Did you mean {hint}?" if hint else ""
    return BadInput(f"{what} {_write_name(wanted)}", f"does not exist{said}")


def _list_near_pods(scene: Scene, wanted: ObjectKey) -> list[str]:
    """List workloads, or names without endings, that are spelt like a pod that does not exist."""
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
        f"pods of {one.kind} {_write_name(one)}" if one.kind else f"pods {_write_name(one)}-…"
        for one in _find_alike(wanted, sorted(groups))
    ]


def _list_all(scene: Scene) -> list[ObjectKey]:
    """List everything that can be explained, sorted."""
    found = {ObjectKey(NODE, "", name) for name in scene.nodes}
    for pod in scene.pods.values():
        found.add(ObjectKey(POD, pod.metadata.namespace, pod.metadata.name))
        found |= find_owners(scene, pod)
    found |= {
        kinds.read_key(body)
        for body in scene.situation.inventory.objects
        if kinds.find_kind(body) in kinds.WORKLOADS
    }
    groups = scene.engine.ask(AllGroups())
    found |= {ObjectKey(GROUP, key.namespace, key.name) for key in groups}
    return sorted(one for one in found if one.kind in KINDS)


def _find_called(wanted: ObjectKey, there: Sequence[ObjectKey]) -> list[ObjectKey]:
    """Find the objects of the name, those in its namespace first; else those whose names begin with it."""
    return _find_same(wanted, there) or _sort_keys(
        wanted, (one for one in there if one.name.startswith(wanted.name))
    )


def _find_same(wanted: ObjectKey, there: Sequence[ObjectKey]) -> list[ObjectKey]:
    return _sort_keys(wanted, (one for one in there if one.name == wanted.name))


def _sort_keys(wanted: ObjectKey, found: Iterable[ObjectKey]) -> list[ObjectKey]:
    return sorted(found, key=lambda one: (one.namespace != wanted.namespace, one.kind == POD, one))


def _find_alike(wanted: ObjectKey, there: Sequence[ObjectKey]) -> list[ObjectKey]:
    names = {one.name for one in there}
    close = difflib.get_close_matches(wanted.name, sorted(names), _NAMED, cutoff=0.6)
    return [one for name in close for one in _sort_keys(wanted, there) if one.name == name]


def _write_name(key: ObjectKey) -> str:
    return "/".join(filter(None, (key.namespace, key.name)))
