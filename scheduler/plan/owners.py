"""Who makes a pod again that leaves its node, and whether that is meant to happen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from scheduler.api import names, wire
from scheduler.simulate.reading import objects

ALONE = "that no controller would make again"
FORBIDDEN = "with an annotation that keeps them on their node"
BEGINS_ANEW = "whose work would begin anew"
# Controllers whose pods serve: what a pod does is not lost with it.
_SERVING = frozenset({"ReplicaSet", "StatefulSet", "ReplicationController"})
# Those whose pods belong to their node.
_OF_NODE = frozenset({"DaemonSet", "Node"})
_STAY = {names.SAFE_TO_EVICT: "false", names.DO_NOT_DISRUPT: "true"}
_FINISHED = frozenset({"Succeeded", "Failed"})


class Owners(NamedTuple):
    """What the objects of the pods on nodes say.

    Attributes:
        kept: by uid of a pod that may not be moved: why, as a text that follows "pods".
        own: the uids of pods that belong to their node.
        makers: by uid of a pod: its controller.
        only: the uids of pods whose controllers have no other pod on a node.
        ends_first: the uids of pods whose controllers wait until a pod is gone before they make its successor.
    """

    kept: dict[str, str]
    own: frozenset[str]
    makers: dict[str, wire.Owner]
    only: frozenset[str]
    ends_first: frozenset[str]


def read_owners(pods: Iterable[wire.Pod]) -> Owners:
    """Read what the pods say of their owners; O(pods)."""
    kept: dict[str, str] = {}
    own: set[str] = set()
    makers: dict[str, wire.Owner] = {}
    for pod in pods:
        if not pod.spec.node_name or pod.status.phase in _FINISHED:
            continue
        uid, owner = pod.metadata.uid, objects.find_owner(pod)
        notes = pod.metadata.annotations or {}
        if names.MIRROR in notes or (owner is not None and owner.kind in _OF_NODE):
            own.add(uid)
        elif owner is None:
            kept[uid] = ALONE
        elif any(notes.get(key) == value for key, value in _STAY.items()):
            kept[uid] = FORBIDDEN
        elif owner.kind not in _SERVING and names.CHECKPOINT not in notes:
            kept[uid] = BEGINS_ANEW
        if owner is not None:
            makers[uid] = owner
    counts = Counter(owner.uid for owner in makers.values())
    only = frozenset(uid for uid, owner in makers.items() if counts[owner.uid] == 1)
    ends_first = frozenset(uid for uid, owner in makers.items() if owner.kind == "StatefulSet")
    return Owners(kept, frozenset(own), makers, only, ends_first)
