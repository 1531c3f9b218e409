"""Runs a workload in which running pods are moved now and then, by plans of ``evenkeel plan defrag``.

Every ten minutes the engine plans at most so many moves. Each is carried out as a StatefulSet does it: the pod leaves, those
that wait have their turn, then a pod like it comes. If that one goes elsewhere than planned, or has to wait,
the rest of the plan is left, and the next plan sees the cluster as it is.
"""

from __future__ import annotations

import heapq
from dataclasses import replace

from scheduler.api.door import events
from scheduler.defrag.contract import Move, Terms, What
from scheduler.engine.questions.defrag import PlanOfMoves
from scheduler.replay.experiment import (
    Floats,
    Ints,
    Moved,
    RunOptions,
    Series,
    Tell,
    Trace,
    Workload,
    ignore_progress,
)
from scheduler.replay.run import Replay
from scheduler.replay.stopping import gather_stays

# Seconds between two plans, and for how long a pod runs before it is moved.
EVERY = 600.0


def run_moving(
    trace: Trace, workload: Workload, options: RunOptions, tell: Tell = ignore_progress
) -> Series:
    """Play a workload with at most ``options.defrag`` moves in each plan; ``tell`` gets the progress."""
    return MovingReplay(trace, workload, options).play(tell)


class MovingReplay(Replay):
    """One run with moves."""

    def __init__(self, trace: Trace, workload: Workload, options: RunOptions) -> None:
        super().__init__(trace, workload, options)
        # Only a pod that is shown as its kubelet shows it says since when it runs.
        self._shows_running = True
        self._next_plan = EVERY
        # By the arrival of a pod on a node: the index of the node, and since when it is there.
        self._there: dict[int, tuple[int, float]] = {}
        self._stays: list[tuple[int, int, float, float, bool]] = []
        self._moving: int | None = None
        self._n_moves = self._n_missed = self._n_cards = self._n_let_in = 0

    def _run_until(self, at: float) -> None:
        while self._next_plan <= at:
            super()._run_until(self._next_plan)
            self._carry_out_plan(self._next_plan)
            self._next_plan += EVERY
        super()._run_until(at)

    def _carry_out_plan(self, at: float) -> None:
        self._now = at
        terms = Terms(
            kept={},
            own=frozenset(),
            now=at,
            run_seconds=EVERY,
            most=self._options.defrag,
            ends_first=frozenset(map(str, self._there)),
        )
        for bundle in self.engine.ask(PlanOfMoves(terms)).bundles:
            for move in bundle:
                if not self._carry_out(move, at):
                    self._n_missed += 1
                    return

    def _carry_out(self, move: Move, at: float) -> bool:
        """Move a pod; return whether it went where it was planned to go."""
        i = int(move.uid)
        self._n_moves += 1
        self._end_stay(i, at)
        self.engine.handle(events.Gone("Pod", move.uid), at)
        self._allocated -= self._amounts[self._workload.pod[i]]
        n_there = len(self._there)
        if self._has_waiting():
            self._decide(at)
        self._n_let_in += len(self._there) - n_there
        self.engine.handle(events.Seen(self._make_pod(i, int(self._workload.pod[i]))), at)
        self._decide(at)
        is_planned = i in self._there and self._there[i][0] == self._nodes[move.came.node]
        if is_planned:
            self._n_cards += sum(one.what != What.NODE for one in move.freed)
        return is_planned

    def _note_placed(self, i: int, node: str, at: float) -> None:
        if self._node[i] < 0:
            super()._note_placed(i, node, at)
        else:
            # It was moved: it leaves when it would have left.
            self._node[i] = self._nodes[node]
            self._allocated += self._amounts[self._workload.pod[i]]
        self._there[i] = self._nodes[node], at

    def _leave(self, at: float) -> None:
        i = self._leaving[0][1]
        if i in self._there:
            self._end_stay(i, at)
            super()._leave(at)
            return
        # It was moved, and waits for a node.
        heapq.heappop(self._leaving)
        self._now = at
        self.engine.handle(events.Gone("Pod", str(i)), at)

    def _end_stay(self, i: int, at: float) -> None:
        node, start = self._there.pop(i)
        unit = self._workload.unit_seconds
        self._stays.append((i, node, start / unit, at / unit, False))

    def _make_series(
        self, asked: Ints, allocated: Ints, frag: Floats, occupied: Ints, seconds: float
    ) -> Series:
        unit = self._workload.unit_seconds
        ends = {i: end for end, i in self._leaving}
        for i, (node, start) in self._there.items():
            end = ends.get(i, float("inf"))
            self._stays.append((i, node, start / unit, end / unit, False))
        series = super()._make_series(asked, allocated, frag, occupied, seconds)
        moved = Moved(self._n_moves, self._n_missed, self._n_cards, self._n_let_in)
        return replace(series, stays=gather_stays(self._stays), moved=moved)
