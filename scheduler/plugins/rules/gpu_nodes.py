"""KeepsGpuNodesFree: a pod without GPUs goes to nodes without GPUs as long as it fits on one."""

from __future__ import annotations

from scheduler.plugins.contract import Asked, Compiled, Points, Row, Rule
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster

_NAME = "KeepsGpuNodesFree"


def _compile(asked: Asked, _: Cluster) -> Compiled:
    return Compiled(rules={"avoid_gpu": _applies(asked)})


def _applies(asked: Asked) -> bool:
    """kube-scheduler's own sum knows no GPUs."""
    return asked.template.gpu is None and not asked.placement.is_kube


def _points(
    asked: Asked, _: c.Ask, nodes: c.Nodes, _board: c.Board, row: int
) -> tuple[Points, ...]:
    """A tier above all sums, so it is no part of one."""
    return (Points(_NAME, 1, 1, 0),) if _applies(asked) and not nodes.has_gpu[row] else ()


RULE = Rule(name=_NAME, row=Row(compile=_compile, points=_points))
