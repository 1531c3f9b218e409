"""The moment that a start gives the first try to take the lease."""

from __future__ import annotations

import asyncio

from scheduler.kube.lead.always import AlwaysLeader
from scheduler.kube.lead.holding import Holder
from scheduler.kube.lead.lease import Lease

_WAIT_SECONDS, _LOOKS = 0.25, 25


async def wait_for_first_try(lease: Lease | AlwaysLeader) -> None:
    """Wait until the lease has a known holder, but only for a moment: the API server may be slow."""
    for _ in range(_LOOKS):
        if lease.find_holder() != Holder.NOBODY:
            return
        await asyncio.sleep(_WAIT_SECONDS / _LOOKS)
