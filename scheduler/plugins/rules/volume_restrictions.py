"""VolumeRestrictions: pods of one node must not share some disks, and only one pod may use some claims.

Source: kube-scheduler's volumerestrictions/volume_restrictions.go.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduler.api.pods.volumes import Disk
from scheduler.plugins.contract import Change, Domain, Held, Hint, Reason, Rule, Standing, Tally
from scheduler.plugins.contract import concerns_no_template as concerns
from scheduler.plugins.volumes.refusals import RESTRICTIONS
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.volumes.objects import ClaimKey
from scheduler.state.volumes.uses import Uses

_DISK, _CLAIM = 0, 1


class _Needs(NamedTuple):
    disks: tuple[Disk, ...]
    exclusive: tuple[ClaimKey, ...]


class _InUse:
    """On every row, how many pods on any node use one of several claims."""

    def __init__(self, uses: Uses, claims: tuple[ClaimKey, ...]) -> None:
        self._uses, self._claims = uses, claims

    @property
    def version(self) -> int:
        """The number of pods itself, because nothing else can change."""
        return self._count_pods()

    def list_by_row(self, capacity: int) -> c.Ints:
        """[capacity] the number of pods."""
        return np.full(capacity, self._count_pods(), np.int64)

    def _count_pods(self) -> int:
        return sum(self._uses.find_rows(claim).total() for claim in self._claims)


def _read_needs(pod: Standing, _: Cluster) -> _Needs | None:
    storage = pod.storage
    if storage is None or not (storage.disks or storage.exclusive):
        return None
    return _Needs(storage.disks, storage.exclusive)


def _list_tallies(needs: _Needs, cluster: Cluster) -> tuple[Tally, ...]:
    uses = cluster.storage.uses
    found: list[Tally] = []
    if needs.disks:
        conflicts = uses.count_conflicts(needs.disks)
        found.append(Tally(count=conflicts, gain=conflicts.of_one, reason=_DISK))
    if needs.exclusive:
        found.append(Tally(count=_InUse(uses, needs.exclusive), gain=0, reason=_CLAIM))
    return tuple(found)


def _is_wide(needs: _Needs) -> bool:
    return bool(needs.exclusive)


def _make_hint(held: Held) -> Hint:
    """A pod with one of the disks leaves the node, or a pod with one of the claims leaves any node."""
    needs: _Needs = held.need
    return Hint(
        here=tuple((Change.POD_LEFT, disk[:2]) for disk in needs.disks),
        anywhere=tuple((Change.POD_LEFT, claim) for claim in needs.exclusive),
    )


RULE = Rule(
    name=RESTRICTIONS,
    reasons=(
        Reason("node(s) had no available disk"),
        Reason(
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
            "already in-use by another pod"
        ),
    ),
    domain=Domain(concerns=concerns, needs=_read_needs, tallies=_list_tallies, is_wide=_is_wide),
    hint=_make_hint,
)
