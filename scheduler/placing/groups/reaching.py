"""Among which nodes a group goes whose pods share a claim: devices that several nodes can use can be used on these alone.

All pods with the claim are where its devices can be used, such as within one domain of a fast network. The first pod would
choose its devices by what suits it, and the others might not fit where these can be used. So the group is tried among the
nodes of one such set after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from scheduler.api.claims.answers import ClaimKey
from scheduler.placing.groups.ordering import Kind
from scheduler.plugins.claims import masks
from scheduler.schema import columns as c
from scheduler.state.claims.objects import Claim
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Team
from scheduler.state.pods import PodRecord

# So many sets of nodes are tried, and looked at, for one group.
_TRIES_MAX, _SETS_MAX = 64, 1024


class _Spans(NamedTuple):
    """Devices that are neighbours, and on which nodes they are.

    Attributes:
        first, end: [s] the first device, and the one behind the last.
        nodes: [s] for each the rows of the nodes.
    """

    first: c.Ints
    end: c.Ints
    nodes: Sequence[c.Ints]


def list_reaches(
    cluster: Cluster, team: Team, list_kinds: Callable[[Team], Iterable[Kind]], among: c.Flags
) -> list[c.Flags]:
    """List [N] the sets of nodes on which a claim could have devices that pods share, the one with the least room first.

    Only sets with room for the minimum of each kind are listed; no set if no claim ties the pods to any.
    """
    claims = cluster.claims
    if not claims.inventory.has_shared:
        return []
    shared = _list_shared(cluster, (pod for leaf in team.list_leaves() for pod in leaf.pods))
    spans = _read_spans(cluster) if shared else None
    if spans is None:
        return []
    choices = [sets for claim in shared if (sets := _list_sets(cluster, claim, spans))]
    if not choices:
        return []
    kinds = list(list_kinds(team))
    found: dict[bytes, c.Flags] = {}
    for _, chosen in zip(range(_SETS_MAX), product(*choices), strict=False):
        rows = np.all(chosen, axis=0)
        rows = rows & among if among.size else rows
        if rows.any():
            found.setdefault(rows.tobytes(), rows)
    fitting = [
        rows
        for rows in found.values()
        if all(int(kind.places[rows].sum()) >= kind.least for kind in kinds)
    ]
    rank = cluster.nodes.columns.rank
    fitting.sort(
        key=lambda rows: (
            sum(int(kind.places[rows].sum()) for kind in kinds),
            int(rank[rows].min()),
        )
    )
    return fitting[:_TRIES_MAX]


def _list_shared(cluster: Cluster, pods: Iterable[PodRecord]) -> list[Claim]:
    """List the claims without devices that several of some pods have."""
    claims = cluster.claims
    n_users: dict[ClaimKey, int] = {}
    for pod in pods:
        for one in {one.name: one for one in pod.claims}.values():
            key = pod.namespace, one.name or ""
            n_users[key] = n_users.get(key, 0) + 1
    keys = [key for key, n in n_users.items() if n > 1 and claims.find_given(key) is None]
    return [claims.claims[key] for key in keys if key in claims.claims]


def _list_sets(cluster: Cluster, claim: Claim, spans: _Spans) -> list[c.Flags]:
    """List [N] for each device that a claim could have on which nodes it can be used, each set once; none where nothing is said.

    Of several requests the one counts whose devices are in the most sets.
    """
    leaves, best = iter(masks.get_masks(cluster.claims, claim.shape).leaves), dict[bytes, c.Flags]()
    for request in claim.shape.requests:
        found: dict[bytes, c.Flags] = {}
        for _ in request.leaves:
            _add_sets(cluster, next(leaves), spans, found)
        best = found if len(found) > len(best) else best
    n_nodes = len(cluster.nodes.rows)
    sizes = [int(rows.sum()) for rows in best.values()]
    # Of devices that one node alone can use nothing is to be found out beforehand.
    is_telling = any(size > 1 for size in sizes) and min(sizes, default=0) < n_nodes
    return list(best.values()) if is_telling else []


def _add_sets(
    cluster: Cluster, mask: masks.Mask, spans: _Spans, found: dict[bytes, c.Flags]
) -> None:
    """Add the sets of nodes of the free devices that a leaf may have."""
    columns = cluster.claims.table.columns
    for first, end, nodes in zip(
        spans.first.tolist(), spans.end.tolist(), spans.nodes, strict=True
    ):
        kind = columns.kind[first:end]
        may = mask.kinds[kind] & (kind >= 0) & (columns.owners[first:end] == 0)
        may &= (columns.sharers[first:end] == 0) | columns.shareable[kind]
        if mask.picked is not None:
            may &= mask.picked[first:end]
        for reach in np.unique(columns.reach[first:end][may]).tolist():
            on = nodes if reach < 0 else nodes[columns.reaches[reach, nodes]]
            rows = np.zeros(cluster.nodes.capacity, np.bool_)
            rows[on] = True
            if on.size:
                found.setdefault(rows.tobytes(), rows)


def _read_spans(cluster: Cluster) -> _Spans:
    """Read which devices are on which nodes, neighbours of the same nodes together."""
    columns = cluster.claims.table.columns
    rows = np.array(sorted(cluster.nodes.rows.values()), np.int64)
    begins, counts = columns.spans_of[:, rows]
    owner = np.repeat(rows, counts)
    at = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    spans = columns.spans[np.repeat(begins, counts) + at]
    unique, inverse = np.unique(spans, axis=0, return_inverse=True)
    order = np.argsort(inverse.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(inverse.ravel(), minlength=len(unique)))
    nodes = np.split(owner[order], ends[:-1]) if len(unique) else []
    return _Spans(unique[:, 0], unique.sum(axis=1), nodes)
