"""NodeVolumeLimits: a node takes a limited number of volumes of a CSI driver; some drivers must run on the node.

Source: kube-scheduler's nodevolumelimits/csi.go.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from scheduler.api.in_tree import Handle
from scheduler.plugins.contract import (
    VOLUMES_IN_USE,
    Change,
    Domain,
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
from scheduler.plugins.volumes import refusals
from scheduler.plugins.volumes.everywhere import EVERYWHERE
from scheduler.plugins.volumes.needs import Needs
from scheduler.plugins.volumes.refusals import LIMITS
from scheduler.schema import columns as c
from scheduler.schema import domains as of_domains
from scheduler.state.cluster import Cluster
from scheduler.state.volumes.uses import NO_LIMIT

_UNCOUNTED, _NOT_THERE, _FULL = 0, 1, 2
_TOO_MANY = "node(s) exceed max volume count"
_MISSING = "{} CSI driver is not installed on the node"


class _Needs(NamedTuple):
    uncounted: str
    brought: tuple[tuple[str, int], ...]
    shared: tuple[Handle, ...]
    drivers: tuple[tuple[str, bool], ...]


class _WithShared:
    """By row, how many volumes of a driver are used, without the pod's volumes that other pods on the row already use.

    If a pod brings no new volume, nothing is checked: a node may be over its limit already.
    """

    def __init__(
        self, cluster: Cluster, driver: str, shared: tuple[Handle, ...], *, brings: bool
    ) -> None:
        self._uses, self._shared, self._brings = cluster.storage.uses, shared, brings
        self._full = self._uses.count_full(driver)

    @property
    def version(self) -> int:
        """Rises when a driver's used volumes or the places of shared volumes change."""
        return self._full.version + self._uses.n_moves

    def list_by_row(self, capacity: int) -> c.Ints:
        """[capacity] the used volumes."""
        found = self._full.list_by_row(capacity).copy()
        there = Counter(
            row for handle in self._shared for row in self._uses.list_rows_holding(handle)
        )
        for row, n in there.items():
            is_all = n == len(self._shared) and not self._brings
            found[row] = 0 if is_all else found[row] - n
        return found


class _Absent:
    """By row, whether a driver does not run on the node."""

    def __init__(self, cluster: Cluster, driver: str, *, is_moved: bool) -> None:
        self._nodes, self._storage = cluster.nodes, cluster.storage
        self._driver, self._is_moved = driver, is_moved

    @property
    def version(self) -> int:
        """Rises when a node reports other drivers, and when nodes or their labels change."""
        return self._storage.versions["CSINode"] + self._storage.labelled.position

    def list_by_row(self, capacity: int) -> c.Ints:
        """[capacity] 1 where the driver does not run."""
        found = np.zeros(capacity, np.int64)
        for name, row in self._nodes.rows.items():
            there = self._storage.uses.drivers.get(name)
            if there is None:
                # A node that reports no drivers has not moved in-tree volumes to CSI drivers: it needs none for them.
                found[row] = not self._is_moved
            else:
                found[row] = self._driver not in there.limits
        return found


def _read_needs(pod: Standing, _: Cluster) -> _Needs | None:
    storage = pod.storage
    if storage is None:
        return None
    if not (storage.uncounted or storage.brought or storage.shared or storage.drivers):
        return None
    return _Needs(storage.uncounted, storage.brought, storage.shared, storage.drivers)


def _list_tallies(needs: _Needs, cluster: Cluster) -> tuple[Tally, ...]:
    if needs.uncounted:
        return (Tally(count=EVERYWHERE, gain=0, reason=_UNCOUNTED),)
    found = [
        Tally(count=_Absent(cluster, driver, is_moved=is_moved), gain=0, reason=_NOT_THERE)
        for driver, is_moved in needs.drivers
    ]
    brought = Counter(dict(needs.brought))
    for driver in sorted({*brought, *(one.driver for one in needs.shared)}):
        shared = tuple(one for one in needs.shared if one.driver == driver)
        n = brought[driver] + len(shared)
        full = cluster.storage.uses.count_full(driver)
        found.append(
            Tally(
                count=_WithShared(cluster, driver, shared, brings=brought[driver] > 0)
                if shared
                else full,
                gain=n,
                kind=of_domains.ROOM,
                reason=_FULL,
                figures={of_domains.TALLY_SELF: n, of_domains.TALLY_SKEW: NO_LIMIT},
            )
        )
    return tuple(found)


def _tell_reasons(judged: Judged) -> RowReasons:
    """Make the texts: a claim that cannot be counted is reported alone; only the first missing driver is named."""
    storage, n = judged.asked.storage or Needs(), judged.rows.size
    if storage.uncounted:
        return RowReasons((storage.uncounted,), np.ones((n, 1), np.bool_), np.ones(n, np.bool_))
    texts: list[str] = []
    columns: list[c.Flags] = []
    is_absent = (judged.bits[0] & -judged.bits[0]) == 1 << (judged.first + _NOT_THERE)
    left: c.Flags = is_absent.copy()
    capacity = judged.cluster.nodes.capacity
    for driver, is_moved in storage.drivers:
        absent = _Absent(judged.cluster, driver, is_moved=is_moved).list_by_row(capacity)
        which: c.Flags = left & (absent[judged.rows] > 0)
        left &= ~which
        texts.append(_MISSING.format(driver))
        columns.append(which)
    texts.append(RULE.reasons[_FULL].text)
    columns.append(~is_absent)
    return RowReasons(tuple(texts), np.array(columns).T, np.zeros(n, np.bool_))


def _make_hint(_: Held) -> Hint:
    """List the changes that can end a refusal.

    On the node: a volume is no longer used there, or a shared volume comes. Anywhere: a driver is installed or has room
    for more volumes. Pods that name a changed claim are tried again in any case.
    """
    return Hint(here=(VOLUMES_IN_USE,), anywhere=((Change.STORAGE, None),))


RULE = Rule(
    name=LIMITS,
    reasons=(
        Reason(refusals.LOOKED_UP, resolvable=False),
        Reason(_MISSING),
        Reason(_TOO_MANY),
    ),
    domain=Domain(
        concerns=concerns, needs=_read_needs, tallies=_list_tallies, is_wide=is_never_wide
    ),
    tell=_tell_reasons,
    texts=(refusals.LOOKED_UP, refusals.OF_OTHERS, _MISSING, _TOO_MANY),
    hint=_make_hint,
)
