"""All queues with those who wait and those who hold quota, behind one door: objects in, cycles on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from scheduler.api.queues.bounds import Ranges
from scheduler.api.queues.definitions import (
    Check,
    Flavor,
    LocalQueueDefinition,
    QueueDefinition,
)
from scheduler.api.queues.settings import QueueSettings
from scheduler.api.queues.workloads import WorkloadDefinition
from scheduler.api.selectors import Labels
from scheduler.tenancy import slices
from scheduler.tenancy.assignments import Assignment
from scheduler.tenancy.candidates import Rules
from scheduler.tenancy.cycle import TreeCycle
from scheduler.tenancy.directory import Directory
from scheduler.tenancy.due_queues import DueQueues
from scheduler.tenancy.history import History
from scheduler.tenancy.index import WorkIndex
from scheduler.tenancy.lines import Line
from scheduler.tenancy.outcomes import NO_PLACE, Kept, Outcome
from scheduler.tenancy.places import Anywhere, Places
from scheduler.tenancy.promise_book import PromiseBook
from scheduler.tenancy.readiness import WAITS_FOR_PODS, Readiness
from scheduler.tenancy.steps import Steps
from scheduler.tenancy.stops import Stops
from scheduler.tenancy.trees import Amounts, Tree
from scheduler.tenancy.turns import Turn
from scheduler.tenancy.unplaced import Unplaced
from scheduler.tenancy.usage import LocalUsage
from scheduler.tenancy.works import Where, Work


class Tenants:
    """Queues, flavors, local queues and workloads.

    Attributes:
        directory, book: which queues and which flavors there are.
        works, index: the workloads by key, and by other keys.
        unplaced: those who wait for a time or for a place.
        stops: those who have a step to go by themselves, such as giving quota back that nobody else needs.
        readiness: whether others have to wait until pods are ready.
        lines: those who wait in each queue.
        rules: how queues take quota back from each other.
        history, usage: what local queues have used, and how much that is where it counts.
        places, pause: who finds places for workloads, and what a long cycle calls where it may pause.
        due_queues: the queues that are to be dealt with.
        promise_book: those who were tried in vain, and those who wait because of what these are promised.
        now: the time, in seconds since 1970.
    """

    def __init__(
        self,
        settings: QueueSettings,
        find_labels: Callable[[str], Labels | None] = lambda _: {},
    ) -> None:
        """``find_labels`` finds the labels of a namespace; None if there is none."""
        self.places: Places = Anywhere()
        self.pause: Callable[[], None] = lambda: None
        self.directory = Directory(find_labels, ignores_undeclared=settings.ignores_undeclared)
        self.book = self.directory.book
        self.works: dict[str, Work] = {}
        self.unplaced = Unplaced(self.works)
        self.stops = Stops(Steps(self.directory, settings), self.works)
        self.readiness = Readiness(blocks=settings.ready is not None and settings.ready.blocks)
        self.history = History(settings.history)
        self.usage = LocalUsage(self.directory, self.history, lambda: self.now)
        self.rules = Rules(settings.strategies, self.usage.find, settings.moves, settings.promises)
        self.lines: dict[str, Line] = {}
        self.index, self.now = WorkIndex(), 0.0
        self.due_queues = DueQueues(self.directory, self.lines)
        self.promise_book = PromiseBook(self.works, self.lines)

    def note_time(self, now: float) -> None:
        """Note when the next things happen."""
        self.now = now

    # Objects.

    def put_queue(self, queue: QueueDefinition) -> None:
        """Add or replace a queue of the cluster."""
        before = self.directory.forest.queues.get(queue.name)
        if before == queue:
            return
        self.directory.forest.put_queue(queue)
        if before is None or (before.is_strict, before.by_usage) != (queue.is_strict, queue.by_usage):  # fmt: skip
            self.lines[queue.name] = self.usage.make_line(queue)
        self._place_all(self._list_of_queue(queue.name))
        self.due_queues.note(queue.name)

    def drop_queue(self, name: str) -> None:
        """Remove a queue of the cluster; those who have quota in it keep it."""
        together = self.directory.list_together(name)
        self.directory.forest.drop_queue(name)
        self.lines.pop(name, None)
        self._place_all(self._list_of_queue(name))
        self.due_queues.retry_known(together)

    def put_flavor(self, flavor: Flavor) -> None:
        """Add or replace a flavor."""
        if self.book.put(flavor):
            self._look_again(self.directory.list_users(flavor.name))

    def drop_flavor(self, name: str) -> None:
        """Remove a flavor."""
        self.book.drop(name)
        self._look_again(self.directory.list_users(name))

    def put_topology(self, name: str, levels: tuple[str, ...] | None) -> None:
        """Add, replace or remove a topology."""
        if self.book.put_topology(name, levels):
            self._look_again(self.directory.list_users_of_topology(name))

    def put_check(self, name: str, check: Check | None) -> None:
        """Add, replace or remove an admission check."""
        if self.directory.put_check(name, check):
            self._look_again(self.directory.list_users_of_check(name))

    def put_local_queue(self, local: LocalQueueDefinition) -> None:
        """Add or replace the queue of a namespace."""
        key = f"{local.namespace}/{local.name}"
        self.history.open(key, dict(local.consumed), local.consumed_at, self.now)
        if self.directory.locals.get(key) != local:
            self.directory.locals[key] = local
            self._place_all(self.index.list_of_local(key))

    def drop_local_queue(self, key: str) -> None:
        """Remove the queue of a namespace; those who have quota keep it."""
        if self.directory.locals.pop(key, None) is not None:
            self._place_all(self.index.list_of_local(key))
            self.history.forget(key)

    def see_namespace(self, name: str) -> None:
        """Look again at the workloads of a namespace whose labels have changed."""
        for key, local in self.directory.locals.items():
            if local.namespace == name:
                self._place_all(self.index.list_of_local(key))

    def put_ranges(self, namespace: str, name: str, ranges: Ranges | None) -> None:
        """Add, replace or remove a LimitRange."""
        self.directory.put_ranges(namespace, name, ranges)
        self.see_namespace(namespace)

    def _look_again(self, queues: Iterable[str]) -> None:
        """Look again at all workloads that wait in some queues, and at those of their trees."""
        names = list(queues)
        self.directory.hide_inactive(names)
        for name in names:
            self._place_all(self._list_of_queue(name))
            self.due_queues.retry(name)

    def _list_of_queue(self, queue: str) -> list[str]:
        """List the workloads that name a queue."""
        return self.index.list_of_locals(self.directory.list_locals(queue))

    # Workloads.

    def put_workload(self, defined: WorkloadDefinition, now: float) -> Work:
        """Add a workload, or take over how it has changed."""
        self.make_ready(now)
        work = self.works.get(defined.key)
        if work is not None and work.defined.uid != defined.uid:
            self.drop_workload(defined.key, now)
            work = None
        if work is None:
            work = self.works[defined.key] = Work(defined)
        elif work.defined == defined:
            return work
        else:
            self._leave_line(work)
            self.index.drop(work)
            work.define(defined)
            work.is_going = False
        self.stops.forget(work.key)
        self.index.add(work)
        self._place(work)
        return work

    def drop_workload(self, key: str, now: float) -> None:
        """Remove a workload."""
        self.now = now
        work = self.works.pop(key, None)
        if work is not None:
            self._undo(work)
            self.places.let_go(key)
            self._leave_line(work)
            self.index.drop(work)
            self.unplaced.later.discard(key)
            self.stops.forget(key)

    def _place_all(self, keys: Iterable[str]) -> None:
        for key in sorted(keys):
            self._place(self.works[key])

    def _place(self, work: Work) -> None:
        """Put a workload where it belongs, and note what comes next of it."""
        self._put(work)
        self.stops.note(work)

    def _put(self, work: Work) -> None:
        """Put a workload among those who hold quota, into its line, or aside."""
        defined = work.defined
        self.unplaced.later.discard(work.key)
        if defined.admission is not None and not defined.is_finished:
            self._leave_line(work)
            work.replaced_by = slices.find_new(work, self.index.list_replacing(work.key))
            if work.replaced_by is None:
                self._hold(work, defined.admission.queue)
            else:
                self._release(work)
            return
        if work.is_assumed and not defined.is_finished:
            return
        self._undo(work)
        local = self.directory.find_local(defined)
        queue = local.queue if local else ""
        why = ("", "") if slices.is_over(work) else self.directory.find_obstacle(defined, self.now)
        if why is None and work.queue == queue and work.key in self.lines[queue]:
            return
        self._leave_line(work)
        work.queue, work.where = queue, Where.ASIDE
        if why is None:
            work.where, (work.reason, work.message) = Where.WAITS, self.unplaced.note_back(work)
            self.lines[queue].put(work)
            self.due_queues.note(queue)
            return
        work.reason, work.message = why
        self.unplaced.note_aside(work, self.now)

    @property
    def has_due(self) -> bool:
        """Whether somebody may get quota now."""
        has_queues = bool(self.due_queues or self.unplaced.aside)
        return has_queues or self.stops.has_any or self.directory.forest.has_changed

    # Quota.

    def _hold(self, work: Work, queue: str) -> None:
        """Let a workload hold what its object says that it was given."""
        used = work.list_used()
        held = self.directory.forest.list_held(queue).get(work.key)
        if work.where != Where.HOLDS or work.queue != queue or held != used:
            at = (work.defined.admission.at if work.defined.admission else 0.0) or self.now
            # What it has used before is known already if it had quota.
            since = self.now if work.where == Where.HOLDS else at
            self._release(work)
            # Somebody else has let it in, or an earlier process: its pods may be somewhere or not.
            self.unplaced.somewhere[work.key] = None
            self._take_up(work, queue, used, (at, since))
        work.is_assumed = False
        if (old := self._take_from_old(work)) is not None:
            self.stops.note(old)
        work.is_going = work.is_going or bool(work.defined.evicted)
        self._note_ready(work.key, is_ready=work.defined.life.is_ready is True)

    def _take_up(self, work: Work, queue: str, used: Amounts, at: tuple[float, float]) -> None:
        """Let a workload hold quota; ``at``: since when it has some, and from when on what it uses is not added up yet."""
        work.queue = queue
        self._take_from_old(work)
        work.where, work.reserved_at, work.is_owed = Where.HOLDS, at[0], False
        work.reason = work.message = ""
        self.due_queues.retry_known(self.directory.hold(queue, work.key, used))
        self.history.start(work.local, work.key, used, self.now, at[1])
        self._note_ready(work.key, is_ready=False)

    def _take_from_old(self, work: Work) -> Work | None:
        """Let the slice that a workload replaces hold nothing any more, and return it."""
        if (old := slices.find_old(self.works, work)) is not None:
            self.places.hand_over(old.key, work.key)
            self._release(old)
            old.replaced_by = work
        return slices.find_replaced(self.works, work)

    def _undo(self, work: Work) -> None:
        """Let a workload hold nothing; the slice that it replaces does again, if the object never said that it does not."""
        old = slices.give_back(self.works, work)
        self._release(work)
        self._place_all([old.key] if old is not None else ())

    def _note_ready(self, key: str, *, is_ready: bool) -> None:
        """Note whether the pods of a workload with quota are ready; those who have waited for it are tried again."""
        self.due_queues.retry_known(self.readiness.note(key, is_ready=is_ready))

    def _release(self, work: Work) -> None:
        """Let a workload hold nothing any more; others of its tree may have it."""
        if work.where != Where.HOLDS:
            return
        used = self.directory.forest.list_held(work.queue).get(work.key, {})
        self.history.end(work.local, work.key, used, self.now)
        self.directory.forest.release(work.queue, work.key)
        self.places.let_go(work.key)
        self.due_queues.retry(work.queue)
        self._note_ready(work.key, is_ready=True)
        work.where, work.is_going, work.is_assumed = Where.ASIDE, False, False

    def _leave_line(self, work: Work) -> None:
        line = self.lines.get(work.queue)
        if line is not None:
            line.drop(work.key)
        self.due_queues.retry_known(self.promise_book.take_freed(work.key, work.queue))

    def look_for_places(self) -> None:
        """Look again for places: nodes have come, or more is free."""
        self.unplaced.restore_places(self.places)
        self.due_queues.retry_known(self.unplaced.take_lacking())

    def find_queue(self, name: str) -> QueueDefinition:
        """Return a queue of the cluster."""
        return self.directory.forest.queues[name]

    def admit(self, work: Work, assignment: Assignment) -> None:
        """Let a workload hold what it gets; its object says so later."""
        self._leave_line(work)
        self._take_up(work, work.queue, dict(assignment.usage), (self.now, self.now))
        work.is_assumed = True

    def take_over(self, key: str, queue: str, amounts: Amounts, now: float) -> None:
        """Let a workload hold quota again that it had been given before a fresh start, if it holds none."""
        self.make_ready(now)
        work = self.works.get(key)
        if work is not None and work.where != Where.HOLDS and queue in self.directory.forest.queues:
            self._leave_line(work)
            self._take_up(work, queue, amounts, (now, now))
            work.is_assumed = True

    def send_away(self, key: str) -> None:
        """Note that a workload is to give its quota back."""
        work = self.works.get(key)
        if work is not None and work.where == Where.HOLDS:
            work.is_going = True
            self.stops.note(work)

    def undo_admit(self, key: str, now: float) -> None:
        """Take quota back from a workload whose object could not be written."""
        self.now = now
        work = self.works.get(key)
        if work is not None and work.is_assumed:
            self._undo(work)
            self._place(work)

    def undo_preempt(self, key: str, *, keeps_quota: bool = False) -> None:
        """Note that a workload could not be asked to go, or to do a step that has nothing to do with its quota."""
        self.stops.forget(key)
        work = self.works.get(key)
        if work is not None and not keeps_quota and (work.is_assumed or not work.defined.evicted):
            work.is_going = False
            self.due_queues.note(work.queue)
        if work is not None:
            self.stops.note(work)

    # Cycles.

    def list_due(self, now: float) -> Iterator[Turn]:
        """List the turns of the trees in which somebody may get quota."""
        self.make_ready(now)
        self._place_all(self.unplaced.list_over(now))
        self.due_queues.retry_known(self.promise_book.take_due(now))
        yield from self.due_queues.take_turns(self.index.n_changes)

    def make_ready(self, now: float) -> None:
        """Make the trees anew that have changed, and look again at the workloads of their queues."""
        self.now = now
        changed = self.directory.forest.take_changed()
        self.directory.hide_inactive(changed)
        for name in changed:
            self.due_queues.retry(name)
            self._place_all(self._list_of_queue(name))

    def find_heads(self, tree: Tree) -> list[Work]:
        """Find the first one of each queue of a tree."""
        lines = (self.lines.get(name) for name, i in tree.queues.items() if i not in tree.hidden)
        heads = (line.find_head() for line in lines if line is not None)
        return [work for work in heads if work is not None]

    def run_cycle(
        self, tree: Tree, heads: Iterable[Work], now: float, kept: Kept | None = None
    ) -> Outcome:
        """Deal with the first one of each queue of a tree; ``kept`` as in ``TreeCycle``. Whoever gets quota holds it at once."""
        self.now = now
        outcome = TreeCycle(tree, self, kept).run(heads)
        for work, what in outcome.left:
            self.lines[work.queue].note_left(work, what)
            if work.reason == NO_PLACE:
                self.unplaced.lacking[work.queue] = None
            elif work.reason == WAITS_FOR_PODS:
                self.readiness.note_waiting(work.queue)
        for victim, _ in outcome.preempted:
            self.send_away(victim.key)
        return outcome

    def find_reason(self, work: Work) -> tuple[str, str]:
        """Find why a workload waits, as a reason and a message."""
        is_waiting = work.where == Where.WAITS
        return self.lines[work.queue].find_reason(work) if is_waiting else (work.reason, work.message)  # fmt: skip
