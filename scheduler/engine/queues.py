"""The queues of tenants in the engine: keeps their objects, and decides who gets quota.

What is read is kept even if it is wrong: a queue with a mistake stays as it was and admits nobody, and a workload with a
mistake waits. The note about the object says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from scheduler.api import kueue, wire
from scheduler.api.door import events, notes
from scheduler.api.door.decisions import Outcome
from scheduler.api.door.notes import Note
from scheduler.api.door.workload_decisions import Admit, DomainsGiven, Preempt, Queued, SetGiven
from scheduler.api.groups.definitions import Topology
from scheduler.api.queues import bounds, reading
from scheduler.api.queues.definitions import QueueDefinition
from scheduler.api.queues.workloads import Shapes, WorkloadDefinition, read_workload
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.engine import stand_in_victims
from scheduler.engine.allowance import Allowance
from scheduler.engine.allowance import Work as Piece
from scheduler.engine.keeping import Keeper, make_keeper
from scheduler.engine.node_failures import NodeFailures
from scheduler.engine.seats import Seats
from scheduler.engine.workload_gate import WorkloadGate
from scheduler.engine.workload_places import WorkloadPlaces
from scheduler.engine.workload_pods import FINISHED, WorkloadPods
from scheduler.errors import BadInput
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from scheduler.tenancy import concessions
from scheduler.tenancy.assignments import Assignment, SetAssignment
from scheduler.tenancy.rounds import Round, run_rounds
from scheduler.tenancy.tenants import Tenants
from scheduler.tenancy.works import Work
from scheduler.waiting.admissions import ADMISSIONS, Admission

_NEVER = float("inf")
# Those who wait for a place are tried again that often at most, while anything changes on nodes.
_LOOK_SECONDS = 1.0
# A kind, who takes its objects and their keys, and who lists the keys.
_Kept = tuple[type[Any], Callable[[Any], None], Callable[[str], None], Callable[[], Iterable[str]]]
_NOTHING: tuple[Note, ...] = ()
Restored = (
    events.QuotaGiven
    | events.QuotaGoing
    | events.StepGoing
    | events.GaveWay
    | events.UsageKnown
    | events.QueuesHeld
)
RESTORED = (
    events.QuotaGiven,
    events.QuotaGoing,
    events.StepGoing,
    events.GaveWay,
    events.UsageKnown,
    events.QueuesHeld,
)
# Shapes that nobody uses any more are forgotten when there are more than twice as many as after the last look.
_SHAPES_LEAST = 1024


class Queues:
    """Keeps the objects of queues, and decides about the workloads in them.

    Attributes:
        tenants: the queues, who waits in them and who has quota.
        is_on: whether queues are managed.
        pods: which pods are those of which workload.
        is_held: whether another program manages them, so that nothing is decided here.
    """

    def __init__(self, config: Config, cluster: Cluster, cycle: Cycle) -> None:
        """Queues that have no object yet."""
        settings = config.queues
        self._settings, self._cluster = settings, cluster
        self.is_on, self.pods = settings.kueue, WorkloadPods()
        self.is_held = False
        # How many lasting changes of nodes there were when those who wait for a place were tried last, and the time.
        self._moved, self._seen, self._looked_at = cluster.moved, -1, 0.0
        self.tenants = Tenants(settings, cluster.terms.find_labels)
        self._places = WorkloadPlaces(cluster, cycle, self.tenants, self.pods)
        self.tenants.places, self.tenants.pause = self._places, cluster.pauses.take
        self._seats = Seats(cluster, self.tenants, self.pods)
        self._failures = NodeFailures(cluster, self.tenants, self.pods, self._places, self._seats)
        self._shapes = Shapes(config.scheduler_names)
        self._shapes_most = _SHAPES_LEAST
        # Why each workload was left in its queue, as it was said last.
        self._said: dict[str, tuple[str, str]] = {}
        self._gate = WorkloadGate(self.tenants, self.pods, cluster.pods, self._has_no_place)
        # Pods whose workload has changed, so that they may be tried, or may be tried no longer.
        self._woken: list[str] = []

    def list_admissions(self) -> tuple[Admission, ...]:
        """List what has to say yes before pods are tried."""
        waits = self.is_on and self._settings.makes_workloads
        return (*ADMISSIONS, self._gate) if waits else ADMISSIONS

    def take_woken(self) -> list[str]:
        """Take the uids of the pods whose workload has changed."""
        woken, self._woken = self._woken, []
        return woken

    def make_keepers(self) -> dict[str, Keeper]:
        """Make a keeper for each kind."""
        tenants, directory = self.tenants, self.tenants.directory
        forest, flavors = directory.forest, directory.book.flavors
        plain: tuple[_Kept, ...] = (
            (kueue.ResourceFlavor, self._put_flavor, tenants.drop_flavor, flavors.keys),
            (kueue.Cohort, self._put_cohort, forest.drop_cohort, forest.cohorts.keys),
            (kueue.ClusterQueue, self._put_queue, tenants.drop_queue, forest.queues.keys),
            (kueue.LocalQueue, self._put_local, tenants.drop_local_queue, directory.locals.keys),
            (kueue.LimitRange, self._put_range, self._drop_range, directory.list_ranges),
            (
                kueue.AdmissionCheck,
                self._put_check,
                lambda name: tenants.put_check(name, None),
                directory.checks.keys,
            ),
            (
                kueue.WorkloadPriorityClass,
                self._put_class,
                self._drop_class,
                directory.classes.keys,
            ),
        )
        keepers = {
            str(kept[0].__struct_config__.tag): make_keeper(*kept, tenants.note_time)
            for kept in plain
        }
        kind = str(kueue.Workload.__struct_config__.tag)
        keepers[kind] = Keeper(self._see_workload, self._drop_workload, lambda: tenants.works)
        return keepers

    def see_topology(self, name: str, topology: Topology | None) -> None:
        """Take over the levels of one of Kueue's topologies; None if it is gone or cannot be read."""
        levels = None if topology is None else tuple(one.label for one in topology.levels)
        self.tenants.put_topology(name, levels)

    # Objects.

    def _put_flavor(self, found: kueue.ResourceFlavor) -> None:
        self.tenants.put_flavor(reading.read_flavor(found))

    def _put_cohort(self, found: kueue.Cohort) -> None:
        self.tenants.directory.forest.put_cohort(reading.read_cohort(found))

    def _put_queue(self, found: kueue.ClusterQueue) -> None:
        try:
            self.tenants.put_queue(reading.read_queue(found))
        except BadInput as error:
            name = found.metadata.name
            known = self.tenants.directory.forest.queues.get(name) or QueueDefinition(name=name)
            is_going = found.metadata.deletion_timestamp is not None
            self.tenants.put_queue(replace(known, mistake=str(error), is_going=is_going))
            raise

    def _put_local(self, found: kueue.LocalQueue) -> None:
        self.tenants.put_local_queue(reading.read_local_queue(found))

    def _put_range(self, found: kueue.LimitRange) -> None:
        meta = found.metadata
        self.tenants.put_ranges(meta.namespace, meta.name, bounds.read_limit_range(found.spec))

    def _drop_range(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        self.tenants.put_ranges(namespace, name, None)

    def _put_check(self, found: kueue.AdmissionCheck) -> None:
        self.tenants.put_check(found.metadata.name, reading.read_check(found))

    def _put_class(self, found: kueue.WorkloadPriorityClass) -> None:
        name, tenants = found.metadata.name, self.tenants
        tenants.directory.classes[name] = found.value
        works = tenants.works.values()
        tenants.stops.note_all(one for one in works if one.defined.priority_class == name)

    def _drop_class(self, name: str) -> None:
        self.tenants.directory.classes.pop(name, None)

    def _see_workload(self, found: kueue.Workload, now: float) -> Sequence[Note]:
        meta = found.metadata
        key, problem = f"{meta.namespace}/{meta.name}", ""
        try:
            defined = self._read(found)
            work = self.tenants.put_workload(defined, now)
            self._failures.see_workload(defined)
            self._woken += self.pods.list_of(defined)
            if work.reserved_at:
                self._said.pop(key, None)
        except BadInput as error:
            problem = str(error)
            self._drop_workload(key, now)
        if len(self._shapes) > self._shapes_most:
            self._forget_shapes()
        kind = str(kueue.Workload.__struct_config__.tag)
        return (notes.QueueRead(kind, key, meta.generation, problem),)

    def _read(self, found: kueue.Workload) -> WorkloadDefinition:
        settings = self._settings
        return read_workload(
            found,
            self._shapes,
            by_eviction=settings.by_eviction,
            with_run_time=settings.promises,
        )

    def _forget_shapes(self) -> None:
        works = self.tenants.works.values()
        self._shapes.forget_unused({id(one.shape) for work in works for one in work.sets})
        self._shapes_most = max(_SHAPES_LEAST, 2 * len(self._shapes))

    def _drop_workload(self, key: str, now: float) -> Sequence[Note]:
        if (work := self.tenants.works.get(key)) is not None:
            self._woken += self.pods.list_of(work.defined)
        self.tenants.drop_workload(key, now)
        self._failures.drop_workload(key)
        self._said.pop(key, None)
        return _NOTHING

    # Fresh starts.

    def list_known(self) -> Iterator[events.Event]:
        """Yield events for what no object says: quota that was just given, who is to give it back, what was used."""
        if self.is_held:
            yield events.QueuesHeld(True)
        tenants = self.tenants
        for work in (work for work in tenants.works.values() if work.is_assumed):
            held = tenants.directory.forest.list_held(work.queue)[work.key]
            amounts = tuple((flavor, name, n) for (flavor, name), n in held.items())
            yield events.QuotaGiven(work.key, work.queue, amounts)
        for work in tenants.works.values():
            if work.given or work.is_owed:
                yield events.GaveWay(work.key, tuple(sorted(work.given)), work.is_owed)
            if work.key in tenants.stops.under_way:
                yield events.StepGoing(work.key)
            # Of quota that its object does not know of yet, an eviction is one before.
            if work.is_going and (work.is_assumed or not work.defined.evicted):
                yield events.QuotaGoing(work.key)
        for local, account in tenants.history.list_known().items():
            yield events.UsageKnown(local, account)

    def restore(self, event: Restored, now: float) -> Sequence[Note]:
        """Take over what ``list_known`` has said, or what has changed of it."""
        match event:
            case events.QuotaGiven(key, queue, amounts):
                held = {(flavor, name): n for flavor, name, n in amounts}
                self.tenants.take_over(key, queue, held, now)
            case events.QuotaGoing(key):
                self.tenants.send_away(key)
            case events.GaveWay(key, given, is_owed) if key in self.tenants.works:
                concessions.take_over(self.tenants.works[key], given, is_owed=is_owed)
            case events.StepGoing(key):
                self.tenants.stops.take_up(key)
            case events.UsageKnown(local, account):
                self.tenants.history.take_over(local, account)
            case events.QueuesHeld(is_held):
                self.is_held = is_held
                self._failures.look_for_places()
                for work in self.tenants.works.values():
                    self._woken += self.pods.list_of(work.defined)
        return _NOTHING

    # Nodes and pods.

    def note_node(self, name: str) -> None:
        """Note that a node has come, has other taints or is gone."""
        self._failures.note_node(name)

    def note_pod(self, pod: wire.Pod) -> None:
        """Note of which workload a pod may be."""
        if self.is_on:
            if pod.status.phase in FINISHED or pod.metadata.deletion_timestamp is not None:
                self._failures.note_pod(pod.metadata.uid)
                self._woken += self._gate.list_kin(pod.metadata.uid)
            self.pods.note(pod)

    def drop_pod(self, uid: str) -> None:
        """Forget a pod that is gone, while the cluster still knows where it was; another one may go there."""
        if self.is_on:
            self._failures.note_pod(uid)
            self._woken += self._gate.list_kin(uid)
            self.pods.drop(uid)
            self._seats.forget(uid)

    def give_seat(self, pod: PodRecord) -> None:
        """Give a pod of ours that has come the place that its workload holds for it."""
        if self.is_on and pod.ours and not pod.deleting:
            self._seats.give(pod)

    def _has_no_place(self, key: str, uid: str) -> bool:
        # While another program manages the queues, no place is looked for.
        return not self.is_held and self._failures.has_no_place(key, uid)

    # Results.

    def undo_admit(self, event: events.AdmitFailed, now: float) -> Sequence[Note]:
        """Take quota back that could not be given: the workload waits again."""
        self.tenants.undo_admit(event.key, now)
        return _NOTHING

    def undo_preempt(self, event: events.PreemptFailed, _: float) -> Sequence[Note]:
        """Let a workload stay that could not be asked to go, or to do another step."""
        self.tenants.undo_preempt(event.key, keeps_quota=event.keeps_quota)
        self._failures.note_workload(event.key)
        return _NOTHING

    # Decisions.

    def find_due(self) -> float:
        """Return when somebody may get quota; infinite if nobody may until something happens."""
        if self._woken:
            return 0.0
        if self.is_held:
            return _NEVER
        if self.tenants.has_due or self._failures.has_any:
            return 0.0
        tenants = self.tenants
        dues = [tenants.unplaced.find_due(), tenants.stops.find_due(), self._find_look()]
        # Where nothing ends by itself, as in a simulation, those who wait for a promise wait for what happens, and
        # nobody reads from time to time what local queues have used.
        if self._settings.ends_runs:
            dues += tenants.promise_book.find_due(), tenants.usage.find_due()
        return min((due for due in dues if due is not None), default=_NEVER)

    def _find_look(self) -> float | None:
        """Find when those are tried again who wait for a place; None before anything has changed on nodes."""
        # What a trial does and undoes, as for an answer, opens no place.
        is_changed = self._moved.n_lasting != self._seen
        is_wanted = self.tenants.unplaced.wants_places or self._failures.wants_places
        return self._looked_at + _LOOK_SECONDS if is_wanted and is_changed else None

    def work(self, now: float, allowance: Allowance, outcome: Outcome) -> None:
        """Give quota to all who can have it, and ask those to go who have to, as far as the allowance goes."""
        if self.is_held:
            return
        look = self._find_look()
        if look is not None and look <= now:
            self._looked_at = now
            self.tenants.look_for_places()
            self._failures.look_for_places()
        self._failures.work(allowance, outcome)
        self._woken += self._failures.take_woken()
        self.tenants.usage.sample(now)
        outcome.quotas.extend(self.tenants.stops.take(now))
        # After a round the state is whole. So what was decided by then is carried out before the next one.
        for one in run_rounds(self.tenants, now, lambda: allowance.allows(Piece.ROUND)):
            self._add_round(one, outcome)
        for work in self.tenants.unplaced.take_aside():
            self._add_reason(work, outcome)
        # What was placed here has moved rows, too.
        self._seen = self._moved.n_lasting

    def evict_stand_ins(self, outcome: Outcome) -> None:
        """Evict the workloads of pods that do not exist and were chosen as victims."""
        if self.is_on:
            stand_in_victims.evict_workloads(outcome, self._cluster, self.tenants)

    def _add_round(self, found: Round, outcome: Outcome) -> None:
        for work, assignment in found.admitted:
            self._said.pop(work.key, None)
            outcome.quotas.append(self._make_admit(work, assignment))
        for victim, by in found.preempted:
            work = self.tenants.works[victim.key]
            outcome.quotas.append(Preempt(work.key, work.uid, by.key, victim.why))
        for work in found.left:
            self._add_reason(work, outcome)

    def _make_admit(self, work: Work, assignment: Assignment) -> Admit:
        domains = self._places.domains.find_domains(work, assignment)
        sets = (_make_given(one, domains.get(one.name)) for one in assignment.sets)
        return Admit(work.key, work.uid, work.queue, tuple(sets))

    def _add_reason(self, work: Work, outcome: Outcome) -> None:
        """Say why a workload waits, if that has not been said."""
        said = work.reason, work.message
        if self._said.get(work.key) != said:
            self._said[work.key] = said
            outcome.quotas.append(Queued(work.key, work.uid, *said))


def _make_given(one: SetAssignment, domains: DomainsGiven | None) -> SetGiven:
    return SetGiven(
        one.name,
        one.n_pods,
        tuple(sorted((resource, chosen.flavor) for resource, chosen in one.flavors.items())),
        tuple(sorted((name, n) for name, n in one.requests.items() if name in one.flavors)),
        domains,
    )
