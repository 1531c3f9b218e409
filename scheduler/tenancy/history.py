"""What local queues have used over time, which fades by half in each half-life.

Source: Kueue (2026-08), ``pkg/util/admissionfairsharing``. Kueue takes samples; here what is used is added up whenever
it changes or is asked for, which gives the same at the time of each sample and depends on no clock. What was written
down of a local queue is taken over when its object is seen first, and what its workloads have used since then is added.
Two things differ where they are not set: the half-life is a week instead of nothing, and an amount of a resource counts
as the part that it is of all there is, so that no resource weighs more because its unit is smaller.
"""

from __future__ import annotations

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
        opened_at: from when on is added up what it uses; 0 as long as the object of the local queue was not seen.
        early: workloads that were seen before that object: since when they use something, and what.
    """

    consumed: dict[str, float] = field(default_factory=dict)
    using: dict[str, float] = field(default_factory=dict)
    at: float = 0.0
    ahead: dict[str, tuple[float, dict[str, float]]] = field(default_factory=dict)
    opened_at: float = 0.0
    early: dict[str, tuple[float, dict[str, float]]] = field(default_factory=dict)


class History:
    """The accounts of all local queues."""

    def __init__(self, settings: HistorySettings) -> None:
        self._settings = settings
        self._accounts: dict[str, _Account] = {}

    @property
    def sampling_seconds(self) -> float:
        """How often what is used is added up if nothing happens."""
        return self._settings.sampling_seconds

    def find_part(self, seconds: float) -> float:
        """Return which part of the average the last so many seconds are."""
        if self._settings.half_life_seconds <= 0:
            return 0.0
        return 1.0 - math.pow(0.5, max(0.0, seconds) / self._settings.half_life_seconds)

    def settle(self, local: str, now: float) -> _Account:
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
        over = [key for key, (until, _) in account.ahead.items() if until <= now]
        for key in over:
            del account.ahead[key]
        return account

    def open(self, local: str, consumed: Resources, at: float, now: float) -> None:
        """Open the account of a local queue, once: take over what was written down of it.

        Args:
            local: the local queue.
            consumed: what it had used on average, in cores, bytes and counts.
            at: when that was, in seconds since 1970; 0 if nothing was written down.
            now: in seconds since 1970.
        """
        account = self._accounts.setdefault(local, _Account(at=now))
        if account.opened_at:
            return
        account.opened_at = account.at = min(at or now, now)
        account.consumed = dict(consumed) if at else {}
        early, account.early = account.early, {}
        self.settle(local, now)
        for key, (since, using) in early.items():
            self._begin(account, key, using, since)

    def list_known(self) -> dict[str, dict[str, object]]:
        """Return all accounts in plain values, from which ``take_over`` makes them again."""
        return {
            local: {
                "consumed": dict(one.consumed),
                "using": dict(one.using),
                "at": one.at,
                "ahead": {key: (until, dict(of)) for key, (until, of) in one.ahead.items()},
                "opened_at": one.opened_at,
                "early": {key: (since, dict(of)) for key, (since, of) in one.early.items()},
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
            known["opened_at"],
            {key: (since, dict(of)) for key, (since, of) in known["early"].items()},
        )

    def start(
        self, local: str, key: str, amounts: Mapping[tuple[str, str], int], now: float, since: float
    ) -> None:
        """Let a workload use amounts, in base units by flavor and resource; ``since``: since when it does.

        What it will have used soon counts at once.
        """
        account, using = self.settle(local, now), _sum_by_resource(amounts)
        if account.opened_at:
            self._begin(account, key, using, min(since, now))
        else:
            account.early[key] = min(since, now), using

    def _begin(self, account: _Account, key: str, using: Resources, since: float) -> None:
        """Add up in an account, which is added up until now, what a workload has used since it started."""
        part = self.find_part(account.at - max(since, account.opened_at))
        for name, amount in using.items():
            account.using[name] = account.using.get(name, 0.0) + amount
            if part:
                account.consumed[name] = account.consumed.get(name, 0.0) + part * amount
        until = since + self._settings.sampling_seconds
        if until > account.at:
            part = self.find_part(self._settings.sampling_seconds)
            account.ahead[key] = until, {name: part * amount for name, amount in using.items()}

    def end(self, local: str, key: str, amounts: Mapping[tuple[str, str], int], now: float) -> None:
        """Let a workload use amounts no longer."""
        account = self.settle(local, now)
        if account.early.pop(key, None) is not None:
            return
        for name, amount in _sum_by_resource(amounts).items():
            left = account.using.get(name, 0.0) - amount
            account.using[name] = left if left > 1e-9 * amount else 0.0
        account.ahead.pop(key, None)

    def forget(self, local: str) -> None:
        """Forget a local queue that is gone."""
        self._accounts.pop(local, None)

    def find_record(self, local: str) -> tuple[dict[str, float], float] | None:
        """Return what a local queue has used on average, and when that was so; None before its account is open.

        Nothing is added up for it, so the account stays the same to the last digit.
        """
        account = self._accounts.get(local)
        if account is None or not account.opened_at:
            return None
        return dict(account.consumed), account.at

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
        account = self.settle(local, now)
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
