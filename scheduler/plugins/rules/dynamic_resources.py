"""DynamicResources: a node must have the devices that the pod's ResourceClaims request, or that they have already.

Source: kube-scheduler 1.37.1, dynamicresources/dynamicresources.go.
"""

from __future__ import annotations

import numpy as np

from scheduler.api.placement import Mode
from scheduler.api.selectors import NodeTerm
from scheduler.kernels import board as kernel
from scheduler.plugins import node_terms
from scheduler.plugins.claims import compiling, masks, needs
from scheduler.plugins.claims.needs import NAME
from scheduler.plugins.contract import (
    Asked,
    Change,
    Compiled,
    Domain,
    Held,
    Hint,
    Judged,
    Points,
    Reason,
    Row,
    RowReasons,
    Rule,
    Standing,
    Tally,
    is_never_wide,
)
from scheduler.plugins.contract import concerns_no_template as concerns
from scheduler.plugins.refusal import Refusal
from scheduler.plugins.volumes.everywhere import EVERYWHERE
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster

TOO_FEW = "cannot allocate all claims"
NOT_HERE = "resourceclaim not available on the node"
NOT_KNOWN = "too many ways to allocate all claims, not all were tried"
FAILED = "a selector of a claim or of its class failed on a device"
# Instead of ``TOO_FEW``, where the node has pools whose slices contradict each other.
INVALID = "invalid resource pools were encountered"
# In the order of the kernel's answers, see ``schema/devices.TOO_FEW``.
_TEXTS = (TOO_FEW, NOT_KNOWN, FAILED)
# In kube-scheduler's defaults.
_WEIGHT = 2
_Terms = tuple[tuple[NodeTerm, ...], ...]


def _make_hint(_: Held) -> Hint:
    """Devices became free, a slice, a class or a rule has changed, or a node has other labels."""
    return Hint(here=((Change.NODE_LABELS, None),), anywhere=((Change.CLAIMS, None),))


def _read_refusal(pod: Standing, _: Cluster) -> Refusal | None:
    return pod.claims.refusal if pod.claims else None


def _list_refusing(_: Refusal, __: Cluster) -> tuple[Tally, ...]:
    return (Tally(count=EVERYWHERE, gain=0),)


def _tell_refusal(judged: Judged) -> RowReasons:
    claims, n = judged.asked.claims, judged.rows.size
    text = claims.refusal.text if claims and claims.refusal else ""
    return RowReasons((text,), np.ones((n, 1), np.bool_), np.ones(n, np.bool_))


# The claims alone keep the pod off all nodes.
REFUSED = Rule(
    name=NAME,
    reasons=(Reason("the claims of the pod cannot be allocated", resolvable=False),),
    domain=Domain(concerns=concerns, needs=_read_refusal, tallies=_list_refusing),
    tell=_tell_refusal,
    texts=(
        needs.NOT_MADE,
        needs.NOT_FOUND,
        needs.DELETING,
        needs.NOT_OWNER,
        needs.NOT_OWNERS,
        needs.IN_USE,
        needs.IN_FLIGHT,
        needs.NO_CLASS,
        needs.PROBLEM,
        needs.LEFT,
    ),
    hint=_make_hint,
    is_of_pod=True,
)


def _compile_request(asked: Asked, cluster: Cluster) -> Compiled:
    claims = asked.claims or needs.Needs()
    ask = compiling.compile_claims(
        claims.pending, asked.placement, cluster.claims, claims.preferred
    )
    if claims.is_bound:
        ask = compiling.bind_requests(ask)
    return Compiled({"claims": ask})


def find_weight(asked: Asked) -> int:
    """Find the weight of the score by which nodes with earlier alternatives come first."""
    return asked.placement.kube.find_weight(NAME, _WEIGHT)


def _list_points(
    asked: Asked, _: c.Ask, __: c.Nodes, board: c.Board, row: int
) -> tuple[Points, ...]:
    """List the points of a row for the alternatives that claims get there."""
    weight = find_weight(asked)
    if not (board.choices.size and weight):
        return ()
    points = kernel.normalize_choice(board, row)
    return (Points(NAME, int(board.choices[row]), points, weight),)


def _tell_reasons(judged: Judged) -> RowReasons:
    bits = judged.first + np.arange(len(_TEXTS))
    which: c.Flags = ((judged.bits[0][:, None] >> bits) & 1) == 1
    is_invalid = which[:, 0] & np.isin(judged.rows, judged.cluster.claims.inventory.list_invalid())
    which[:, 0] &= ~is_invalid
    texts = TOO_FEW, NOT_KNOWN, _find_failure(judged), INVALID
    return RowReasons(texts, np.column_stack((which, is_invalid)), _find_lasting(judged))


def _find_failure(judged: Judged) -> str:
    """Find what a selector that failed says."""
    pending = judged.asked.claims.pending if judged.asked.claims else ()
    claims = judged.cluster.claims
    found = (
        text
        for shape in pending
        for leaf in masks.get_masks(claims, shape).leaves
        for text in leaf.problems.values()
    )
    return next(found, FAILED).replace(masks.CLAIM, "of the pod")


def _find_lasting(judged: Judged) -> c.Flags:
    """Find the rows where no eviction would help: those without devices, and by kube-scheduler's rules all."""
    if judged.asked.placement.mode == Mode.KUBE_SCHEDULER:
        return np.ones(judged.rows.size, np.bool_)
    none: c.Flags = judged.cluster.claims.table.columns.spans_of[1, judged.rows] == 0
    return none


# The node has too few free devices for the claims that are pending.
ALLOCATED = Rule(
    name=NAME,
    reasons=(Reason(TOO_FEW), Reason(NOT_KNOWN), Reason(FAILED)),
    row=Row(compile=_compile_request, bit=c.BIT_CLAIMS, points=_list_points),
    tell=_tell_reasons,
    lasting=_find_lasting,
    texts=(*_TEXTS, INVALID),
    hint=_make_hint,
)


class _Elsewhere:
    """A count that is 1 on nodes on which a claim's devices cannot be used."""

    def __init__(self, terms: _Terms, cluster: Cluster) -> None:
        self._terms, self._cluster = terms, cluster

    @property
    def version(self) -> int:
        """Rises when nodes have other labels."""
        return self._cluster.storage.labelled.position

    def list_by_row(self, capacity: int) -> c.Ints:
        """Return [capacity] whether any of the claims is elsewhere."""
        nodes = self._cluster.nodes
        rows = np.array(sorted(nodes.rows.values()), np.int64)
        found = np.zeros(capacity, np.int64)
        for terms in self._terms:
            found[rows] |= ~node_terms.match_any(terms, nodes, rows)
        return found


def _read_terms(pod: Standing, _: Cluster) -> _Terms | None:
    return (pod.claims.terms or None) if pod.claims else None


def _list_elsewhere(terms: _Terms, cluster: Cluster) -> tuple[Tally, ...]:
    return (Tally(count=_Elsewhere(terms, cluster), gain=0),)


# The devices that the claims have already are elsewhere.
AVAILABLE = Rule(
    name=NAME,
    reasons=(Reason(NOT_HERE, resolvable=False),),
    domain=Domain(
        concerns=concerns, needs=_read_terms, tallies=_list_elsewhere, is_wide=is_never_wide
    ),
    hint=_make_hint,
)
