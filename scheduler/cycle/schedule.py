"""Decides for a batch of entities; a run of like pods goes to the placing kernel as one call."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial

from scheduler.api import names
from scheduler.api.door.decisions import Attempt, Bind, Free, Hold, Outcome, Plan
from scheduler.api.groups.settings import GroupSettings
from scheduler.api.placement import Mode, Placement
from scheduler.cycle.asking import Answers
from scheduler.cycle.calls import Call, Nowhere
from scheduler.cycle.groups import GroupCycle
from scheduler.disruption.attempts import NOTHING
from scheduler.disruption.card_promises import CardPromises
from scheduler.disruption.clearing import Clearing
from scheduler.disruption.group_promises import promise_room
from scheduler.disruption.group_units import list_nodes_of_groups, make_lone_entity
from scheduler.disruption.horizon import Horizon
from scheduler.disruption.narrowing import Narrowing
from scheduler.disruption.queue_room import QueueRoom, Search
from scheduler.modes.demand_tables import Counts
from scheduler.placing import runs
from scheduler.placing.groups.placer import Closest, Placer, split_entities
from scheduler.placing.groups.ways import Ways
from scheduler.placing.rooms import Rows
from scheduler.plugins import barriers, table
from scheduler.plugins.claims.freeing import list_freed
from scheduler.schema import columns as c
from scheduler.schema.world import ANY_ROWS, ANYWHERE, NOWHERE
from scheduler.shapes import diagnosis
from scheduler.shapes.boards import Key, Shape
from scheduler.shapes.cold import Cold
from scheduler.shapes.policies import PolicyBook
from scheduler.state.cluster import Cluster
from scheduler.state.entities import AnyEntity, Entity
from scheduler.state.later import LaterRoom, Place
from scheduler.state.pods import PodRecord

# The most picks of cards that a kernel makes in one call, unless one pod needs more: the buffers hold all of them.
_PICKS_MAX = 65_536
# A kernel places at most so many pods in one call: a long decision may pause after it.
_RUN_MAX = 256
# After so many nodes were asked for victims in one call, the rest of the batch is left for later: about 10 ms.
_ASKED_MAX = 8192
# A try in the search for places for a group takes as long as asking so many nodes.
_NODES_A_TRY = 160
# So does the search for a node where a single pod takes the place of groups.
_NODES_A_SEARCH = 8192
_PROMISES_ALL = GroupSettings(promised_percent=100)


class Cycle(Answers):
    """Chooses nodes and cards, and assumes each decision in the cluster at once."""

    def __init__(
        self,
        cluster: Cluster,
        policies: PolicyBook,
        known: Counts | None = None,
        seed: int = 0,
        groups: GroupSettings = _PROMISES_ALL,
    ) -> None:
        """With ``known`` the demand is given and not learnt; ``seed`` is for the mode that draws lots.

        ``groups``: how groups are placed, and how many of the nodes are promised to a group for later at most.
        """
        super().__init__(cluster, policies, known)
        cluster.lots.begin(seed)
        self._cards = CardPromises(cluster, self.boards, self._rooms, self.promises)
        self.cold = Cold(cluster, self.learner, self.boards.statics, self.boards.states)
        self._ways = Ways(cluster, self.boards, self.keys, self._rooms)
        self._placer = Placer(
            cluster,
            self._domains,
            self._ways,
            self._count_places,
            self._find_placement,
            balances=groups.kueue_balanced_placement,
        )
        count_places = partial(self._count_places, beside=None)
        narrowing = Narrowing(cluster, self._bounds)
        clearing = Clearing(cluster, self.boards, self.keys, count_places, self.promises, narrowing)
        self._queue_room = QueueRoom(cluster, self.boards, self.keys, self.promises, narrowing)
        horizon = Horizon(cluster, self._bounds, groups.promised_percent)
        self._groups = GroupCycle(cluster, self._placer, clearing, horizon, policies.preempts)

    def schedule(
        self, batch: Sequence[AnyEntity], *, explain: bool = True, makes_room: bool = True
    ) -> Outcome:
        """Decide for pending entities, in the order given; unless ``makes_room``, pods by themselves preempt nobody.

        The same columns and batch give the same outcome, and a run of like pods gives what its pods would give one by
        one. Unless ``explain``, holds do not say why: explaining takes longer than deciding. What takes too long for one
        call is left, and goes on when it is called again with the same entities.
        """
        self._begin()
        self._cluster.pauses.take()
        outcome = Outcome()
        self.attempts.spent = self._ways.spent = 0

        for part in split_entities(batch):
            if not isinstance(part, Entity):
                self._place_pods(part, Call(outcome, explain, makes_room=makes_room))
                continue
            is_late = self.attempts.spent >= _ASKED_MAX
            searched = self._ways.spent
            plan = None if is_late else self._decide_for_group(part, explain=explain)
            self.attempts.spent += _NODES_A_TRY * (self._ways.spent - searched)
            if plan is None:
                outcome.left.append(part.uid)
            else:
                outcome.plans.append(plan)
                # The next one in the batch may look for room.
                self._cluster.groups.note_assumed(bind.uid for bind in plan.binds)
        return outcome

    def place_among(self, pod: PodRecord, among: c.Flags, *, explain: bool) -> Outcome:
        """Decide for a pod that may go to some rows only, [0] for all, and preempts nobody."""
        self._begin()
        outcome = Outcome()
        self.attempts.spent = self._ways.spent = 0
        self._place_pods([pod], Call(outcome, explain, among, makes_room=False))
        return outcome

    def _decide_for_group(self, entity: Entity, *, explain: bool) -> Plan | None:
        """Decide for a group; None if there is no time, or its pods are being sent away: it has to be formed anew."""
        if self._groups.has_lost_pods(entity):
            return None
        place_pods = partial(self._place_some, explain=explain)
        return self._groups.decide(entity, place_pods, self._place_some)

    def make_room_in_queues(self, turn: AnyEntity, search: Search, hold: Hold) -> Plan | None:
        """Make room for a pod or group of KAI's queues; None if there is none. ``hold``: what keeps it waiting."""
        self._begin()
        self._ways.spent = 0
        entity = turn if isinstance(turn, Entity) else make_lone_entity(turn)

        def place(rows: c.Flags) -> Plan:
            if isinstance(turn, Entity):
                return self._placer.place(turn, self._place_some, rows)
            return Plan(turn.uid, tuple(self._place_some([turn], rows).binds))

        cleared = self._queue_room.find_room(entity, *search, place)
        if cleared is None:
            return None
        evicts, nominates = promise_room(self._cluster, entity, cleared, hold.uid, is_exact=False)
        n_victims = sum(len(unit.pods) for unit in cleared.units)
        hold = replace(hold, attempt=Attempt(cleared.binds[0].node, n_victims))
        return Plan(turn.uid, (), evicts, nominates, hold)

    def decide_for_group(self, entity: Entity) -> Plan | None:
        """Decide for a group in one piece, however long it takes; None if its pods are being sent away."""
        while not self._groups.has_lost_pods(entity):
            if plans := self.schedule([entity]).plans:
                return plans[0]
        return None

    def find_later_room(
        self, entity: Entity, place: Place, *, is_bounded: bool = True
    ) -> Generator[None, None, LaterRoom | None]:
        """Find when and where a group fits once pods have ended, piece by piece; None if nobody can tell.

        ``is_bounded``: only room that may be promised.
        """
        search = self._groups.find_later_room(
            entity, place, self._place_some, is_bounded=is_bounded
        )
        while True:
            # Nodes may have come or gone since the last piece.
            self._begin()
            self._ways.spent = 0
            try:
                next(search)
            except StopIteration as end:
                room: LaterRoom | None = end.value
                return room
            yield

    def list_closest(self, entity: Entity, labels: tuple[str, ...], most: int) -> Closest:
        """List the domains of the last of some labels that come closest to taking a group."""
        self._begin()
        return self._placer.list_closest(entity, labels, most)

    def place_group(self, entity: Entity) -> Plan:
        """Place a group in the caller's trial. Nobody is evicted for it."""
        self._begin()
        self._ways.spent = 0
        return self._placer.place(entity, partial(self._place_some, explain=True))

    def place_most(self, entity: Entity, rows: c.Flags = ANYWHERE) -> Plan:
        """Place as many pods of a group as fit among some rows, [0] for all, in the caller's trial; evict nobody.

        If these are too few, the plan's result counts them, in every mode.
        """
        self._begin()
        self._ways.spent = 0
        return self._placer.place_most(entity, partial(self._place_some, explain=True), rows)

    def list_evictable(self, entity: Entity) -> list[PodRecord]:
        """List the pods on nodes that may go for a group; none if it takes nobody's place."""
        return self._groups.list_evictable(entity)

    def _place_some(
        self,
        pods: list[PodRecord],
        among: c.Flags,
        wanted: c.Ints = ANY_ROWS,
        *,
        explain: bool = False,
    ) -> Outcome:
        """Place members of a group. None of them makes room for itself alone."""
        call = Call(Outcome(), explain, among, makes_room=False, wanted=wanted)
        self._place_pods(pods, call)
        return call.outcome

    def _find_placement(self, pod: PodRecord) -> Placement:
        return self._policies.resolve(pod).placement

    def looks_at_all_resources(self, pod: PodRecord) -> bool:
        """Whether a node must have enough free of every resource that a pod requests; NodeResourcesFit may ignore some."""
        plugins = self._find_placement(pod).plugins
        resources = (names.PODS, *(name for name, _ in pod.template.requests.amounts))
        return plugins is None or not any(map(plugins.is_ignored, resources))

    def _place_pods(self, pods: list[PodRecord], call: Call) -> None:
        """Decide for each of these pods by itself."""
        n_done = 0
        for key, run in runs.split_runs(pods, self._make_key, self._cluster):
            if call.makes_room and self.attempts.spent >= _ASKED_MAX:
                call.outcome.left += [pod.uid for pod in pods[n_done:]]
                break
            self._cluster.pauses.take()
            part = call._replace(wanted=call.wanted[n_done : n_done + len(run)])
            n_done += len(run)
            if key is None:
                call.outcome.plans += [
                    Plan(pod.uid, hold=Hold(pod.uid, problem=self.keys.find_problem(pod)))
                    for pod in run
                ]
            else:
                self._place(key, run, part)

    def _place(self, key: Key, run: list[PodRecord], call: Call) -> None:
        if key.refusal is not None:
            why = diagnosis.refuse_for_claims(self._cluster, key.refusal) if call.explain else None
            self._hold(run, Nowhere(why, barriers.find_barriers(key.refusal)), call)
            return
        n = 0
        is_free = not call.wanted.size
        if is_free and self._cluster.nominations and self._place_own(key, run[0], call):
            return
        # A shape whose pods are counted, or that has to spare promised room, gets a board at once.
        is_cold = key.view.is_alone and key.yields is None and not self.boards.has(key)
        if is_free and is_cold:
            shape = self.boards.make_unscored(key)
            for _ in range(self.cold.count_taken(shape, len(run))):
                if not self._place_cold(shape, run[n], call):
                    self._hold(run[n:], self._explain_nowhere(shape, call), call)
                    return
                n += 1
        if n < len(run):
            self._place_run(key, run[n:], call)

    def _place_own(self, key: Key, pod: PodRecord, call: Call) -> bool:
        """Place a pod on the node that it is nominated to; return whether it is nominated, and fits there."""
        row = self._cluster.nodes.find_row(self._cluster.nominations.find_node(pod.uid))
        is_meant = row >= 0 and (not call.among.size or bool(call.among[row]))
        shape = self._fits_own(key, pod, row) if is_meant else None
        if shape is None:
            return False
        slots = self.promises.find_own_cards(pod, shape, row)
        if slots and not shape.ask.claims.leaves.size:
            self._cluster.nominations.drop(pod.uid)
            bind = self._rooms.assume_at(shape, pod, row, slots)
            call.outcome.plans.append(Plan(pod.uid, (bind,)))
        else:
            binds = self._rooms.assume(shape, [pod], self._rooms.put_at(pod, shape, row))
            self._bind(shape, [pod], binds, call)
        return True

    def _bind(self, shape: Shape, pods: Sequence[PodRecord], binds: list[Bind], call: Call) -> None:
        """Add the plans of placed pods. Drop their own nominations, and spare cards that are promised to other pods."""
        if self._cluster.nominations and binds:
            for pod in pods:
                self._cluster.nominations.drop(pod.uid)
            binds[-1] = self._cards.spare_nominated(pods[-1], shape, binds[-1])
        call.outcome.plans += [Plan(bind.uid, (bind,)) for bind in binds]

    def _place_cold(self, shape: Shape, pod: PodRecord, call: Call) -> bool:
        """Place a pod of a shape that has no board; return whether it fits anywhere."""
        placed = self._rooms.make_room([pod], shape, where=Rows(call.among))
        fits = self.cold.place(shape, self.boards.get_world(shape), placed)
        if fits:
            self._bind(shape, [pod], self._rooms.assume(shape, [pod], placed), call)
        return fits

    def _hold(self, pods: list[PodRecord], found: Nowhere, call: Call) -> None:
        """Hold pods that fit nowhere. Each may preempt one after another: room promised to one is no other's."""
        for i, pod in enumerate(self._cluster.pauses.go_through(pods)):
            is_late = self.attempts.spent >= _ASKED_MAX or self._cluster.budgets.is_behind
            if call.makes_room and is_late:
                call.outcome.left += [one.uid for one in pods[i:]]
                return
            may_take = call.makes_room and self._policies.preempts(pod)
            key = self._make_key(pod) if may_take else None
            # A pod that may not preempt loses any room that was promised to it: nobody makes this room.
            tried = NOTHING if key is None else self.attempts.try_to_make_room(pod, key, found.why)
            # By kube-scheduler's rules whole groups were among those who may go.
            is_left = key is not None and key.placement.mode != Mode.KUBE_SCHEDULER
            is_left = is_left and tried.evict is None and not tried.keeps and pod.preempts
            nodes = list_nodes_of_groups(self._cluster, pod.priority) if is_left else []
            if nodes:
                self.attempts.spent += _NODES_A_SEARCH
                plan = self._groups.make_room_for_pod(pod, nodes, self._place_some, found)
                if plan is not None:
                    call.outcome.plans.append(plan)
                    continue
            attempt = None if key is None else tried.attempt
            frees: tuple[Free, ...] = ()
            if call.makes_room and found.barriers.reasons & barriers.ELSEWHERE.reasons:
                frees = list_freed(pod, self._cluster)
            if frees:
                attempt = replace(attempt or Attempt(), frees=True)
            hold = Hold(pod.uid, found.why, attempt=attempt, barriers=found.barriers)
            nominates = self.attempts.carry_out(pod, tried) if call.makes_room else ()
            evicts = () if tried.evict is None else (tried.evict,)
            plan = Plan(pod.uid, (), evicts, tuple(nominates), hold, frees=frees)
            call.outcome.plans.append(plan)

    def _place_run(self, key: Key, run: list[PodRecord], call: Call) -> None:
        shape = self._get_live_shape(key, run[0])
        draws_lots = table.draws_lots(shape.asked)
        at = 0
        while at < len(run):
            if key.yields is not None:
                self._get_live_shape(key, run[at])
            if draws_lots:
                self.boards.draw_lots(shape, self._cluster.lots.draw())
            # Only a shape that is up to date knows how many picks a pod may have.
            moved = self.boards.find_stale_rows(shape)
            yields = key.yields is not None
            is_single = draws_lots or (yields and self.promises.reach_beyond_nodes(key))
            # A pod that gets devices of a shared pool changes other rows than its own.
            is_single = is_single or self._rooms.are_shared(shape)
            step = 1 if is_single else max(1, min(_RUN_MAX, _PICKS_MAX // shape.most_picks))
            self._cluster.pauses.take()
            part = run[at : at + step]
            # Whatever lands on a promised node may change what is left for the next pod there.
            stops = self.promises.find_rows() if yields else NOWHERE
            where = Rows(call.among, call.wanted[at : at + len(part)], stops)
            binds = self._rooms.place(part, shape, moved, where)
            is_over = not binds or not self._is_on(stops, binds[-1].node)
            if not is_over and not self._spare_later(key, shape, part, binds):
                binds.pop()
            n = len(binds)
            self._bind(shape, part[:n], binds, call)
            if n < len(part) and is_over:
                self._hold(run[at + n :], self._explain_nowhere(shape, call), call)
                return
            at += n

    def _spare_later(
        self, key: Key, shape: Shape, pods: list[PodRecord], binds: list[Bind]
    ) -> bool:
        """Let the last of the placed pods leave a group its cards; return whether the pod stays on its node.

        If it does not, the node is withheld from pods of its kind until anything changes there.
        """
        pod, bind = pods[len(binds) - 1], binds[-1]
        spared = self._cards.spare_later(pod, shape, bind)
        if spared is not None:
            binds[-1] = spared
            return True
        self._get_live_shape(key, pod)
        if shape.withheld is not None:
            row = self._cluster.nodes.find_row(bind.node)
            shape.withheld.add(row, 1 << int(shape.ask.prefers.bits[c.BIT_CARDS]))
        return False

    def _is_on(self, rows: c.Flags, node: str) -> bool:
        return bool(rows.size) and bool(rows[self._cluster.nodes.find_row(node)])

    def _explain_nowhere(self, shape: Shape, call: Call) -> Nowhere:
        rows = diagnosis.list_rows(self._cluster)
        if call.among.size:
            rows = rows[call.among[rows]]
        bits = self.find_refusals(shape, rows)
        why = self._explain(shape, rows, bits) if call.explain else None
        return Nowhere(why, barriers.read_barriers(bits))
