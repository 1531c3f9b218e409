"""CardWishes: a node that does not list its cards cannot serve annotations that choose among cards.

There the GPUs are a number: the kubelet picks among them, and no annotation reaches it. A preference for a type is evaluated by
the node's label for it.
"""

from __future__ import annotations

import numpy as np

from scheduler.api import names
from scheduler.api.pods.gpus import CardWishes
from scheduler.api.pods.templates import Whereabouts
from scheduler.devices.table import place_of
from scheduler.plugins.contract import Change, Filter, Held, Hint, Reason, Rule
from scheduler.schema.columns import Flags, Ints
from scheduler.state.nodes import NodeTable

_POOL = place_of(names.GPU)
Types = tuple[tuple[str, ...], tuple[str, ...]]


def _by_card(pod: Whereabouts) -> bool | None:
    wishes = pod.card_wishes
    return True if wishes is not None and wishes.is_by_card else None


def _by_type(pod: Whereabouts) -> CardWishes | None:
    wishes = pod.card_wishes
    return wishes if wishes is not None and wishes.is_by_type else None


def _counted(nodes: NodeTable, rows: Ints) -> Flags:
    """Rows whose GPUs are a number."""
    counted: Flags = ~nodes.columns.managed[_POOL, rows]
    return counted


def _has_no_cards(_: bool, nodes: NodeTable, rows: Ints) -> Flags:
    return _counted(nodes, rows)


def _is_of_no_type(_: CardWishes, nodes: NodeTable, rows: Ints) -> Flags:
    return _counted(nodes, rows) & (nodes.get_label_column(names.GPU_PRODUCT)[rows] < 0)


def _is_of_another_type(wishes: CardWishes, nodes: NodeTable, rows: Ints) -> Flags:
    # The column first: making it is what numbers the label's values.
    column = nodes.get_label_column(names.GPU_PRODUCT)[rows]
    kinds = np.unique(column[column >= 0])
    refused = [kind for kind in kinds if not wishes.accept(nodes.label_values.values[kind])]
    return _counted(nodes, rows) & np.isin(column, refused)


def _hint(held: Held) -> Hint:
    """A node reports cards, or of which type they are."""
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
    filter=Filter(needs=_by_card, refuses=_has_no_cards, lasting=False),
    hint=_hint,
)
TYPE_UNKNOWN = Rule(
    name="CardTypeReported",
    reasons=(
        Reason(
            "node(s) did not report the type of their GPUs, which the pod's annotations request",
            resolvable=False,
        ),
    ),
    filter=Filter(needs=_by_type, refuses=_is_of_no_type, lasting=False),
    hint=_hint,
)
BY_TYPE = Rule(
    name="CardType",
    reasons=(
        Reason(
            "node(s) had GPUs of another type than the pod's annotations request", resolvable=False
        ),
    ),
    filter=Filter(needs=_by_type, refuses=_is_of_another_type, lasting=False),
    hint=_hint,
)
