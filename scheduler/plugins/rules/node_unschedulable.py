"""NodeUnschedulable: refuses cordoned nodes, unless the pod tolerates the taint of cordoned nodes."""

from __future__ import annotations

from scheduler.api import names
from scheduler.api.pods.templates import Whereabouts
from scheduler.api.pods.tolerations import tolerates
from scheduler.plugins.contract import Change, Filter, Held, Hint, Reason, Rule
from scheduler.schema.columns import Flags, Ints
from scheduler.state.nodes import NodeTable

_TAINT = (names.UNSCHEDULABLE_TAINT, "", "NoSchedule")


def _read_needs(pod: Whereabouts) -> bool | None:
    return None if tolerates(pod.tolerations, _TAINT) else True


def _find_refused(_: bool, nodes: NodeTable, rows: Ints) -> Flags:
    return nodes.unschedulable[rows]


def _make_hint(_: Held) -> Hint:
    return Hint(here=((Change.NODE_TAINTS, None),))


RULE = Rule(
    name="NodeUnschedulable",
    reasons=(Reason("node(s) were unschedulable", resolvable=False),),
    filter=Filter(needs=_read_needs, refuses=_find_refused, lasting=False),
    hint=_make_hint,
)
