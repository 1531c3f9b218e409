"""Decide for a batch: runs of like pods go to the placing kernel as one call."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from scheduler.api.door.decisions import Barriers, Bind, Diagnosis, Hold, Outcome, Plan
from scheduler.api.pods import gpus
from scheduler.cycle.calls import Call, Nowhere
from scheduler.disruption.attempts import NOTHING, Attempts, Made
from scheduler.modes.demand_tables import Counts
from scheduler.modes.learning import Learner
from scheduler.placing import runs
from scheduler.placing.promised import Overlay, Promised
from scheduler.placing.rooms import Rooms
from scheduler.placing.together import place_together, split_entities
from scheduler.plugins import barriers, table
from scheduler.plugins.contract import Asked, Hint
from scheduler.schema import columns as c
from scheduler.shapes import diagnosis
from scheduler.shapes.boards import Boards, Key, Shape
from scheduler.shapes.cold import Cold
from scheduler.shapes.keys import Keys
from scheduler.shapes.policies import PolicyBook
from scheduler.shapes.views import ALONE
from scheduler.state.cluster import Cluster
from scheduler.state.entities import AnyEntity, Entity
from scheduler.state.pods import PodRecord

# A pod that says so much takes twice the time of one that says nothing, the first time it is decided for.
_WORDS_A_UNIT = 64
# Of so many cards the choice takes as long, every time; no pod written for a purpose asks as many.
_CARDS_A_UNIT = 64
# The most picks of cards that a kernel makes in one call, if not of one pod: they are kept until they are told.
_PICKS_MAX = 65_536
# Nodes that are asked for room in one call, and no pod is looked at any more: about 10 ms.
_ASKED_MAX = 8192


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
        cluster.lots.begin(seed)
        self.boards = Boards(cluster, self.learner)
        self.cold = Cold(cluster, self.learner, self.boards.statics)
        self.keys = Keys(cluster, policies, self.boards.sizes)
        self._rooms = Rooms(cluster, self.boards, self.learner)
        self.promised = Promised(cluster, self.boards, self.keys.make_key, self._rooms.put)
        self.attempts = Attempts(cluster, self.boards, self.promised)

    def learn(self, *, anew: bool = False) -> bool:
        """Learn from the pods seen, if enough came or went (or ``anew``); whether scores changed.

        To be called between batches, never within.
        """
        return self.learner.learn(anew=anew)

    def schedule(self, batch: Sequence[AnyEntity], *, explain: bool = True) -> Outcome:
        """Decide for pending entities, in the order given.

        Same columns and batch, same outcome; a run of like pods comes out as one by one. Unless
        ``explain``, holds do not say why, which takes longer than the decision.
        """
        self._begin()
        outcome = Outcome()
        self.attempts.spent = 0

        def place_some(pods: list[PodRecord], among: c.Flags) -> Outcome:
            """Members of an entity: whose place all of them could take, nobody knows yet."""
            call = Call(Outcome(), explain, among, makes_room=False)
            self._place_pods(pods, call)
            return call.outcome

        for part in split_entities(batch):
            if not isinstance(part, Entity):
                self._place_pods(part, Call(outcome, explain))
            elif self.attempts.spent >= _ASKED_MAX:
                outcome.left.append(part.uid)
            else:
                outcome.plans.append(place_together(self._cluster, part, place_some))
        return outcome

    def _place_pods(self, pods: list[PodRecord], call: Call) -> None:
        """Place pods each by itself."""
        n_done = 0
        for key, run in runs.split_runs(pods, self._key_of, self._cluster):
            if self.attempts.spent >= _ASKED_MAX:
                call.outcome.left += [pod.uid for pod in pods[n_done:]]
                break
            n_done += len(run)
            if key is None:
                call.outcome.plans += [
                    Plan(pod.uid, hold=Hold(pod.uid, problem=self.keys.problem_of(pod)))
                    for pod in run
                ]
            else:
                self._place(key, run, call)

    def look(self, pod: PodRecord, rows: c.Ints | None) -> Barriers | None:
        """What keeps a pending pod off each of some node rows (None: off all nodes); None where it fits on one.

        A pod with something on it that must be mended has no barriers, and nothing on a node helps it.
        """
        self._begin()
        key = self._key_of(pod)
        if key is None:
            return Barriers()
        if key.refusal is not None:
            return barriers.OF_CLAIMS
        asked = diagnosis.all_rows(self._cluster) if rows is None else rows
        if self.boards.has(key):
            shape = self._shape(key, pod)
            self.boards.refresh(shape)
            bits = self.refusals(shape, asked)
        else:
            # Thousands that wait must not displace what is live.
            bits = self.boards.refusals(self.boards.unscored(key), asked)
            if key.yields is not None:
                bits |= self.promised.find_refusals(pod, asked, len(bits))
        return None if (bits[0] == 0).any() else barriers.of_bits(bits)

    def fits_nominated(self, pod: PodRecord) -> bool:
        """Whether a pending pod fits by now on the node that it is nominated to.

        The room that is promised to it counts for it alone, so ``could_place`` of a pod of its kind does not say.
        """
        self._begin()
        key = self._key_of(pod)
        row = self._cluster.nodes.row_of(self._cluster.nominations.node_of(pod.uid))
        return key is not None and row >= 0 and self._fits_own(key, pod, row) is not None

    def could_take(self, pod: PodRecord) -> bool:
        """Whether a pending pod that does not fit where it is nominated could take the place of others.

        One for whom nobody makes the promised room any more is to learn this, or to find other room.
        """
        self._begin()
        key = self._key_of(pod)
        if key is None or not (pod.preempts and self._policies.preempts(pod)):
            return False
        if self._cluster.nominations.node_of(pod.uid):
            return not self.attempts.waits(pod, key)
        return self.attempts.could(pod, key)

    def hints_of(self, pod: PodRecord, found: Barriers) -> list[Hint]:
        """What could help a pod that these keep off nodes."""
        key = self._key_of(pod)
        if key is None:
            return []
        asked = Asked(key.template, key.placement, key.view.storage)
        return barriers.hints(asked, key.view.needs, found)

    def asks_all(self, pod: PodRecord) -> bool:
        """Whether all filters are asked for a pod, and of all that it asks: its profile disables none."""
        return self._policies.resolve(pod).placement.plugins is None

    def is_wide(self, pod: PodRecord) -> bool:
        """Whether what changes on one node may let a pod in on another."""
        return self.keys.views.make_view(pod, self._policies.resolve(pod).placement).is_wide

    def could_place(self, pod: PodRecord) -> bool:
        """Whether a pending pod fits on any node now, without placing it."""
        return self.look(pod, None) is None

    @property
    def version(self) -> Hashable:
        """While it is the same, so is the kind of every pod that waits without storage, and does not change itself."""
        cluster = self._cluster
        seen = cluster.terms.version, cluster.peers.version, cluster.nodes.label_keys_version
        return *seen, self.promised.version

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
        view, problem = self.keys.views.make_view(pod, placement), self.keys.problem_of(pod)
        # By priority, though no pod may be nominated now: when one is, no kind has to be split for it.
        urgency = pod.priority, pod.preempts
        return pod.template, placement, view, problem, urgency, self.promised.tell_apart(pod)

    def unscored(self, pod: PodRecord) -> Shape | None:
        """As ``shape_of``, with no board and not kept: for who asks what fits and places nothing."""
        self._begin()
        key = self._key_of(pod)
        return None if key is None else self.boards.unscored(key)

    def why_not(self, pod: PodRecord) -> Hold | None:
        """Why a pending pod fits nowhere now; None when it does."""
        shape, key = self.unscored(pod), self._key_of(pod)
        if shape is None or key is None:
            return Hold(pod.uid, problem=self.keys.problem_of(pod))
        rows = diagnosis.all_rows(self._cluster)
        bits = self.boards.refusals(shape, rows)
        if key.yields is not None:
            bits |= self.promised.find_refusals(pod, rows, len(bits))
        if (bits[0] == 0).any():
            return None
        why = self._why(shape, rows, bits)
        if not self._policies.preempts(pod):
            return Hold(pod.uid, why)
        # To ask all nodes takes longer than a text is worth; who finds room that others make is tried, and not told.
        made = self.attempts.make(pod, key, why) if self.attempts.is_cheap(pod, key) else None
        return Hold(pod.uid, why, attempt=made.attempt) if made and made.evict is None else None

    def attempt(self, pod: PodRecord, why: Diagnosis | None) -> Made | None:
        """Whose place a pod that fits nowhere could take, which nobody is told of; None where its profile takes none."""
        self._begin()
        key = self._key_of(pod) if self._policies.preempts(pod) else None
        return None if key is None else self.attempts.make(pod, key, why)

    def objection(self, pod: PodRecord, node: str) -> str:
        """Why a node's words keep a pod off it by now; empty when they do not."""
        nodes = self._cluster.nodes
        asked = Asked(pod.template, self._policies.resolve(pod).placement)
        return table.objection(asked, nodes, nodes.row_of(node))

    def shape_of(self, pod: PodRecord) -> Shape | None:
        """The pod's shape; None when something on the pod must be mended first."""
        self._begin()
        key = self._key_of(pod)
        return None if key is None else self._shape(key, pod)

    def _begin(self) -> None:
        """Ranks and what was learnt are of the nodes that are there, and stay so until the call ends."""
        self._cluster.nodes.refresh_ranks()
        if not self.learner.fits_nodes():
            self.learner.learn()

    def _key_of(self, pod: PodRecord) -> Key | None:
        key = self.keys.make_key(pod)
        if key is None or not self._cluster.nominations:
            return key
        return key._replace(yields=self.promised.yields(pod))

    def _shape(self, key: Key, pod: PodRecord) -> Shape:
        """The live shape of a pod, which knows what is promised to others that come first."""
        shape = self.boards.shape(key)
        if key.yields is not None:
            if shape.promised is None:
                shape.promised = Overlay(table.words_of_bits(key.template))
            shape.promised.refresh(self._cluster, self.promised, pod, wide=key.view.is_wide)
        return shape

    def _place(self, key: Key, run: list[PodRecord], call: Call) -> None:
        if key.refusal is not None:
            why = diagnosis.refuse_for_claims(self._cluster, key.refusal) if call.explain else None
            self._hold(run, Nowhere(why, barriers.OF_CLAIMS), call)
            return
        n = 0
        if self._cluster.nominations and self._place_own(key, run[0], call):
            return
        # Where pods are counted, or room is promised to others, a board is made at once.
        if key.view is ALONE and key.yields is None and not self.boards.has(key):
            shape = self.boards.unscored(key)
            for _ in range(self.cold.share(shape, len(run))):
                if not self._place_cold(shape, run[n], call):
                    self._hold(run[n:], self._nowhere(shape, call), call)
                    return
                n += 1
        if n < len(run):
            self._place_run(key, run[n:], call)

    def _place_own(self, key: Key, pod: PodRecord, call: Call) -> bool:
        """Place a pod on the node that it is nominated to; whether it is nominated, and fits there."""
        row = self._cluster.nodes.row_of(self._cluster.nominations.node_of(pod.uid))
        is_meant = row >= 0 and (not call.among.size or bool(call.among[row]))
        shape = self._fits_own(key, pod, row) if is_meant else None
        if shape is None:
            return False
        if slots := self.promised.own_cards(pod, shape, row):
            self._cluster.nominations.drop(pod.uid)
            bind = self._rooms.assume_at(shape, pod, row, slots)
            call.outcome.plans.append(Plan(pod.uid, (bind,)))
        else:
            binds = self._rooms.assume(shape, [pod], self._rooms.put_at(pod, shape, row))
            self._bind(shape, [pod], binds, call)
        return True

    def _bind(self, shape: Shape, pods: Sequence[PodRecord], binds: list[Bind], call: Call) -> None:
        """Pods are placed: they need no room that was promised to them, and take no cards that were to others."""
        if self._cluster.nominations and binds:
            for pod in pods:
                self._cluster.nominations.drop(pod.uid)
            binds[-1] = self.promised.spare_promised(pods[-1], shape, binds[-1])
        call.outcome.plans += [Plan(bind.uid, (bind,)) for bind in binds]

    def _fits_own(self, key: Key, pod: PodRecord, row: int) -> Shape | None:
        """The pod's shape if it fits on the row that it is nominated to, also beside others that are."""
        shape = self.boards.unscored(key._replace(yields=None))
        fits = not self.promised.judge_alone(pod, shape, np.array([row], np.int64))[0, 0]
        if fits and self.promised.leaves(pod, np.array([row], np.int64), but=pod.uid):
            return shape
        return None

    def _place_cold(self, shape: Shape, pod: PodRecord, call: Call) -> bool:
        """Place a pod of a shape that has no board; whether it fits anywhere."""
        placed = self._rooms.make_room([pod], shape, among=call.among)
        fits = self.cold.place(shape, self.boards.world(shape), placed)
        if fits:
            self._bind(shape, [pod], self._rooms.assume(shape, [pod], placed), call)
        return fits

    def _hold(self, pods: list[PodRecord], found: Nowhere, call: Call) -> None:
        """Pods fit nowhere; each may take the place of others, and what is promised to one is no other's."""
        for i, pod in enumerate(pods):
            is_late = self.attempts.spent >= _ASKED_MAX or self._cluster.budgets.is_behind
            if call.makes_room and is_late:
                call.outcome.left += [one.uid for one in pods[i:]]
                return
            may_take = call.makes_room and self._policies.preempts(pod)
            key = self._key_of(pod) if may_take else None
            # Of one who takes no place: whoever promised it room, nobody makes any.
            tried = NOTHING if key is None else self.attempts.make(pod, key, found.why)
            attempt = None if key is None else tried.attempt
            hold = Hold(pod.uid, found.why, attempt=attempt, barriers=found.barriers)
            nominates = self.attempts.carry_out(pod, tried) if call.makes_room else ()
            evicts = () if tried.evict is None else (tried.evict,)
            call.outcome.plans.append(Plan(pod.uid, (), evicts, tuple(nominates), hold))

    def _place_run(self, key: Key, run: list[PodRecord], call: Call) -> None:
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
            binds = self._rooms.place(part, shape, moved, call.among)
            n = len(binds)
            self._bind(shape, part[:n], binds, call)
            if n < len(part):
                self._hold(run[at + n :], self._nowhere(shape, call), call)
                return
            at += n

    def _nowhere(self, shape: Shape, call: Call) -> Nowhere:
        rows = diagnosis.all_rows(self._cluster)
        if call.among.size:
            rows = rows[call.among[rows]]
        bits = self.refusals(shape, rows)
        why = self._why(shape, rows, bits) if call.explain else None
        return Nowhere(why, barriers.of_bits(bits))

    def refusals(self, shape: Shape, rows: c.Ints) -> c.Ints:
        """[W, n] why a live shape does not fit on n rows; its board tells too little of what a node lacks by its words."""
        bits = self.boards.refusals(shape, rows)
        if shape.promised is not None:
            bits |= shape.promised.bits[:, rows]
        return bits

    def _why(self, shape: Shape, rows: c.Ints, bits: c.Ints) -> Diagnosis:
        judged = diagnosis.gather_refusals(
            self._cluster, shape, self.boards.world(shape), rows, bits
        )
        return diagnosis.sum_up(judged)
