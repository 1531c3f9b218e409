"""ForeignDevices: pods of ours get no devices of a node whose devices another scheduler allocates."""

from __future__ import annotations

import numpy as np

from scheduler.api.pods.templates import Whereabouts
from scheduler.plugins.contract import Change, Filter, Held, Hint, Reason, Rule
from scheduler.schema.columns import Flags, Ints
from scheduler.state.nodes import NodeTable

Families = tuple[str, ...]


def _read_families(pod: Whereabouts) -> Families | None:
    return pod.families or None


def _find_refused(families: Families, nodes: NodeTable, rows: Ints) -> Flags:
    """Find the rows of another scheduler's where cards are allocated one by one; that scheduler knows no other devices."""
    numbers = [nodes.devices.find_family(one) for one in families]
    managed = [nodes.find_managed(one)[rows] for one in numbers if one >= 0]
    refused: Flags = nodes.foreign[rows] & np.logical_or.reduce(managed, axis=0)
    return refused


def _make_hint(held: Held) -> Hint:
    """The node changes its owner, or its cards are only counted from now on."""
    changes = Change.NODE_LABELS, Change.NODE_TAINTS
    families = ((Change.NODE_DEVICES, one) for one in held.template.families)
    return Hint(here=(*((one, None) for one in changes), *families))


RULE = Rule(
    name="ForeignDevices",
    reasons=(Reason("node(s) had devices that another scheduler allocates", resolvable=False),),
    filter=Filter(needs=_read_families, refuses=_find_refused),
    hint=_make_hint,
)
