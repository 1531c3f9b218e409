"""Leadership without a lease."""

from __future__ import annotations

import structlog

from scheduler.kube.lead.holding import FoundLease, Held, Holder

_log = structlog.get_logger("evenkeel.lease")


class AlwaysLeader:
    """Leadership without a lease, for a single replica and for trials."""

    identity = "single"
    is_shared = False
    held = Held(until=float("inf"), term=1, reign=1)

    last_found = FoundLease()
    trouble = None
    n_errors = 0

    def find_holder(self) -> Holder:
        """Return this process."""
        return Holder.SELF

    def get_present_term(self) -> int:
        """Return the first term, which never ends."""
        return self.held.term

    async def observe_holder(self) -> None:
        """Read nothing: there is no lease."""

    async def run(self) -> None:
        """Log what the missing lease means: a second scheduler would bind pods to cards that this one has allocated."""
        _log.warning(
            "running without a lease: no other scheduler of the same name may run",
            risk="a second scheduler would allocate the same GPUs again",
            remedy="set --lease-namespace NAMESPACE",
        )

    async def release(self, *, settled_reign: int) -> None:
        """Give nothing back: there is no lease."""
