"""What local queues used, which orders them (pkg/util/admissionfairsharing and pkg/cache/queue/afs)."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tests.oracles.kueue.amounts import read_float
from tests.oracles.kueue.workloads import Info, Manifest
from tests.oracles.quantities import exact

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_DIGITS = 10**9

Amounts = dict[str, Fraction]


@dataclass
class Ledger:
    """What local queues have used so far, and what was put on them for workloads that were admitted since."""

    config: Mapping[str, Any]
    weights: dict[str, float] = field(default_factory=dict)
    consumed: dict[str, Amounts] = field(default_factory=dict)
    penalties: dict[str, dict[str, Amounts]] = field(default_factory=dict)


def read_ledger(config: Mapping[str, Any], local_queues: Mapping[str, Manifest]) -> Ledger:
    """Read what the statuses of local queues say of their usage."""
    ledger = Ledger(config)
    for key, one in local_queues.items():
        weight = (one["spec"].get("fairSharing") or {}).get("weight")
        ledger.weights[key] = 1.0 if weight is None else read_float(weight)
        status = (one.get("status") or {}).get("fairSharing") or {}
        consumed = (status.get("admissionFairSharingStatus") or {}).get("consumedResources") or {}
        ledger.consumed[key] = {
            name: exact(str(text)) or Fraction(0) for name, text in consumed.items()
        }
    return ledger


def read_duration(text: str) -> float:
    """Read seconds of a duration as Go writes it."""
    return sum(
        float(n) * _UNITS[unit] for n, unit in re.findall(r"([\d.]+)(h|ms|m|us|µs|ns|s)", text)
    )


def add_penalty(ledger: Ledger, info: Info) -> None:
    """Put on the local queue at once what the workload is going to use until the next sample.

    All that its pods request counts, even where it was admitted with fewer pods.
    """
    half_life = read_duration(ledger.config.get("usageHalfLifeTime") or "0s")
    sampling = read_duration(ledger.config.get("usageSamplingInterval") or "5m")
    alpha = 1.0 - math.pow(0.5, sampling / half_life) if half_life else 0.0
    total: Amounts = {}
    for pod_set in info.pod_sets:
        for name, value in pod_set.requests.items():
            amount = Fraction(value, 1000 if name == "cpu" else 1)
            total[name] = total.get(name, Fraction(0)) + amount
    factor = Fraction(repr(alpha))
    penalty = {
        name: Fraction(math.floor(value * factor * _DIGITS), _DIGITS)
        for name, value in total.items()
    }
    ledger.penalties.setdefault(info.local_queue, {})[info.key] = penalty


def find_usage(ledger: Ledger, local_queue: str) -> float:
    """Find how much a local queue has used, all resources weighed and added up in cores, bytes and pieces."""
    amounts = dict(ledger.consumed.get(local_queue, {}))
    for penalty in ledger.penalties.get(local_queue, {}).values():
        for name, value in penalty.items():
            amounts[name] = amounts.get(name, Fraction(0)) + value
    weights = ledger.config.get("resourceWeights") or {}
    total = 0.0
    for name, value in sorted(amounts.items()):
        total += float(weights.get(name, 1)) * float(value)
    weight = ledger.weights.get(local_queue, 1.0)
    return math.inf if weight <= 0 else total / weight
