"""Differences that stay, each with its reason; any other fails a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.differential.queues.compare import MESSAGE, REASON, Difference
from tests.differential.queues.worlds import World

Json = dict[str, Any]

# By the gate UnadmittedWorkloadsObservability, which the version that is pinned does not have yet.
_LATER_REASONS = frozenset({
    "NoMatchingFlavor", "WaitingForQuota", "ExceedsMaxQuota", "TopologyPlacementFailed",
    "WaitingForPreemptedWorkloads", "Misconfigured", "Suspended", "PendingEvaluation", "WaitingForPodsReady",
})  # fmt: skip


class Known(NamedTuple):
    """A difference that stays.

    Attributes:
        title: what is different and why, in a line.
        holds: whether a difference in a world is of this kind.
    """

    title: str
    holds: Callable[[Difference, World], bool]


def _is_of_a_later_reason(difference: Difference, _: World) -> bool:
    """Only the reason of a workload that waits, which is one for all in this version."""
    return (
        difference.what == REASON
        and difference.theirs in {"Pending", "Inadmissible"}
        and difference.ours in _LATER_REASONS
    )


def _is_of_several_reasons(difference: Difference, world: World) -> bool:
    """Only the message of a workload that could be told several things."""
    if difference.what != MESSAGE:
        return False
    pod_sets = _find_workload(world, difference.workload)["spec"]["podSets"]
    containers = [one["template"]["spec"]["containers"][0] for one in pod_sets]
    n_resources = max(len(one["resources"]["requests"]) for one in containers)
    groups = _find_queue(world, difference.workload)["spec"]["resourceGroups"]
    n_flavors = max(len(one["flavors"]) for one in groups)
    return max(n_resources, n_flavors, len(pod_sets)) > 1


def _is_of_a_stopped_queue(difference: Difference, world: World) -> bool:
    """Only words of a workload whose ClusterQueue has been stopped in this step or before."""
    if not difference.is_of_words:
        return False
    queue = _find_queue(world, difference.workload)["metadata"]["name"]
    return any(
        one["kind"] == "ClusterQueue"
        and one["metadata"]["name"] == queue
        and one["spec"].get("stopPolicy", "None") != "None"
        for step in world.steps[: difference.step + 1]
        for one in step.changed
    )


def _is_of_nobody_tried(difference: Difference, _: World) -> bool:
    """Only words of a workload that nobody has looked at since it came back."""
    return difference.is_of_words and difference.ours == ""


def _is_of_a_stopped_workload(difference: Difference, world: World) -> bool:
    """Only words of a workload that is not active any more."""
    steps = world.steps[: difference.step + 1]
    return difference.is_of_words and any(difference.workload in one.stopped for one in steps)


def _find_workload(world: World, name: str) -> Json:
    created = (one for step in world.steps for one in step.created)
    return next(one for one in created if one["metadata"]["name"] == name)


def _find_queue(world: World, workload: str) -> Json:
    """The ClusterQueue in which a workload waits, as it is at first."""
    named = {(one["kind"], one["metadata"]["name"]): one for one in world.objects}
    local = named["LocalQueue", _find_workload(world, workload)["spec"]["queueName"]]
    return named["ClusterQueue", local["spec"]["clusterQueue"]]


NEWER = "rules that are newer than the version that is asked: by the twin of the newer rules the same is done"
EARLY = (
    "in Kueue slices take the place even of those that have to go for others, and in a cycle the quota of an old slice is"
    " free for all from the moment that its place is taken: more is used than there is"
)
IN_FULL = (
    "a slice is judged by all that it asks, as if the old one had gone; in Kueue each pod set by what it asks more, so"
    " that it may preempt to borrow, grow beside what is in debt, and must wait though another pod set of its shrinks"
)
SPARED = "workloads spare those to whom they have given way: without this rule the same is done"
CIRCLE = "heads that are tried in a circle: what comes next depends on how often they were tried"
KNOWN: tuple[Known, ...] = (
    Known(
        "why a workload waits has a reason of its own since Kueue 0.19; before, all wait for the reason Pending",
        _is_of_a_later_reason,
    ),
    Known(
        "which of several reasons a waiting workload is told: Kueue goes through the resources of a pod in Go's random"
        " order and stops at the first that no flavor has, and tells a head that is tried again of the flavors after"
        " the last one only",
        _is_of_several_reasons,
    ),
    Known(
        "a workload that was not tried since it came back to its queue: its object keeps the words that it has",
        _is_of_nobody_tried,
    ),
    Known(
        "that a workload is not active: Kueue leaves the words as they were",
        _is_of_a_stopped_workload,
    ),
    Known(
        "what is told to those who wait in a ClusterQueue that was stopped: two controllers of Kueue tell it, each when"
        " it comes by",
        _is_of_a_stopped_queue,
    ),
)


def find_title(difference: Difference, world: World) -> str:
    """Return the title of the known difference that it is; empty if it is another."""
    return next((one.title for one in KNOWN if one.holds(difference, world)), "")
