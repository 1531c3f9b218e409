"""CardWishes: a node that does not list its cards cannot serve annotations that choose among cards.

On such a node the GPUs are only a number: the kubelet picks GPUs, and it reads no annotations of pods. The rule compares
a wanted GPU type with the node's label for the type.
"""

from __future__ import annotations

import numpy as np

from scheduler.api import names
from scheduler.api.pods.gpus import CardWishes
from scheduler.api.pods.templates import Whereabouts
from scheduler.plugins.contract import Change, Filter, Held, Hint, Reason, Rule
from scheduler.schema.columns import Flags, Ints
from scheduler.state.nodes import NodeTable

Types = tuple[tuple[str, ...], tuple[str, ...]]


def _read_wish_by_card(pod: Whereabouts) -> bool | None:
    wishes = pod.card_wishes
    return True if wishes is not None and wishes.is_by_card else None


def _read_wish_by_type(pod: Whereabouts) -> CardWishes | None:
    wishes = pod.card_wishes
    return wishes if wishes is not None and wishes.is_by_type else None


def _find_counted(nodes: NodeTable, rows: Ints) -> Flags:
    """Find the rows whose GPUs are only a number."""
    counted: Flags = ~nodes.find_managed(nodes.devices.find_family(names.GPU))[rows]
    return counted


def _find_without_cards(_: bool, nodes: NodeTable, rows: Ints) -> Flags:
    return _find_counted(nodes, rows)


def _find_without_type(_: CardWishes, nodes: NodeTable, rows: Ints) -> Flags:
    return _find_counted(nodes, rows) & (nodes.get_label_column(names.GPU_PRODUCT)[rows] < 0)


def _find_other_types(wishes: CardWishes, nodes: NodeTable, rows: Ints) -> Flags:
    # The column comes first, because making it numbers the label's values.
    column = nodes.get_label_column(names.GPU_PRODUCT)[rows]
    kinds = np.unique(column[column >= 0])
    refused = [kind for kind in kinds if not wishes.accept(nodes.label_values.values[kind])]
    return _find_counted(nodes, rows) & np.isin(column, refused)


def _make_hint(held: Held) -> Hint:
    """A node starts to list its cards, or reports their type."""
    return Hint(
        here=(
            (Change.NODE_DEVICES, held.template.family),
            (Change.NODE_LABELS, names.GPU_PRODUCT),
        )
    )


BY_CARD = Rule(
    name="CardWishes",
    reasons=(
        Reason(
            "node(s) did not list their GPUs, among which the pod's annotations choose",
            resolvable=False,
        ),
    ),
    filter=Filter(needs=_read_wish_by_card, refuses=_find_without_cards, lasting=False),
    hint=_make_hint,
)
TYPE_UNKNOWN = Rule(
    name="CardTypeReported",
    reasons=(
        Reason(
            "node(s) did not report the type of their GPUs, which the pod's annotations request",
            resolvable=False,
        ),
    ),
    filter=Filter(needs=_read_wish_by_type, refuses=_find_without_type, lasting=False),
    hint=_make_hint,
)
BY_TYPE = Rule(
    name="CardType",
    reasons=(
        Reason(
            "node(s) had GPUs of another type than the pod's annotations request", resolvable=False
        ),
    ),
    filter=Filter(needs=_read_wish_by_type, refuses=_find_other_types, lasting=False),
    hint=_make_hint,
)
