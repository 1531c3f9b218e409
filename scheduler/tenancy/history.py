"""What local queues have used over time, which fades by half in each half-life.

Source: Kueue (2026-08), ``pkg/util/admissionfairsharing``. Kueue takes samples; here what is used is added up whenever
it changes or is asked for, which gives the same at the time of each sample and depends on no clock. Two things differ
where nobody has set them: the half-life is a week instead of nothing, and an amount of a resource counts as the part
that it is of all there is, so that no resource weighs more because its unit is smaller.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler.api.queues.settings import HistorySettings

_CPU, _THOUSAND = "cpu", 1000.0
Resources = Mapping[str, float]


@dataclass(slots=True)
class _Account:
    """What a local queue has used, in cores, bytes and counts.

    Attributes:
        consumed: what it has used on average, recent times counting more.
        using: what it uses.
        at: up to when ``consumed`` is added up.
        ahead: what counts at once of workloads that have just started, and until when.
    """

    consumed: dict[str, float] = field(default_factory=dict)
    using: dict[str, float] = field(default_factory=dict)
    at: float = 0.0
    ahead: dict[str, tuple[float, dict[str, float]]] = field(default_factory=dict)


class History:
    """The accounts of all local queues."""

    def __init__(self, settings: HistorySettings) -> None:
        self._settings = settings
        self._accounts: dict[str, _Account] = {}

    def find_part(self, seconds: float) -> float:
        """Return which part of the average the last so many seconds are."""
        if self._settings.half_life_seconds <= 0:
            return 0.0
        return 1.0 - math.pow(0.5, max(0.0, seconds) / self._settings.half_life_seconds)

    def _settle(self, local: str, now: float) -> _Account:
        """Add up an account until now."""
        account = self._accounts.setdefault(local, _Account(at=now))
        if now > account.at:
            part = self.find_part(now - account.at)
            account.consumed = {
                name: (1 - part) * account.consumed.get(name, 0.0)
                + part * account.using.get(name, 0.0)
                for name in sorted(account.consumed.keys() | account.using.keys())
            }
            account.at = now
        # They are in the order of their times.
        over = itertools.takewhile(lambda one: one[1][0] <= now, account.ahead.items())
        for key, _ in list(over):
            del account.ahead[key]
        return account

    def restore(self, local: str, consumed: Resources, at: float) -> None:
        """Take over what was written down of a local queue, if nothing is known of it."""
        if local not in self._accounts:
            self._accounts[local] = _Account(consumed=dict(consumed), at=at)

    def list_known(self) -> dict[str, dict[str, object]]:
        """Return all accounts in plain values, from which ``take_over`` makes them again."""
        return {
            local: {
                "consumed": dict(one.consumed),
                "using": dict(one.using),
                "at": one.at,
                "ahead": {key: (until, dict(of)) for key, (until, of) in one.ahead.items()},
            }
            for local, one in self._accounts.items()
        }

    def take_over(self, local: str, known: Mapping[str, Any]) -> None:
        """Take over an account in the place of what is known of it."""
        self._accounts[local] = _Account(
            dict(known["consumed"]),
            dict(known["using"]),
            known["at"],
            {key: (until, dict(of)) for key, (until, of) in known["ahead"].items()},
        )

    def start(
        self, local: str, key: str, amounts: Mapping[tuple[str, str], int], now: float
    ) -> None:
        """Let a workload use amounts from now on, in base units by flavor and resource.

        What it will have used soon counts at once.
        """
        account = self._settle(local, now)
        using = _sum_by_resource(amounts)
        for name, amount in using.items():
            account.using[name] = account.using.get(name, 0.0) + amount
        part = self.find_part(self._settings.sampling_seconds)
        ahead = {name: part * amount for name, amount in using.items()}
        account.ahead.pop(key, None)
        account.ahead[key] = now + self._settings.sampling_seconds, ahead

    def end(self, local: str, key: str, amounts: Mapping[tuple[str, str], int], now: float) -> None:
        """Let a workload use amounts no longer."""
        account = self._settle(local, now)
        for name, amount in _sum_by_resource(amounts).items():
            left = account.using.get(name, 0.0) - amount
            account.using[name] = left if left > 1e-9 * amount else 0.0
        account.ahead.pop(key, None)

    def forget(self, local: str) -> None:
        """Forget a local queue that is gone."""
        self._accounts.pop(local, None)

    def find_usage(self, local: str, weight: float, total: Resources, now: float) -> float:
        """Return how much a local queue has used, divided by its weight.

        Args:
            local: the local queue.
            weight: its weight; what has none has used infinitely much.
            total: what there is of each resource, in cores, bytes and counts.
            now: in seconds since 1970.
        """
        if weight <= 0:
            return math.inf
        used = 0.0
        counted = self.list_consumed(local, now)
        for name in sorted(counted):
            used += self._weigh(name, total) * counted[name]
        return used / weight

    def list_consumed(self, local: str, now: float, *, with_ahead: bool = True) -> dict[str, float]:
        """List what a local queue has used on average, in cores, bytes and counts."""
        if local not in self._accounts:
            return {}
        account = self._settle(local, now)
        found = dict(account.consumed)
        for _, ahead in account.ahead.values() if with_ahead else ():
            for name, amount in ahead.items():
                found[name] = found.get(name, 0.0) + amount
        return found

    def _weigh(self, name: str, total: Resources) -> float:
        if self._settings.weights is not None:
            return self._settings.weights.get(name, 1.0)
        return 1.0 / total[name] if total.get(name) else 0.0


def _sum_by_resource(amounts: Mapping[tuple[str, str], int]) -> dict[str, float]:
    """Sum up amounts in base units by resource, as cores, bytes and counts."""
    total: dict[str, float] = {}
    for (_, name), amount in amounts.items():
        used = amount / _THOUSAND if name == _CPU else float(amount)
        total[name] = total.get(name, 0.0) + used
    return total
