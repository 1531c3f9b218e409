"""Finds the pod or node that a user named: by its name, its workload, or the beginning of its name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from scheduler.api import wire
from scheduler.errors import BadInput
from scheduler.explain.scene import Scene
from scheduler.printing import counted
from scheduler.simulate.reading import kinds, objects
from scheduler.simulate.reading.kinds import ObjectKey
from scheduler.simulate.workloads.owned import HASH

_NAMED = 5
# As kubectl calls them.
PODS, NODES = ("pod", "pods", "po"), ("node", "nodes", "no")
WORKLOADS = {
    word: kind
    for kind, words in {
        "Deployment": ("deployment", "deployments", "deploy"),
        "StatefulSet": ("statefulset", "statefulsets", "sts"),
        "DaemonSet": ("daemonset", "daemonsets", "ds"),
        "ReplicaSet": ("replicaset", "replicasets", "rs"),
        "ReplicationController": ("replicationcontroller", "replicationcontrollers", "rc"),
        "Job": ("job", "jobs"),
        "CronJob": ("cronjob", "cronjobs", "cj"),
    }.items()
    for word in words
}


class Found(NamedTuple):
    """A pod, and whose of several it is; ``remark`` is empty where only one is meant."""

    pod: wire.Pod
    remark: str = ""


def pod(scene: Scene, name: str) -> Found:
    """The pod of a name, or one of those whose names begin with it.

    Raises:
        BadInput: there is none, or it cannot be explained; names some that are near.
    """
    key = _key(name)
    if (found := scene.pods.get(key)) is not None:
        return Found(found)
    if (unread := scene.unread.get(key)) is not None:
        raise BadInput(f"pod {key}", f"cannot be read: {unread}")
    if key in scene.finished:
        raise BadInput(f"pod {key}", "has finished: it holds nothing and waits for nothing")
    alike = [one for there, one in scene.pods.items() if there.startswith(f"{key}-")]
    if not alike:
        raise _unknown_pod(scene, key)
    return _one_of(f"{counted(len(alike), 'pod')} have names that begin with {key}", alike)


def pod_of(scene: Scene, word: str, name: str) -> Found:
    """A pod of a workload: the first that waits, else the first by name.

    Raises:
        BadInput: the workload has no pods; names some that are near.
    """
    kind, key = WORKLOADS[word], _key(name)
    namespace, _, own = key.partition("/")
    wanted = ObjectKey(kind, namespace, own)
    found = [one for one in scene.pods.values() if wanted in _owners(scene, one)]
    if not found:
        if any(kinds.key(body) == wanted for body in scene.situation.inventory.objects):
            raise BadInput(
                f"{kind} {key}", "has no pods: it requests none, is suspended, or no node suits it"
            )
        there = [
            f"{owner.namespace}/{owner.name}"
            for one in scene.pods.values()
            for owner in _owners(scene, one)
            if owner.kind == kind
        ]
        raise unknown(f"{kind} {key}", f"{kind}s that have pods", there)
    return _one_of(f"{kind} {key} has {counted(len(found), 'pod')}", found)


def _key(name: str) -> str:
    return name if "/" in name else f"default/{name}"


def _owners(scene: Scene, pod: wire.Pod) -> set[ObjectKey]:
    """What made a pod, what made that, and the Deployment whose name is in that of a ReplicaSet."""
    namespace, labels = pod.metadata.namespace, pod.metadata.labels or {}
    found = {scene.situation.making.owners.get(pod.metadata.uid)}
    if (owner := objects.owner_of(pod)) is not None:
        found.add(ObjectKey(owner.kind, namespace, owner.name))
        ending = f"-{labels.get(HASH, '')}"
        if owner.kind == "ReplicaSet" and HASH in labels and owner.name.endswith(ending):
            found.add(ObjectKey("Deployment", namespace, owner.name.removesuffix(ending)))
    return {one for one in found if one is not None}


def _one_of(which: str, found: Sequence[wire.Pod]) -> Found:
    """One of some pods, the first in the queue before those that have a node, and the state of the others."""
    first, *others = sorted(found, key=_order)
    if not others:
        return Found(first)
    waiting = sum(not one.spec.node_name for one in found)
    this = "this is the first that waits" if waiting else "this is the first by name"
    names = _some([f"{one.metadata.namespace}/{one.metadata.name}" for one in others])
    state = f"{waiting:,} waiting, {len(found) - waiting:,} on nodes"
    return Found(first, f"{which}, {state}; {this}. The others: {names}.")


def _order(pod: wire.Pod) -> tuple[bool, int, str]:
    """The order of the queue: by priority, then by age, then as in the files. Pods on nodes follow, by name."""
    if pod.spec.node_name:
        return True, 0, pod.metadata.name
    return False, -pod.spec.priority, pod.metadata.creation_timestamp


def _unknown_pod(scene: Scene, key: str) -> BadInput:
    """Near are pods of the name elsewhere; else what is a workload, or a node, of the name."""
    name = key.partition("/")[2]
    elsewhere = [
        there
        for there in scene.pods
        if (own := there.partition("/")[2]) == name or own.startswith(f"{name}-")
    ]
    # Of a node the name has no namespace before it.
    also = [f"node {name}"] if name in scene.nodes else []
    also += [
        f"{owner.kind.lower()} {owner.namespace}/{owner.name}"
        for one in scene.pods.values()
        for owner in _owners(scene, one)
        if owner.name == name
    ]
    return unknown(f"pod {key}", "pods", scene.pods, first=elsewhere, also=also)


def unknown(
    what: str,
    kind: str,
    there: Iterable[str],
    *,
    first: Iterable[str] = (),
    also: Iterable[str] = (),
) -> BadInput:
    """That something is not there, with what is near: the ``first``, or else by spelling, and what is ``also`` meant."""
    names = sorted(set(there))
    asked = what.partition(" ")[2]
    hints = _some(list(dict.fromkeys(also)), "")
    meant = f"; did you mean {hints}?" if hints else ""
    if not names:
        # The text is of one of them.
        return BadInput(what, f"does not exist, and no other {what.partition(' ')[0]} does{meant}")
    near = sorted(set(first)) or difflib.get_close_matches(asked, names, _NAMED, cutoff=0.6)
    near = near[:_NAMED] or names[:_NAMED]
    more = "…" if len(near) < len(names) else ""
    said = f"is not among the {len(names)} {kind}; there are {', '.join(near)}{more}"
    return BadInput(what, said + meant)


def _some(names: Sequence[str], rest: str = "and {} more") -> str:
    more = len(names) - _NAMED
    tail = f" {rest.format(more)}" if more > 0 and rest else ""
    return ", ".join(names[:_NAMED]) + tail
