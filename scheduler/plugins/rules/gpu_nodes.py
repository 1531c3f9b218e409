"""KeepsGpuNodesFree: a pod without GPUs goes to nodes without GPUs as long as it fits on one."""

from __future__ import annotations

from scheduler.plugins.contract import Asked, Compiled, Points, Row, Rule
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster

_NAME = "KeepsGpuNodesFree"


def _compile_request(asked: Asked, _: Cluster) -> Compiled:
    return Compiled(rules={"avoid_gpu": _applies(asked)})


def _applies(asked: Asked) -> bool:
    """Whether the rule applies to such pods. Mode ``kube-scheduler`` leaves it out: kube-scheduler has no such rule."""
    return asked.template.gpu is None and not asked.placement.is_kube


def _list_points(
    asked: Asked, _: c.Ask, nodes: c.Nodes, _board: c.Board, row: int
) -> tuple[Points, ...]:
    """List the point of a node without GPUs. It ranks above all sums of scores, so its weight in the sum is 0."""
    return (Points(_NAME, 1, 1, 0),) if _applies(asked) and not nodes.has_gpu[row] else ()


RULE = Rule(name=_NAME, row=Row(compile=_compile_request, points=_list_points))
