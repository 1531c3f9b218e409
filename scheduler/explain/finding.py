"""Finds the pod that a user named: by its name, its workload, or the beginning of its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scheduler.api import wire
from scheduler.errors import BadInput
from scheduler.explain import idle, near
from scheduler.explain.layout import some
from scheduler.explain.scene import Scene
from scheduler.printing import count_nouns
from scheduler.simulate.reading import kinds
from scheduler.simulate.reading.kinds import ObjectKey

_NAMED = 5


class Found(NamedTuple):
    """A pod, and whose of several it is; ``remark`` is empty where only one is meant."""

    pod: wire.Pod
    remark: str = ""


def pod(scene: Scene, wanted: ObjectKey) -> Found:
    """The pod of a name, or one of those whose names begin with it.

    Raises:
        BadInput: there is none, or it cannot be explained; names some that are near.
    """
    key = f"{wanted.namespace}/{wanted.name}"
    if (found := scene.pods.get(key)) is not None:
        return Found(found)
    if (unread := scene.unread.get(key)) is not None:
        raise BadInput(f"pod {key}", f"cannot be read: {unread}")
    if key in scene.finished:
        raise BadInput(f"pod {key}", "has finished: it holds nothing and waits for nothing")
    alike = [one for there, one in scene.pods.items() if there.startswith(f"{key}-")]
    if not alike:
        raise near.unknown(scene, wanted)
    return _one_of(f"{count_nouns(len(alike), 'pod')} have names that begin with {key}", alike)


def pod_of(scene: Scene, wanted: ObjectKey) -> Found:
    """A pod of a workload: the first that waits, else the first by name.

    Raises:
        BadInput: the workload has no pods; names some that are near.
    """
    key = f"{wanted.namespace}/{wanted.name}"
    found = [one for one in scene.pods.values() if wanted in near.owners(scene, one)]
    if found:
        return _one_of(f"{wanted.kind} {key} has {count_nouns(len(found), 'pod')}", found)
    done = [there for there, one in scene.finished.items() if wanted in near.owners(scene, one)]
    if done:
        names = some(sorted(done), most=_NAMED)
        raise BadInput(
            f"{wanted.kind} {key}", f"has no pod that runs or waits: finished are {names}"
        )
    for body in scene.situation.inventory.objects:
        if kinds.read_key(body) == wanted:
            raise BadInput(f"{wanted.kind} {key}", f"has no pods: {idle.why(scene, body)}")
    raise near.unknown(scene, wanted)


def _one_of(which: str, found: Sequence[wire.Pod]) -> Found:
    """One of some pods, the first in the queue before those that have a node, and the state of the others."""
    first, *others = sorted(found, key=_order)
    if not others:
        return Found(first)
    waiting = sum(not one.spec.node_name for one in found)
    this = "this is the first that waits" if waiting else "this is the first by name"
    names = some([f"{one.metadata.namespace}/{one.metadata.name}" for one in others], most=_NAMED)
    state = f"{waiting:,} waiting, {len(found) - waiting:,} on nodes"
    return Found(first, f"{which}, {state}; {this}. The others: {names}.")


def _order(pod: wire.Pod) -> tuple[bool, int, str]:
    """The order of the queue: by priority, then by age, then as in the files. Pods on nodes follow, by name."""
    if pod.spec.node_name:
        return True, 0, pod.metadata.name
    return False, -pod.spec.priority, pod.metadata.creation_timestamp
