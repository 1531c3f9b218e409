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
        pod: namespace and name of the pod in which the replica runs; None outside of a cluster.
        lease_namespace: the namespace of the Lease; empty runs without leader election.
        lease_name: the name of the Lease; a Lease of another name than Evenkeel's own is shared.
        lease_seconds: after how long others take the lease if its holder does not renew it.
        port: the port for probes and metrics; 0 takes a free port.
        record: the file for the engine's log; None writes none.
        record_bytes: the most bytes of the log, its older half included.
    """

    access: Access
    config: Config
    identity: str
    pod: tuple[str, str] | None = None
    lease_namespace: str = ""
    lease_name: str = names.LEASE
    lease_seconds: float = 15.0
    host: str = "127.0.0.1"
    port: int = 0
    record: Path | None = None
    record_bytes: int = 512 << 20

    @property
    def lease_times(self) -> tuple[float, float, float]:
        """Duration, deadline and retry of the lease, in seconds, in client-go's default ratio."""
        seconds = self.lease_seconds
        return seconds, seconds * 10 / 15, seconds * 2 / 15

    @property
    def shares_lease(self) -> bool:
        """Whether other schedulers take turns by the same lease, as kube-scheduler does by its own."""
        return self.lease_name != names.LEASE
