"""What answers are read from: what the engine owns, until a fresh start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from scheduler.cycle.schedule import Cycle
from scheduler.engine.intake import Intake
from scheduler.engine.keeping import Keeper
from scheduler.shapes.policies import PolicyBook
from scheduler.state.cluster import Cluster
from scheduler.state.space_quotas import SpaceQuotas
from scheduler.tenancy.kai.accounts import Accounts
from scheduler.tenancy.tenants import Tenants
from scheduler.waiting.pending import Pending


class Inside(NamedTuple):
    """The parts of one engine, to be read.

    Attributes:
        cycle: places pods in trials only.
        intake: pods that wait to be compiled.
        keepers: who keeps the objects of each kind, by its name.
        tenants: the queues, with those who wait in them and those who have quota.
        shares: the accounts of KAI's queues.
        spaces: the quotas of devices by namespace.
    """

    cluster: Cluster
    policies: PolicyBook
    pending: Pending
    cycle: Cycle
    intake: Intake
    keepers: Mapping[str, Keeper]
    tenants: Tenants
    shares: Accounts
    spaces: SpaceQuotas
