"""NodeWellFormed: a node with a mistake is left out until the mistake is corrected."""

from __future__ import annotations

from scheduler.api.pods.templates import Whereabouts
from scheduler.plugins.contract import Filter, Held, Hint, Reason, Rule
from scheduler.schema.columns import Flags, Ints
from scheduler.state.nodes import NodeTable


def _refuses(_: bool, nodes: NodeTable, rows: Ints) -> Flags:
    flags: Flags = ~nodes.columns.valid[rows]
    return flags


def _needs(_: Whereabouts) -> bool:
    return True


def _hint(_: Held) -> Hint:
    """A node that is mended counts as added."""
    return Hint()


RULE = Rule(
    name="NodeWellFormed",
    reasons=(Reason("node(s) had malformed annotations or quantities", resolvable=False),),
    filter=Filter(needs=_needs, refuses=_refuses, lasting=False),
    hint=_hint,
)
