"""One cycle over a tree of queues: the first one of each queue is judged, and they are dealt with in their order.

Source: Kueue (2026-08), ``pkg/scheduler/scheduler.go``: ``schedule``, ``nominate``, ``processEntry``,
``updateAssignmentIfNeeded``, ``getInitialAssignments`` and ``reserveCapacityForUnreclaimablePreempt``;
``podset_reducer.go``. Kueue runs one such cycle over all trees; trees have nothing to do with each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from scheduler.api.queues.definitions import Policy
from scheduler.api.queues.words import EVICTS_NOBODY_SAID, GATED
from scheduler.kernels import quotas
from scheduler.tenancy import slices
from scheduler.tenancy.assigning import Assigner
from scheduler.tenancy.assignments import Assignment, Mode, generalize
from scheduler.tenancy.candidates import Asker, Why
from scheduler.tenancy.concessions import defer_givers
from scheduler.tenancy.fitting import assign_with_place
from scheduler.tenancy.ground import Ground
from scheduler.tenancy.moves import MoveSearch, find_moves
from scheduler.tenancy.ordering import Entry, Tournament, sort_entries
from scheduler.tenancy.outcomes import (
    AGAIN,
    KEPT_BACK,
    NO_PLACE,
    PARKED,
    PREEMPTOR,
    WAITS_FOR_QUOTA,
    WAITS_FOR_VICTIMS,
    Kept,
    Next,
    Outcome,
    find_next,
    has_more,
)
from scheduler.tenancy.promises import Promise, Promises
from scheduler.tenancy.readiness import SAID, WAITS_FOR_PODS
from scheduler.tenancy.reserving import list_reserved
from scheduler.tenancy.trees import Amounts, Column, Tree
from scheduler.tenancy.victims import PlaceSearch, Reclaiming, Victim
from scheduler.tenancy.works import Work

_OVERLAP = "Workload has overlapping preemption targets with another workload"
_DEFERRED = f"{_OVERLAP}, but will fit after these preemptions complete"
_NO_LONGER = "Workload no longer fits after processing another workload"
_NOBODY: frozenset[str] = frozenset()


class TreeCycle:
    """Runs a cycle over one tree."""

    def __init__(self, tree: Tree, ground: Ground, kept: Kept | None = None) -> None:
        """``kept``: what cycles right before have found, between which nothing else has happened."""
        self._tree, self._ground = tree, ground
        self._reclaiming = Reclaiming(tree, ground.works, ground.rules)
        self._outcome = Outcome()
        self._kept: Kept = {} if kept is None else kept
        # Who was asked to go in this cycle, in the order in which they were.
        self._preempted: dict[str, Work] = {}
        # What is set aside until the end of the cycle, by queue.
        self._aside: list[tuple[int, Amounts]] = []
        self._promises = Promises(tree, ground)

    def run(self, heads: Iterable[Work]) -> Outcome:
        """Deal with the first one of each queue."""
        self._tree.n_cycles += 1
        entries = [self._nominate_again(work) or self.nominate(work) for work in heads]
        is_fair = self._ground.rules.is_fair
        drawn = Tournament(self._tree, entries).draw() if is_fair else sort_entries(entries)
        for entry in defer_givers(drawn, entries, self._ground.works):
            self._process(entry)
        for queue, amounts in reversed(self._aside):
            self._tree.charge(queue, amounts, -1)
        self._aside.clear()
        if self._outcome.admitted or self._outcome.preempted:
            self._kept.clear()
        return self._outcome

    # What an entry could get.

    def _nominate_again(self, work: Work) -> Entry | None:
        """Return what was found for a workload that waits for its victims, if nothing has changed since."""
        found = self._kept.get(work.key)
        if found is None:
            return None
        assignment, victims = found
        queue = self._ground.find_queue(work.queue)
        return Entry(work, queue, assignment, list(victims), self._find_old(work))

    def _find_old(self, work: Work) -> Work | None:
        """Find the slice that a workload replaces; None for none, or for one that was asked to go in this cycle."""
        old = slices.find_old(self._ground.works, work)
        return None if old is None or old.key in self._preempted else old

    def nominate(self, work: Work) -> Entry:
        """Find what a workload could get if it were its turn; nothing changes.

        One for whom others have given way goes on with the next flavors at once, and then with the first ones. In Kueue it does
        so in the next cycles, and in this one the victims take their quota again: kueue#14543, in which they are evicted
        again and again.
        """
        queue = self._ground.find_queue(work.queue)
        entry, tried = Entry(work, queue, Assignment()), self._find_tried(work)
        self._judge(entry, tried)
        if work.is_owed:
            self._go_on(entry)
        if work.is_owed and tried and not self._is_settled(entry):
            self._judge(entry, [])
            self._go_on(entry)
        return entry

    def find_promise(self, entry: Entry) -> str:
        """Find why an entry waits though it could get quota: another one is promised it. Empty if it need not wait."""
        promises = self._promises.list_binding(entry)
        promise = self._promises.find_broken(promises, entry, has_place=False)
        return "" if promise is None else self._promises.describe(promise)

    def _go_on(self, entry: Entry) -> None:
        """Try the next flavors until one of them does, or there are no more."""
        for _ in range(max((len(group.flavors) for group in entry.queue.groups), default=0)):
            if self._is_settled(entry) or not has_more(entry.assignment.tried):
                return
            self._judge(entry, entry.assignment.tried)

    @staticmethod
    def _is_settled(entry: Entry) -> bool:
        return entry.assignment.mode == Mode.FIT or bool(entry.victims)

    def _judge(
        self,
        entry: Entry,
        tried: Sequence[Mapping[str, int]],
        only: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Find what an entry could get, and who would have to go for it; ``tried``: after which flavors a try goes on."""
        self._ground.pause()
        entry.old = self._find_old(entry.work)
        with self._tree.hide_rows([entry.old.key] if entry.old is not None else ()):
            self._judge_in_full(entry, tried, only)

    def _judge_in_full(
        self,
        entry: Entry,
        tried: Sequence[Mapping[str, int]],
        only: Mapping[str, Mapping[str, str]] | None,
    ) -> None:
        """Judge an entry as ``_judge`` does, with all that it asks for."""
        self._reclaiming.begin()
        work, queue = entry.work, entry.queue

        def simulate(column: Column, amount: int, height: int) -> tuple[Mode, int]:
            return self._reclaiming.simulate(Asker(work, queue, {}, ()), column, amount, height)

        assigner = Assigner(
            queue,
            self._tree,
            self._ground.book,
            simulate,
            is_fair=self._ground.rules.is_fair,
            kept=slices.list_flavors(entry.old),
        )
        full = assign_with_place(assigner, self._ground.places, work, tried, only)
        entry.assignment, entry.victims = full, []
        if full.mode == Mode.FIT:
            return
        entry.victims = self._find_victims(entry) or self._find_moves(entry)
        if entry.victims:
            return
        if (less := self._find_less(entry, assigner, tried, only)) is not None:
            entry.assignment, entry.victims = less
        else:
            entry.assignment = full

    def _find_tried(self, work: Work) -> list[dict[str, int]]:
        """Find the flavors after which a try goes on: none if much has changed since the last try."""
        cycle, generation = work.tried_at
        now = self._tree.generations[self._tree.queues[work.queue]]
        is_late = self._tree.n_cycles - cycle > 1 and now > generation
        return [] if is_late else work.tried

    def _find_less(
        self,
        entry: Entry,
        assigner: Assigner,
        tried: Sequence[Mapping[str, int]],
        only: Mapping[str, Mapping[str, str]] | None,
    ) -> tuple[Assignment, list[Victim]] | None:
        """Find the most pods of a workload that could start where some of them are enough; None if there are none.

        All pod sets are made smaller by the same part of what they can do without.
        """
        sets = entry.work.sets
        spare = [one.n_pods - one.least for one in sets]
        total, best = sum(spare), None
        low, high = 0, total + 1
        while total and low < high:
            at = (low + high) // 2
            counts = [one.n_pods - n * at // total for one, n in zip(sets, spare, strict=True)]
            entry.assignment = assign_with_place(
                assigner, self._ground.places, entry.work, tried, only, counts=counts
            )
            victims = self._find_victims(entry)
            if entry.assignment.mode == Mode.FIT or victims:
                best, high = (at, entry.assignment, victims), at
            else:
                low = at + 1
        return None if best is None or best[0] != low else best[1:]

    def _find_victims(self, entry: Entry) -> list[Victim]:
        assignment = entry.assignment
        if generalize(assignment.mode) != Mode.PREEMPT:
            return []
        amounts = {column: amount for column, amount in assignment.usage.items() if amount}
        asker = Asker(entry.work, entry.queue, amounts, assignment.needed)
        places = self._ground.places
        if not places.needs_place(entry.work):
            return self._reclaiming.find_victims(asker)
        had_quota = False

        def has_place(gone: Sequence[str]) -> bool:
            nonlocal had_quota
            had_quota = True
            return places.has_place(entry.work, assignment, gone)

        search = PlaceSearch(
            has_place, lambda keys: places.list_sites(entry.work, assignment, keys)
        )
        victims = self._reclaiming.find_victims(asker, search)
        assignment.is_blocked = had_quota and not victims
        if assignment.is_blocked:
            assignment.place_problem = places.find_problem(entry.work, assignment)
        return victims

    def _find_moves(self, entry: Entry) -> list[Victim]:
        """Find who has to move for an entry that stays within its nominal quota, and lacks nothing but a place."""
        work, assignment, places = entry.work, entry.assignment, self._ground.places
        if not (self._ground.rules.moves and assignment.lacks_place and self._is_owed(entry)):
            return []
        # Those who are on their way out already make the place that was found.
        found = [key for key in sorted(work.waits_for) if key in self._tree.held]
        search = MoveSearch(
            lambda gone: places.has_place(work, assignment, gone),
            lambda gone: places.can_move(work, assignment, gone),
            lambda keys: places.list_sites(work, assignment, keys),
        )
        movable = self._reclaiming.list_movable(work, places.needs_place)
        return [Victim(key, Why.MOVED) for key in found or find_moves(movable, search)]

    def _is_owed(self, entry: Entry) -> bool:
        """Whether the queue of an entry is owed all that it would use with it."""
        tree, node = self._tree.handle, self._tree.queues[entry.queue.name]
        columns, amounts = self._tree.make_arrays(entry.usage)
        return bool((tree.usage[node, columns] + amounts <= tree.subtree[node, columns]).all())

    # What it gets.

    def _process(self, entry: Entry) -> None:
        self._ground.pause()
        if self._overlaps(entry):
            self._judge_without_preempted(entry)
        work, assignment, mode = entry.work, entry.assignment, generalize(entry.assignment.mode)
        # In a strict queue the first one is tried again if this try did not begin with the first flavor.
        goes_on = entry.queue.is_strict and has_more(work.tried)
        work.tried = assignment.tried
        queue = self._tree.queues[work.queue]
        work.tried_at = self._tree.n_cycles, self._tree.generations[queue]
        work.message = assignment.describe()
        if mode == Mode.NO_FIT:
            self._leave(entry, assignment.why.word, "", find_next(work, goes_on=goes_on))
        elif mode == Mode.PREEMPT and not entry.victims:
            wants_place = assignment.lacks_place or assignment.is_blocked
            reason = NO_PLACE if wants_place else WAITS_FOR_QUOTA
            self._leave(entry, reason, "", find_next(work, goes_on=goes_on))
            if entry.queue.preemption.reclaim != Policy.ANY:
                self._set_aside(entry, list_reserved(self._tree, entry))
        elif mode == Mode.PREEMPT and work.defined.evicts_nobody:
            work.tried = []
            self._leave(entry, GATED, EVICTS_NOBODY_SAID, PARKED)
        elif mode == Mode.DEFERRED:
            work.tried = []
            self._leave(entry, WAITS_FOR_VICTIMS, _DEFERRED, PREEMPTOR)
            self._set_aside(entry, entry.usage)
        elif self._overlaps(entry):
            self._leave(entry, WAITS_FOR_QUOTA, _OVERLAP, AGAIN)
        elif not self._fits(entry):
            self._leave(entry, WAITS_FOR_QUOTA, _NO_LONGER, AGAIN)
        elif mode == Mode.PREEMPT:
            self._preempt(entry)
        else:
            self._admit(entry)

    def _admit(self, entry: Entry) -> None:
        """Give an entry what fits, unless others have to be ready first, or there is no place."""
        work, assignment = entry.work, entry.assignment
        if self._ground.readiness.is_blocked:
            self._leave(entry, WAITS_FOR_PODS, SAID, PARKED)
            return
        promises = self._promises.list_binding(entry)
        if not self._takes_place(work, assignment):
            # Only somebody else can have got its place in this cycle: else another try would end as this one.
            is_taken = self._outcome.admitted or self._outcome.preempted
            self._leave(entry, NO_PLACE, _NO_LONGER, AGAIN if is_taken else PARKED)
        elif broken := self._find_broken(entry, promises):
            self._ground.places.let_go(work.key)
            self._keep_back(entry, broken)
        else:
            work.waits_for, work.tried = _NOBODY, []
            self._ground.admit(work, assignment)
            self._promises.note_admitted(work)
            self._outcome.admitted.append((work, assignment))
            if entry.old is not None:
                # Nobody else can have it go any more.
                self._preempted[entry.old.key] = entry.old

    def _find_broken(self, entry: Entry, promises: Sequence[Promise]) -> Promise | None:
        """Find a promise that an entry breaks that has taken its place, and would break in another place, too."""
        broken = self._promises.find_broken(promises, entry, has_place=True)
        work, places = entry.work, self._ground.places
        if broken is None or not (places.needs_place(work) and places.needs_place(broken.work)):
            return broken
        places.let_go(work.key)
        first = broken.work, broken.assignment
        if not places.take_beside(work, entry.assignment, first, broken.ended):
            return broken
        return self._promises.find_broken(promises, entry, has_place=True)

    def _takes_place(self, work: Work, assignment: Assignment) -> bool:
        """Take the place of a workload that needs one; return whether it has all that it needs."""
        places = self._ground.places
        return not places.needs_place(work) or places.take(work, assignment)

    def _leave(self, entry: Entry, reason: str, message: str, what: Next) -> None:
        """Let an entry get nothing in this cycle; a message that is empty leaves that of its assignment."""
        work = entry.work
        work.reason, work.message = reason, message or work.message
        if not what.is_preemptor:
            if work.waits_for:
                # What it was promised once they have gone is of no use to it.
                self._ground.places.let_go(work.key)
            work.waits_for = _NOBODY
        if what == PARKED and reason in {WAITS_FOR_QUOTA, NO_PLACE}:
            self._promises.note_vain(work)
        self._outcome.left.append((work, what))

    def _keep_back(self, entry: Entry, promise: Promise) -> None:
        """Let an entry wait, so that another workload starts when it was promised to."""
        entry.work.tried = []
        self._leave(entry, WAITS_FOR_QUOTA, self._promises.describe(promise), KEPT_BACK)
        self._ground.promise_book.keep_back(entry.work, promise.work, self._ground.now)

    def _preempt(self, entry: Entry) -> None:
        """Ask the victims to go, and set aside what the entry gets once they have gone."""
        work = entry.work
        promises = self._promises.list_binding(entry)
        if broken := self._promises.find_broken(promises, entry, has_place=False):
            self._keep_back(entry, broken)
            return
        for victim in entry.victims:
            holder = self._preempted[victim.key] = self._ground.works[victim.key]
            if not holder.is_going:
                self._outcome.preempted.append((victim, work))
        self._set_aside(entry, entry.usage)
        if self._ground.places.needs_place(work):
            gone = [one.key for one in entry.victims]
            self._ground.places.promise(work, entry.assignment, gone)
        else:
            self._kept[work.key] = entry.assignment, tuple(entry.victims)
        work.tried = []
        work.waits_for = frozenset(one.key for one in entry.victims)
        waits = f". Pending the preemption of {len(entry.victims)} workload(s)"
        self._leave(entry, WAITS_FOR_VICTIMS, work.message + waits, PREEMPTOR)

    def _overlaps(self, entry: Entry) -> bool:
        needed = [one.key for one in entry.victims] + ([entry.old.key] if entry.old else [])
        return any(key in self._preempted for key in needed)

    def _fits(self, entry: Entry) -> bool:
        """Whether there is quota for an entry once all have gone who were asked to go in this cycle, and its victims."""
        gone = self._preempted.keys() | {one.key for one in entry.victims}
        columns, amounts = self._tree.make_arrays(entry.usage)
        node = self._tree.queues[entry.queue.name]
        with self._tree.hide_rows(gone):
            return quotas.fits_within(self._tree.handle, node, columns, amounts, True)

    def _judge_without_preempted(self, entry: Entry) -> None:
        """Judge an entry as if all had gone who were asked to go in this cycle; it keeps its flavors."""
        with self._tree.hide_rows(self._preempted):
            self._judge(entry, [], entry.assignment.list_flavors())
        if entry.assignment.mode == Mode.FIT:
            entry.assignment.is_deferred = True

    def _set_aside(self, entry: Entry, amounts: Amounts) -> None:
        node = self._tree.queues[entry.queue.name]
        self._tree.charge(node, amounts, 1)
        self._aside.append((node, dict(amounts)))
