"""Decide for a batch: runs of like pods go to the placing kernel as one call."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from scheduler.api.cards import CardUse, Slots
from scheduler.api.door.decisions import Bind, Diagnosis, Hold, Outcome
from scheduler.api.pods import gpus
from scheduler.cycle import diagnosis
from scheduler.cycle.boards import Boards, Key, Shape
from scheduler.cycle.cold import Cold
from scheduler.cycle.policies import PolicyBook
from scheduler.cycle.views import ALONE, Views
from scheduler.errors import Mistake
from scheduler.kernels import place
from scheduler.modes.demand_tables import Counts
from scheduler.modes.learning import Learner
from scheduler.plugins import table
from scheduler.plugins.contract import Asked
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

# A pod that says so much takes twice the time of one that says nothing, the first time it is decided for.
_WORDS_A_UNIT = 64
# Of so many cards the choice takes as long, every time; no pod written for a purpose asks as many.
_CARDS_A_UNIT = 64
# The most picks of cards that a kernel makes in one call, if not of one pod: they are kept until they are told.
_PICKS_MAX = 65_536
# How many sizes of calls are remembered, with where their kernels write.
_ROOMS_MAX = 64
_NONE: c.Ints = np.zeros(0, np.int64)


class Cycle:
    """Chooses nodes and cards; what it decides it assumes in the cluster at once."""

    def __init__(
        self,
        cluster: Cluster,
        policies: PolicyBook,
        known: Counts | None = None,
        seed: int = 0,
    ) -> None:
        """With ``known`` the demand is not learnt but given; ``seed`` is for the mode that draws lots."""
        self._cluster = cluster
        self._policies = policies
        self.learner = Learner(cluster, known)
        self._draws = seed << 32
        self.boards = Boards(cluster, self.learner)
        self.cold = Cold(cluster, self.learner, self.boards.statics)
        self._views = Views(cluster)
        # Where kernels read and write, by pod and by pick; used again.
        self._of_pods = np.zeros((4, 1), np.int64)
        self._of_picks = np.zeros(3, np.int64)
        # The parts of it that calls were given, by how many pods and picks they are for.
        self._rooms: dict[tuple[int, int], tuple[c.Ints, ...]] = {}

    def learn(self, *, anew: bool = False) -> bool:
        """Learn from the pods seen, if enough came or went (or ``anew``); whether scores changed.

        To be called between batches, never within.
        """
        return self.learner.learn(anew=anew)

    def schedule(self, batch: Sequence[PodRecord], *, explain: bool = True) -> Outcome:
        """Decide for pending pods, in the order given.

        Same columns and batch, same outcome; a run of like pods comes out as one by one. Unless
        ``explain``, holds do not say why, which takes longer than the decision.
        """
        self._begin()
        outcome = Outcome()
        for key, run in self._runs(batch):
            if key is None:
                outcome.holds += [Hold(pod.uid, problem=self.problem_of(pod)) for pod in run]
            else:
                self._place(key, run, outcome, explain=explain)
        return outcome

    def could_place(self, pod: PodRecord, rows: c.Ints | None = None) -> bool:
        """Whether a pending pod fits on one of some node rows now (None: on any), without placing it.

        A pod that ``looks_far`` may fit on any, whichever rows are given.
        """
        self._begin()
        key = self._key_of(pod)
        if key is None:
            return False
        if key.view.is_wide:
            rows = None
        if self.boards.has(key):
            shape = self.boards.shape(key)
            self.boards.refresh(shape)
            fitting = shape.board.best if rows is None else shape.board.key[rows]
            return bool((fitting >= 0).any())
        # Thousands that wait must not displace what is live.
        shape = self.boards.unscored(key)
        asked = diagnosis.all_rows(self._cluster) if rows is None else rows
        return bool((self.boards.refusals(shape, asked)[0] == 0).any())

    def looks_far(self, pod: PodRecord) -> bool:
        """Whether the pod may fit where amounts that are free, or the nodes that changed, speak against it."""
        key = self._key_of(pod)
        if key is None:
            return False
        plugins = key.placement.plugins
        return key.view.is_wide or (
            plugins is not None and any(map(plugins.ignores, dict(key.template.requests.amounts)))
        )

    @property
    def meets_others(self) -> bool:
        """Whether pods on nodes have terms about others: which of those that wait they see may change."""
        return self._cluster.terms.has_owners

    def cost_of(self, pod: PodRecord) -> int:
        """What deciding for a pod costs beyond the usual: by its cards and, unless its shape is live, its words."""
        key = self._key_of(pod)
        if key is None:
            return 0
        template = pod.template
        picking = gpus.picks(template.gpu) // _CARDS_A_UNIT
        if self.boards.has(key):
            return picking
        return picking + 1 + template.words // _WORDS_A_UNIT

    def kind_of(self, pod: PodRecord) -> Hashable:
        """Equal for pods that fit the same nodes, or that are held for the same mistake."""
        placement = self._policies.resolve(pod).placement
        return pod.template, placement, self._views.of(pod, placement), self.problem_of(pod)

    def unscored(self, pod: PodRecord) -> Shape | None:
        """As ``shape_of``, with no board and not kept: for who asks what fits and places nothing."""
        self._begin()
        key = self._key_of(pod)
        return None if key is None else self.boards.unscored(key)

    def why_not(self, pod: PodRecord) -> Hold | None:
        """Why a pending pod fits nowhere now; None when it does."""
        shape = self.unscored(pod)
        if shape is None:
            return Hold(pod.uid, problem=self.problem_of(pod))
        rows = diagnosis.all_rows(self._cluster)
        bits = self.boards.refusals(shape, rows)
        if (bits[0] == 0).any():
            return None
        return Hold(pod.uid, self._why(shape, rows, bits))

    def objection(self, pod: PodRecord, node: str) -> str:
        """Why a node's words keep a pod off it by now; empty when they do not."""
        nodes = self._cluster.nodes
        asked = Asked(pod.template, self._policies.resolve(pod).placement)
        return table.objection(asked, nodes, nodes.row_of(node))

    def shape_of(self, pod: PodRecord) -> Shape | None:
        """The pod's shape; None when something on the pod must be mended first."""
        self._begin()
        key = self._key_of(pod)
        return None if key is None else self.boards.shape(key)

    def _begin(self) -> None:
        """Ranks and what was learnt are of the nodes that are there, and stay so until the call ends."""
        self._cluster.nodes.refresh_ranks()
        if not self.learner.fits_nodes():
            self.learner.learn()

    def _key_of(self, pod: PodRecord) -> Key | None:
        if pod.problem or pod.template.unsupported:
            return None
        resolved = self._policies.resolve(pod)
        if resolved.problem:
            return None
        placement = resolved.placement
        return Key(pod.template, placement, self._views.of(pod, placement))

    def problem_of(self, pod: PodRecord) -> Mistake | None:
        """What must be mended on a pod, None when nothing."""
        if pod.problem:
            return pod.problem
        if pod.template.unsupported:
            return Mistake(pod.template.unsupported[0], "not supported by this version of Evenkeel")
        return self._policies.resolve(pod).problem

    def _runs(self, batch: Sequence[PodRecord]) -> Iterator[tuple[Key | None, list[PodRecord]]]:
        """Like pods that follow each other; a run is told when those before it are placed."""
        key: Key | None = None
        run: list[PodRecord] = []
        for pod in batch:
            now = self._key_of(pod)
            if run and now != key:
                yield key, run
                # What was placed may have terms about this pod.
                now = self._key_of(pod) if self.meets_others else now
                run = []
            key = now
            run.append(pod)
        if run:
            yield key, run

    def _place(self, key: Key, run: list[PodRecord], outcome: Outcome, *, explain: bool) -> None:
        n = 0
        # Where pods are counted a board is made at once.
        if key.view is ALONE and not self.boards.has(key):
            shape = self.boards.unscored(key)
            for _ in range(self.cold.share(shape, len(run))):
                if not self._place_cold(shape, run[n], outcome):
                    self._hold(shape, run[n:], outcome, explain=explain)
                    return
                n += 1
        if n < len(run):
            self._place_run(self.boards.shape(key), run[n:], outcome, explain=explain)

    def _place_cold(self, shape: Shape, pod: PodRecord, outcome: Outcome) -> bool:
        """Place a pod of a shape that has no board; whether it fits anywhere."""
        placed = self._room_for([pod], shape)
        fits = self.cold.place(shape, self.boards.scratch, placed)
        if fits:
            self._assume(shape, [pod], placed, outcome)
        return fits

    def _hold(
        self, shape: Shape, pods: list[PodRecord], outcome: Outcome, *, explain: bool
    ) -> None:
        why = None
        if explain:
            rows = diagnosis.all_rows(self._cluster)
            why = self._why(shape, rows, self.boards.refusals(shape, rows))
        outcome.holds += [Hold(pod.uid, why) for pod in pods]

    def _place_run(
        self, shape: Shape, run: list[PodRecord], outcome: Outcome, *, explain: bool
    ) -> None:
        draws_lots = table.draws_lots(shape.asked)
        at = 0
        while at < len(run):
            if draws_lots:
                self._draws += 1
                self.boards.draw(shape, self._draws)
            # How many picks a pod may have is known once the shape is up to date.
            moved = self.boards.stale(shape)
            step = 1 if draws_lots else max(1, _PICKS_MAX // shape.most_picks)
            part = run[at : at + step]
            n = self._place_part(shape, part, moved, outcome)
            if n < len(part):
                why = self._why_board(shape) if explain else None
                outcome.holds += [Hold(pod.uid, why) for pod in run[at + n :]]
                return
            at += n

    def _why_board(self, shape: Shape) -> Diagnosis:
        rows = diagnosis.all_rows(self._cluster)
        return self._why(shape, rows, diagnosis.of_board(shape.board, rows))

    def _why(self, shape: Shape, rows: c.Ints, bits: c.Ints) -> Diagnosis:
        scratch = self.boards.scratch
        return diagnosis.summed(diagnosis.judged(self._cluster, shape, scratch, rows, bits))

    def _place_part(
        self, shape: Shape, part: list[PodRecord], moved: c.Ints, outcome: Outcome
    ) -> int:
        cluster, placed = self._cluster, self._room_for(part, shape, moved)
        n = place.place_run(
            cluster.nodes.columns,
            cluster.cards.columns,
            shape.ask,
            self.learner.of(shape.ask.pool),
            shape.board,
            self.boards.scratch,
            placed,
        )
        self._assume(shape, part[:n], placed, outcome)
        self.boards.placed(shape)
        return n

    def _assume(
        self, shape: Shape, pods: list[PodRecord], placed: place.Placed, outcome: Outcome
    ) -> None:
        """The first of ``placed`` are these pods, and are charged."""
        cluster, n = self._cluster, len(pods)
        rows = placed.row[:n].tolist()
        n_picks, pod_rows = placed.n_picks[:n].tolist(), placed.pod[:n].tolist()
        driver = cluster.registers.driver_name(shape.ask.pool)
        for k in range(n):
            uid = pods[k].uid
            slots = self._cards(shape, placed, k) if n_picks[k] else ()
            node = cluster.assume_charged(uid, rows[k], slots, pod_rows[k])
            outcome.binds.append(Bind(uid, node, slots, driver if slots else ""))
        cluster.moved.add_many(rows)

    def _cards(self, shape: Shape, placed: place.Placed, k: int) -> Slots:
        """The cards of a pod that was placed, a tuple per container."""
        uuid_of, containers = self._cluster.cards.uuid_of, shape.ask.containers
        slots: list[list[CardUse]] = [[] for _ in shape.asked.template.kinds]
        for p in range(int(placed.n_picks[k])):
            slot = int(placed.slot[k, p])
            cores = int(containers[c.ASK_CORES, slot])
            uuid = uuid_of(int(placed.card[k, p]))
            slots[slot].append(CardUse(uuid, int(placed.mib[k, p]), cores))
        return tuple(map(tuple, slots))

    def _room_for(self, part: list[PodRecord], shape: Shape, moved: c.Ints = _NONE) -> place.Placed:
        """Where a kernel writes how it placed pods of a shape; until the next call."""
        cluster, n, picks = self._cluster, len(part), shape.most_picks
        held = min(picks, cluster.cards.most_on_a_node) if shape.asked.template.gpu else 0
        cluster.ledger.pods.make_room(n, held)
        room = self._rooms.get((n, picks)) or self._cut_room(n, picks)
        room[0][:] = [pod.priority for pod in part]
        return place.Placed(cluster.ledger.bundle, moved, *room)

    def _cut_room(self, n: int, picks: int) -> tuple[c.Ints, ...]:
        """The fields of ``Placed`` from ``priority`` on."""
        size = 3 * n * picks
        if n > self._of_pods.shape[1]:
            self._of_pods = np.zeros((4, n), np.int64)
            self._rooms.clear()
        if size > self._of_picks.size:
            self._of_picks = np.zeros(size, np.int64)
            self._rooms.clear()
        if len(self._rooms) >= _ROOMS_MAX:
            self._rooms.clear()
        of_picks = self._of_picks[:size].reshape(3, n, picks)
        room = self._rooms[n, picks] = (*self._of_pods[:, :n], *of_picks)
        return room
