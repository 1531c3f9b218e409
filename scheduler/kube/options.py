"""How a replica runs, apart from what it decides."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scheduler.config import Config
from scheduler.kube.client import Access


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a replica runs, apart from what it decides.

    Attributes:
        lease_namespace: where the Lease is; empty runs without leader election.
        lease_seconds: duration, deadline and retry of the lease.
        port: probes and metrics; 0 takes a free port.
        record: file for the engine's log; None for none.
        record_bytes: the most that the log may take, its older half included.
    """

    access: Access
    config: Config
    identity: str
    lease_namespace: str = ""
    lease_name: str = "evenkeel"
    lease_seconds: tuple[float, float, float] = (15.0, 10.0, 2.0)
    host: str = "127.0.0.1"
    port: int = 0
    record: Path | None = None
    record_bytes: int = 512 << 20
