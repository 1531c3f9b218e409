"""Questions about quotas of devices by namespace."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.api import wire
from scheduler.api.space_quotas import SpaceQuota
from scheduler.engine.questions.contract import Fact


class LimitState(NamedTuple):
    """A limit of a quota, and what is used of it, in units of its resource."""

    resource: str
    used: int
    hard: int


class SpaceQuotaState(NamedTuple):
    """A quota, with the state of each limit."""

    quota: SpaceQuota
    limits: tuple[LimitState, ...]


class SpaceQuotaStates(Fact[tuple[SpaceQuotaState, ...]], frozen=True):
    """The quotas of a namespace, or of all if none is named. The thread of the webhook asks, too."""

    namespace: str = ""


class SpaceQuotaExcess(Fact[str], frozen=True):
    """Which quota of its namespace a pod would exceed that is to be created, in words; empty for none.

    Of cards whose size is not known, a pod counts as little as there can be.
    """

    pod: wire.Pod
