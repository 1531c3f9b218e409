"""A whole run, one arrival after the other: who goes where when nothing is remembered or batched."""

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.oracles import fleet

Judge = Callable[[int, fleet.Node, fleet.Pod], float | None]
"""What placing the i-th arrival on a node is worth, higher is better; None: it does not fit."""
Cards = Callable[[int, fleet.Node, fleet.Pod], fleet.Charge]
"""The cards that it is given there."""


@dataclass(frozen=True)
class Arrival:
    """A pod, when it comes, and how long it stays once placed."""

    pod: fleet.Pod
    at: float
    lifetime: float = math.inf


@dataclass(frozen=True)
class Event:
    """A pod came or left."""

    what: str
    pod: fleet.Pod


class Replay:
    """The cluster as it stands.

    Attributes:
        nodes: by name; ties go to the first name.
        events: what happened so far.
        node: where each arrival went, empty: nowhere.
    """

    def __init__(self, nodes: Sequence[fleet.Node]) -> None:
        self.nodes = {node.name: node for node in sorted(nodes, key=lambda node: node.name)}
        self.events: list[Event] = []
        self.node: list[str] = []
        self._leaving: list[tuple[float, int, str, fleet.Charge]] = []

    def play(self, arrivals: Sequence[Arrival], judge: Judge, cards: Cards) -> list[str]:
        for i, arrival in enumerate(arrivals):
            while self._leaving and self._leaving[0][0] <= arrival.at:
                _, which, name, charge = heapq.heappop(self._leaving)
                gone = arrivals[which].pod
                self.nodes[name] = fleet.placed(self.nodes[name], gone, charge, -1)
                self.events.append(Event("left", gone))
            self.events.append(Event("came", arrival.pod))
            self.node.append(self._place(i, arrival, judge, cards))
        return self.node

    def _place(self, i: int, arrival: Arrival, judge: Judge, cards: Cards) -> str:
        best, where = -math.inf, ""
        for name, node in self.nodes.items():
            worth = judge(i, node, arrival.pod)
            if worth is not None and worth > best:
                best, where = worth, name
        if where:
            charge = cards(i, self.nodes[where], arrival.pod)
            self.nodes[where] = fleet.placed(self.nodes[where], arrival.pod, charge)
            leaves = arrival.at + arrival.lifetime
            if leaves < math.inf:
                heapq.heappush(self._leaving, (leaves, i, where, charge))
        return where
