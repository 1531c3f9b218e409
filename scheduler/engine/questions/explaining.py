"""Questions for explaining a pod or a node to people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from scheduler.api import wire
from scheduler.api.groups.definitions import GroupKey
from scheduler.engine.questions.contract import Foresight

Json = dict[str, Any]


class ExplainPod(Foresight[Json], frozen=True):
    """Why a pod waits or runs where it runs, as plain values. Whatever is tried to find out is undone.

    Attributes:
        pod: as it would come to us, without a node.
        node: where it runs, empty while it waits.
        nodes: as objects, by name: what of them is cordoned or tainted could be otherwise.
        come_again: uids of pods whose end helps nobody, because they would be made again at once.
    """

    pod: wire.Pod
    node: str
    nodes: Mapping[str, wire.Node]
    come_again: frozenset[str]


class ExplainNode(Foresight[Json], frozen=True):
    """What is on a node, what is free there and who waits for it, as plain values.

    Attributes:
        schedulers: by uid the scheduler that a pod names, to be told with it.
    """

    name: str
    schedulers: Mapping[str, str | None]


class GroupOutlook(NamedTuple):
    """What would become of the group of a waiting pod now.

    Attributes:
        name: the group.
        fits: whether enough of its pods would be placed.
        message: how many pods fit where, or what the group lacks.
    """

    name: str
    fits: bool
    message: str


class ExplainGroup(Foresight[Json], frozen=True):
    """Why a group waits, or where its pods are, as plain values. Whatever is tried to find out is undone.

    Attributes:
        group: a group that is decided about as a whole, with at least one pod.
        nodes: as objects, by name: what of them is cordoned or tainted could be otherwise.
    """

    group: GroupKey
    nodes: Mapping[str, wire.Node]


class OutlookOf(Foresight[GroupOutlook | None], frozen=True):
    """What would become of the group of a waiting pod now; None for a pod that waits by itself, or does not wait."""

    uid: str
