"""What explanations read."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.cycle.schedule import Cycle
from scheduler.state.space_quotas import SpaceQuotas
from scheduler.telling.advice.asking import Asking
from scheduler.tenancy.kai.accounts import Accounts
from scheduler.waiting.pending import Pending


class Scene(NamedTuple):
    """The state and the queue; an explanation leaves both unchanged.

    Attributes:
        asking: answers questions about pods.
        cycle: places pods in trials.
        shares: the accounts of KAI's queues.
        spaces: the quotas of devices by namespace.
    """

    asking: Asking
    cycle: Cycle
    pending: Pending
    shares: Accounts
    spaces: SpaceQuotas
