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
        """This process."""
        return Holder.SELF

    def get_present_term(self) -> int:
        """Always the first."""
        return self.held.term

    async def observe_holder(self) -> None:
        """There is nothing to see."""

    async def run(self) -> None:
        """Nothing to keep, but to say what that means: a second one would bind what this one has given away."""
        _log.warning(
            "running without a lease: no other scheduler of the same name may run",
            risk="a second scheduler would allocate the same GPUs again",
            remedy="set --lease-namespace NAMESPACE",
        )

    async def release(self, *, settled_reign: int) -> None:
        """Nothing to give back."""
