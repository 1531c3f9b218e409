"""NodeWellFormed: refuses a node with a mistake until the mistake is corrected."""

from __future__ import annotations

from scheduler.api.pods.templates import Whereabouts
from scheduler.plugins.contract import Filter, Held, Hint, Reason, Rule
from scheduler.schema.columns import Flags, Ints
from scheduler.state.nodes import NodeTable


def _find_refused(_: bool, nodes: NodeTable, rows: Ints) -> Flags:
    flags: Flags = ~nodes.columns.valid[rows]
    return flags


def _read_needs(_: Whereabouts) -> bool:
    return True


def _make_hint(_: Held) -> Hint:
    """No change helps: a node whose mistake is corrected counts as added, which always wakes the pods."""
    return Hint()


RULE = Rule(
    name="NodeWellFormed",
    reasons=(Reason("node(s) had malformed annotations or quantities", resolvable=False),),
    filter=Filter(needs=_read_needs, refuses=_find_refused, lasting=False),
    hint=_make_hint,
)
