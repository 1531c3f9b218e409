"""Who is let in by a plan, and what is no gain: turns, limits, and nodes and pods that are not Evenkeel's to move."""

import copy

from scheduler.api.placement import Mode
from tests.unit.test_defrag import LARGE, MIB, NODES, SMALL, moved, planned, waiting


def test_a_group_of_lower_priority_comes_after_the_successor() -> None:
    """The scheduler spreads pods: the successor would go back, unless the group took its place before."""
    gang = waiting("gang", gpu=1, gpumem=MIB, gpucores=100, labels={"scheduling.x-k8s.io/pod-group": "gang"})  # fmt: skip
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"}, "spec": {"minMember": 1},
    }  # fmt: skip
    for priority, moves in ((0, [("small", "a", "b")]), (1000, [])):
        pods = [copy.deepcopy(one) for one in (SMALL, LARGE)]
        for one in pods:
            one["spec"]["priority"] = priority
        found = planned(*NODES, *pods, gang, group, mode=Mode.LEAST_ALLOCATED)
        assert moved(found) == moves
