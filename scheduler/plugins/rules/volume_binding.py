"""VolumeBinding: bound claims must be usable on the node; other claims must find a volume there or be provisioned.

If several claims refuse a node, all of them are reported, as kube-scheduler does. Nodes are preferred by how much of a
volume, or of the room left for volumes, the claims take.

Source: kube-scheduler's volumebinding/volume_binding.go, binder.go, scorer.go.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduler.api.kube_plugins import Curve
from scheduler.plugins.contract import (
    Change,
    Domain,
    DomainScore,
    Held,
    Hint,
    Judged,
    Reason,
    RowReasons,
    Rule,
    Standing,
    Tally,
    is_never_wide,
)
from scheduler.plugins.contract import concerns_no_template as concerns
from scheduler.plugins.volumes import binding
from scheduler.plugins.volumes.binding import Figures
from scheduler.plugins.volumes.needs import Bound, Unbound
from scheduler.plugins.volumes.refusals import BINDING
from scheduler.schema import columns as c
from scheduler.schema import domains as of_domains
from scheduler.state.cluster import Cluster

# The order is that of the figures in ``binding``.
_REASONS = (
    Reason("node(s) didn't match PersistentVolume's node affinity", resolvable=False),
    Reason("node(s) didn't find available persistent volumes to bind", resolvable=False),
    Reason("node(s) did not have enough free storage", resolvable=False),
    Reason(
        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
        resolvable=False,
    ),
)


class _Needs(NamedTuple):
    bound: tuple[Bound, ...]
    unbound: tuple[Unbound, ...]
    curve: Curve


def _read_needs(pod: Standing, _: Cluster) -> _Needs | None:
    storage = pod.storage
    if storage is None or not (storage.bound or storage.unbound):
        return None
    return _Needs(storage.bound, storage.unbound, storage.curve)


def _list_tallies(needs: _Needs, cluster: Cluster) -> tuple[Tally, ...]:
    verdict = binding.get_verdict(cluster, needs.bound, needs.unbound, needs.curve)
    if needs.unbound:
        figures = [binding.AFFINITY, binding.NO_MATCH, binding.NO_ROOM, binding.MISSING]
    else:
        figures = [binding.AFFINITY, binding.MISSING]
    found = [Tally(count=Figures(verdict, one), gain=0, reason=one) for one in figures]
    if needs.unbound:
        found.append(Tally(kind=of_domains.POINTS, count=Figures(verdict, binding.SCORE), gain=0))
    return tuple(found)


def _tell_reasons(judged: Judged) -> RowReasons:
    bits = judged.first + np.arange(len(_REASONS))
    which: c.Flags = ((judged.bits[0][:, None] >> bits) & 1) == 1
    return RowReasons(
        tuple(one.text for one in _REASONS), which, np.ones(judged.rows.size, np.bool_)
    )


def _make_hint(_: Held) -> Hint:
    """A node gets other labels, which any volume or class may select by; or a storage object changes."""
    return Hint(here=((Change.NODE_LABELS, None),), anywhere=((Change.STORAGE, None),))


RULE = Rule(
    name=BINDING,
    reasons=_REASONS,
    domain=Domain(
        concerns=concerns,
        needs=_read_needs,
        tallies=_list_tallies,
        score=DomainScore(how=c.AS_IS, weight=1),
        is_wide=is_never_wide,
    ),
    tell=_tell_reasons,
    texts=tuple(one.text for one in _REASONS),
    hint=_make_hint,
)
