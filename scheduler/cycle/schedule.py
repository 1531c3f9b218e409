"""Decide for a batch: runs of like pods go to the placing kernel as one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scheduler.api.door.decisions import Barriers, Diagnosis, Hold, Outcome
from scheduler.cycle.asking import Answers
from scheduler.disruption.attempts import NOTHING
from scheduler.kernels import place
from scheduler.modes.demand_tables import Counts
from scheduler.placing import runs
from scheduler.plugins import barriers, table
from scheduler.schema import columns as c
from scheduler.shapes import diagnosis
from scheduler.shapes.boards import Key, Shape
from scheduler.shapes.cold import Cold
from scheduler.shapes.policies import PolicyBook
from scheduler.shapes.views import ALONE
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

# The most picks of cards that a kernel makes in one call, if not of one pod: they are kept until they are told.
_PICKS_MAX = 65_536
# Nodes that are asked for room in one call, and no pod is looked at any more: about 10 ms.
_ASKED_MAX = 8192


class _Nowhere(NamedTuple):
    """What keeps pods off all nodes; ``why`` where somebody asks."""

    why: Diagnosis | None
    barriers: Barriers


class Cycle(Answers):
    """Chooses nodes and cards; what it decides it assumes in the cluster at once."""

    def __init__(
        self,
        cluster: Cluster,
        policies: PolicyBook,
        known: Counts | None = None,
        seed: int = 0,
    ) -> None:
        """With ``known`` the demand is not learnt but given; ``seed`` is for the mode that draws lots."""
        super().__init__(cluster, policies, known)
        cluster.lots.begin(seed)
        self.cold = Cold(cluster, self.learner, self.boards.statics)

    def schedule(self, batch: Sequence[PodRecord], *, explain: bool = True) -> Outcome:
        """Decide for pending pods, in the order given.

        Same columns and batch, same outcome; a run of like pods comes out as one by one. Unless
        ``explain``, holds do not say why, which takes longer than the decision.
        """
        self._begin()
        outcome = Outcome()
        self.attempts.spent = n_done = 0
        for key, run in runs.split_runs(batch, self._key_of, self._cluster):
            if self.attempts.spent >= _ASKED_MAX:
                outcome.left += [pod.uid for pod in batch[n_done:]]
                break
            n_done += len(run)
            if key is None:
                outcome.holds += [Hold(pod.uid, problem=self.keys.problem_of(pod)) for pod in run]
            else:
                self._place(key, run, outcome, explain=explain)
        return outcome

    def _place(self, key: Key, run: list[PodRecord], outcome: Outcome, *, explain: bool) -> None:
        if key.refusal is not None:
            why = diagnosis.refuse_for_claims(self._cluster, key.refusal) if explain else None
            self._hold(run, _Nowhere(why, barriers.OF_CLAIMS), outcome)
            return
        n = 0
        if self._cluster.nominations and self._place_own(key, run[0], outcome):
            return
        # Where pods are counted, or room is promised to others, a board is made at once.
        if key.view is ALONE and key.yields is None and not self.boards.has(key):
            shape = self.boards.unscored(key)
            for _ in range(self.cold.share(shape, len(run))):
                if not self._place_cold(shape, run[n], outcome):
                    self._hold(run[n:], self._nowhere(shape, explain=explain), outcome)
                    return
                n += 1
        if n < len(run):
            self._place_run(key, run[n:], outcome, explain=explain)

    def _place_own(self, key: Key, pod: PodRecord, outcome: Outcome) -> bool:
        """Place a pod on the node that it is nominated to; whether it is nominated, and fits there."""
        row = self._cluster.nodes.row_of(self._cluster.nominations.node_of(pod.uid))
        shape = self._fits_own(key, pod, row) if row >= 0 else None
        if shape is None:
            return False
        if slots := self.promises.own_cards(pod, shape, row):
            self._cluster.nominations.drop(pod.uid)
            outcome.binds.append(self._rooms.assume_at(shape, pod, row, slots))
        else:
            outcome.binds += self._rooms.assume(shape, [pod], self._rooms.put_at(pod, shape, row))
            self._keep_promises(shape, [pod], outcome)
        return True

    def _keep_promises(self, shape: Shape, pods: Sequence[PodRecord], outcome: Outcome) -> None:
        """Pods that are placed need no room that was promised to them, and take no cards that were to others."""
        if not (self._cluster.nominations and pods):
            return
        for pod in pods:
            self._cluster.nominations.drop(pod.uid)
        outcome.binds[-1] = self.promises.spare_promised(pods[-1], shape, outcome.binds[-1])

    def _place_cold(self, shape: Shape, pod: PodRecord, outcome: Outcome) -> bool:
        """Place a pod of a shape that has no board; whether it fits anywhere."""
        placed = self._rooms.make_room([pod], shape)
        fits = self.cold.place(shape, self.boards.world(shape), placed)
        if fits:
            outcome.binds += self._rooms.assume(shape, [pod], placed)
            self._keep_promises(shape, [pod], outcome)
        return fits

    def _hold(self, pods: list[PodRecord], found: _Nowhere, made: Outcome) -> None:
        """Pods fit nowhere; each may take the place of others, and what is promised to one is no other's."""
        for i, pod in enumerate(pods):
            if self.attempts.spent >= _ASKED_MAX or self._cluster.budgets.is_behind:
                made.left += [one.uid for one in pods[i:]]
                return
            key = self._key_of(pod) if self._policies.preempts(pod) else None
            if key is None:
                # Whoever promised it room, nobody makes any.
                made.nominates += self.attempts.carry_out(pod, NOTHING)
                made.holds.append(Hold(pod.uid, found.why, barriers=found.barriers))
                continue
            tried = self.attempts.make(pod, key, found.why)
            made.nominates += self.attempts.carry_out(pod, tried)
            if tried.evict is not None:
                made.evicts.append(tried.evict)
            made.holds.append(
                Hold(pod.uid, found.why, attempt=tried.attempt, barriers=found.barriers)
            )

    def _place_run(self, key: Key, run: list[PodRecord], made: Outcome, *, explain: bool) -> None:
        shape = self._shape(key, run[0])
        draws_lots = table.draws_lots(shape.asked)
        at = 0
        while at < len(run):
            if key.yields is not None:
                self._shape(key, run[at])
            if draws_lots:
                self.boards.draw(shape, self._cluster.lots.draw())
            # How many picks a pod may have is known once the shape is up to date.
            moved = self.boards.stale(shape)
            is_single = draws_lots or key.yields is not None
            step = 1 if is_single else max(1, _PICKS_MAX // shape.most_picks)
            part = run[at : at + step]
            n = self._place_part(shape, part, moved, made)
            if n < len(part):
                self._hold(run[at + n :], self._nowhere(shape, explain=explain), made)
                return
            at += n

    def _nowhere(self, shape: Shape, *, explain: bool) -> _Nowhere:
        rows = diagnosis.all_rows(self._cluster)
        bits = self.refusals(shape, rows)
        return _Nowhere(self._why(shape, rows, bits) if explain else None, barriers.of_bits(bits))

    def _place_part(
        self, shape: Shape, part: list[PodRecord], moved: c.Ints, outcome: Outcome
    ) -> int:
        placed = self._rooms.make_room(part, shape, moved)
        n = place.place_run(self.boards.world(shape), shape.ask, shape.board, placed)
        outcome.binds += self._rooms.assume(shape, part[:n], placed)
        self.boards.placed(shape)
        self._keep_promises(shape, part[:n], outcome)
        return n
