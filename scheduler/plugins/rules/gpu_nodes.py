"""KeepsGpuNodesFree: a pod that asks no GPU goes to nodes without any while it fits on one."""

from __future__ import annotations

from scheduler.plugins.contract import Asked, Compiled, Points, Row, Rule
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster

_NAME = "KeepsGpuNodesFree"


def _compile(asked: Asked, _: Cluster) -> Compiled:
    return Compiled({}, {"avoid_gpu": asked.template.gpu is None})


def _points(asked: Asked, nodes: c.Nodes, _: c.Board, row: int) -> Points | None:
    """A tier above all sums, so it is no part of one."""
    is_free = asked.template.gpu is None and not nodes.has_gpu[row]
    return Points(_NAME, 1, 1, 0) if is_free else None


RULE = Rule(name=_NAME, row=Row(compile=_compile, points=_points))
