"""How a replica runs, apart from what it decides."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scheduler.api import names
from scheduler.config import Config
from scheduler.kube.client import Access


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a replica runs, apart from what it decides.

    Attributes:
        lease_namespace: where the Lease is; empty runs without leader election.
        lease_name: what it is called; another name than Evenkeel's own is one that it shares.
        lease_seconds: after how long others take the lease whose holder does not renew it.
        port: probes and metrics; 0 takes a free port.
        record: file for the engine's log; None for none.
        record_bytes: the most that the log may take, its older half included.
    """

    access: Access
    config: Config
    identity: str
    lease_namespace: str = ""
    lease_name: str = names.LEASE
    lease_seconds: float = 15.0
    host: str = "127.0.0.1"
    port: int = 0
    record: Path | None = None
    record_bytes: int = 512 << 20

    @property
    def lease_times(self) -> tuple[float, float, float]:
        """Duration, deadline and retry of the lease, in seconds: in the ratio that client-go has by default."""
        seconds = self.lease_seconds
        return seconds, seconds * 10 / 15, seconds * 2 / 15

    @property
    def shares_lease(self) -> bool:
        """Whether other schedulers take their turns by the same lease: kube-scheduler, by its own."""
        return self.lease_name != names.LEASE
