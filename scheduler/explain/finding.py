"""Finds the pod that a user named: by its name, its workload, or the beginning of its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scheduler.api import wire
from scheduler.errors import BadInput
from scheduler.explain import idle, near
from scheduler.explain.layout import name_some
from scheduler.explain.scene import Scene
from scheduler.printing import count_nouns
from scheduler.simulate.reading import kinds
from scheduler.simulate.reading.kinds import ObjectKey

_NAMED = 5


class Found(NamedTuple):
    """The pod that was found; ``remark`` says of how many, and is empty if only one was meant."""

    pod: wire.Pod
    remark: str = ""


def find_pod(scene: Scene, wanted: ObjectKey) -> Found:
    """Find the pod of a name, or one of those whose names begin with it.

    Raises:
        BadInput: there is none, or it cannot be explained; the error names similar ones.
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
        raise near.report_unknown(scene, wanted)
    return _pick(f"{count_nouns(len(alike), 'pod')} have names that begin with {key}", alike)


def find_pod_of_workload(scene: Scene, wanted: ObjectKey) -> Found:
    """Find a pod of a workload: the first that waits, else the first by name.

    Raises:
        BadInput: the workload has no pods; the error names similar ones.
    """
    key = f"{wanted.namespace}/{wanted.name}"
    found = [one for one in scene.pods.values() if wanted in near.find_owners(scene, one)]
    if found:
        return _pick(f"{wanted.kind} {key} has {count_nouns(len(found), 'pod')}", found)
    done = [
        there for there, one in scene.finished.items() if wanted in near.find_owners(scene, one)
    ]
    if done:
        names = name_some(sorted(done), most=_NAMED)
        raise BadInput(
            f"{wanted.kind} {key}", f"has no pod that runs or waits: finished are {names}"
        )
    for body in scene.situation.inventory.objects:
        if kinds.read_key(body) == wanted:
            raise BadInput(f"{wanted.kind} {key}", f"has no pods: {idle.explain_idle(scene, body)}")
    raise near.report_unknown(scene, wanted)


def _pick(which: str, found: Sequence[wire.Pod]) -> Found:
    """Pick one of some pods, the first in the queue, else the first on a node; add the state of the others."""
    first, *others = sorted(found, key=_make_sort_key)
    if not others:
        return Found(first)
    waiting = sum(not one.spec.node_name for one in found)
    this = "this is the first that waits" if waiting else "this is the first by name"
    names = name_some(
        [f"{one.metadata.namespace}/{one.metadata.name}" for one in others], most=_NAMED
    )
    state = f"{waiting:,} waiting, {len(found) - waiting:,} on nodes"
    return Found(first, f"{which}, {state}; {this}. The others: {names}.")


def _make_sort_key(pod: wire.Pod) -> tuple[bool, int, str]:
    """Make a key for the order of the queue: by priority, age, and order in the files. Pods on nodes follow, by name."""
    if pod.spec.node_name:
        return True, 0, pod.metadata.name
    return False, -pod.spec.priority, pod.metadata.creation_timestamp
