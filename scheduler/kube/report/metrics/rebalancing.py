"""Metrics of the process that moves pods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, PlatformCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder


class RebalanceMetrics:
    """Counters of moves, and figures of the last plan of each policy."""

    def __init__(self, list_policies: Callable[[], Iterable[str]]) -> None:
        """``list_policies``: the names of the policies that there are; those that are gone have no plan any more."""
        self._list_policies = list_policies
        self._planned_for = set[str]()
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        self._moves = Counter(
            "evenkeel_rebalance_moves",
            "Pods that a RebalancePolicy had moved, by what became of the move.",
            ("policy", "outcome"),
            registry=self._registry,
        )
        self._planned, self._movable, self._planned_at = (
            Gauge(f"evenkeel_rebalance_{name}", text, ("policy",), registry=self._registry)
            for name, text in (
                ("planned_moves", "Moves of the last plan of a RebalancePolicy."),
                (
                    "movable_pods",
                    "Pods that a RebalancePolicy allowed to be moved at the last plan.",
                ),
                ("planned_timestamp_seconds", "When the last plan of a RebalancePolicy was made."),
            )
        )
        self._leads = Gauge(
            "evenkeel_rebalance_leading",
            "Whether this process moves pods: 1 or 0.",
            registry=self._registry,
        )

    def note_move(self, policy: str, outcome: str) -> None:
        """Note a move that has ended."""
        self._moves.labels(policy, outcome).inc()

    def note_plan(self, policy: str, n_moves: int, n_movable: int, at: float) -> None:
        """Note a plan, and when it was made in seconds since 1970."""
        self._planned_for.add(policy)
        self._planned.labels(policy).set(n_moves)
        self._movable.labels(policy).set(n_movable)
        self._planned_at.labels(policy).set(at)

    def note_leading(self, *, is_leading: bool) -> None:
        """Note whether this process leads."""
        self._leads.set(is_leading)

    async def make_text(self, accept: str) -> tuple[str, AsyncIterator[bytes]]:
        """Return the content type and the parts of the text for an ``Accept`` header."""
        for policy in self._planned_for.difference(self._list_policies()):
            self._planned_for.remove(policy)
            for gauge in (self._planned, self._movable, self._planned_at):
                gauge.remove(policy)
        encoder, content_type = choose_encoder(accept)
        text = encoder(self._registry)

        async def write() -> AsyncIterator[bytes]:
            yield text

        return content_type, write()
