"""Prepares a simulation: reads objects, applies changes, and adds the pods of workloads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from scheduler.api import kai, kueue, names, wire
from scheduler.api.admission.settings import AdmissionSettings, follow_devices
from scheduler.api.claims.objects import ResourceClaimTemplate
from scheduler.api.door import events, notes
from scheduler.api.kinds import PODS
from scheduler.api.queues.settings import KaiSettings, QueueSettings
from scheduler.api.times import read_time, write_time
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.engine.questions.simulating import PodsByGroup
from scheduler.errors import BadInput
from scheduler.simulate.admitting import admit_pods
from scheduler.simulate.changes import scale, what_if
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.queues import read_key
from scheduler.simulate.reading import inventory as inventories
from scheduler.simulate.reading import kinds
from scheduler.simulate.reading.inventory import InputProblem, Inventory
from scheduler.simulate.reading.objects import NOT_YET
from scheduler.simulate.workloads import queued, queued_jobs, serving
from scheduler.simulate.workloads.make import Making, make_pods
from scheduler.simulate.workloads.rollout import Earlier

_NOTHING: Earlier = {}


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that is needed to place pods.

    Attributes:
        inventory: the objects that were read, with the pods that were made.
        making: which pods were made, and the owners of all pods.
        displaced: the node that a pod had to leave, by uid.
        unlisted: kinds that a cluster would not list, and why; None if all objects are from files.
        remarks: more that a user must know about where the objects come from.
        own: the positions of one's own objects, if they are beside a baseline.
    """

    inventory: Inventory
    making: Making
    displaced: Mapping[str, str] = field(default_factory=dict)
    unlisted: Mapping[str, str] | None = None
    remarks: Sequence[str] = ()
    own: AbstractSet[int] = frozenset()


def prepare(
    objects: Sequence[Mapping[str, Any]],
    changes: Changes,
    *,
    strict: bool,
    unlisted: Mapping[str, str] | None = None,
    remarks: Sequence[str] = (),
    earlier: Earlier = _NOTHING,
    own: AbstractSet[int] = frozenset(),
) -> Situation:
    """Read the objects and apply the changes; ``unlisted``, ``remarks`` and ``own`` as in ``Situation``.

    ``earlier`` has the workloads of one's own files, see ``make``.

    Raises:
        InputProblem: an object of the changes is malformed or of another kind.
        BadInput: a change names an object that does not exist; if strict, only if nothing else is wrong.
    """
    _check_kinds(objects, changes)
    inventory = inventories.read_inventory(
        [*objects, *changes.nodes, *changes.policies],
        strict=strict,
        unlisted=frozenset(unlisted or ()),
    )
    for problem in inventory.mistakes.values():
        if problem.position >= len(objects):
            # Without this object the question would make no sense.
            inventory.refuse_mistakes()
            raise problem
    try:
        displaced = what_if.apply_changes(inventory, changes)
        scaled = scale.scale_workloads(inventory, list(changes.scale))
    except BadInput:
        # The missing object may have been left out for its mistake.
        inventory.refuse_mistakes()
        raise
    added = frozenset(kinds.read_key(body).name for body in changes.nodes)
    if inventory.waits_for_quota:
        queued_jobs.let_run(inventory)
    making = make_pods(inventory, scaled, added, earlier)
    if inventory.waits_for_quota:
        serving.write_queues(inventory, making)
        queued.add_workloads(inventory, making)
    return Situation(inventory, making, displaced, unlisted, [*remarks, *making.remarks], own)


def _configure(engine: Engine, inventory: Inventory, config: Config) -> AdmissionSettings | None:
    """Let an engine read the ConfigMaps that configure devices; return by what pods with devices are admitted, if they are."""
    webhook = config.device_webhook
    admission = None if webhook is None else webhook.admission
    if admission is not None:
        admission = replace(admission, scheduler_names=config.scheduler_names)
    for position, found in inventory.config_maps:
        for note in engine.handle(events.Seen(found), 0.0):
            if isinstance(note, notes.DeviceMapRead) and note.problem:
                named = inventories.read_name(inventory.objects[position])
                problem = BadInput("", note.problem)
                inventory.keep_problem(InputProblem(position, named, problem))
                inventory.refuse_mistakes()
            elif isinstance(note, notes.DeviceMapRead) and note.taken and admission is not None:
                admission = follow_devices(admission, note.taken)
    return admission


def make_engine(
    inventory: Inventory,
    config: Config,
    *,
    only_ours: bool = False,
    own: AbstractSet[str] = frozenset(),
) -> Engine:
    """Make an engine that has seen all objects, and has decided nothing.

    Waiting pods with the names of other schedulers get our name; if ``only_ours``, those alone that are ``own``.

    Raises:
        InputProblem: strict, and a ConfigMap that configures devices has a mistake.
    """
    now = find_time(inventory)
    config = replace(config, queues=_switch_on(config.queues, inventory))
    engine = Engine(config, pace=PROMPT, is_shared=False)
    made, given = _part_workloads(inventory)
    admission = _configure(engine, inventory, config)
    _show_rest(engine, inventory, given, now)
    if admission is not None:
        admit_pods(engine, inventory, admission)
    for pod in inventory.pods:
        engine.handle(events.Seen(_date_pod(pod, now) if config.ageing_per_hour else pod), now)
    foreign = [one for one in inventory.pods if one.spec.scheduler_name not in config.scheduler_names]  # fmt: skip
    waiting = {one.metadata.uid for one in foreign if not one.spec.node_name}
    wanted = _find_takeable(engine, foreign, waiting & own if only_ours else waiting)
    for pod in foreign:
        if pod.metadata.uid in wanted:
            pod.spec.scheduler_name = config.scheduler_name
    _name_scheduler(inventory, made, config)
    for workload in made:
        engine.handle(events.Seen(workload), now)
    # The pods of these Workloads come after them: a pod that may be tried when it comes is tried.
    late = {uid for uids in inventory.made_workloads.values() for uid in uids}
    for pod in inventory.pods:
        uid = pod.metadata.uid
        if uid in late and not pod.spec.node_name:
            engine.handle(events.Gone(PODS.name, uid), now)
        elif uid not in wanted:
            continue
        engine.handle(events.Seen(_date_pod(pod, now) if config.ageing_per_hour else pod), now)
    # With this call everything that is expensive to compile is compiled.
    engine.decide(now, Unlimited(pods=0))
    return engine


def _show_rest(
    engine: Engine,
    inventory: Inventory,
    given: Iterable[kueue.QueueObject | kai.Queue],
    now: float,
) -> None:
    """Let an engine see all that is neither a pod nor a Workload that was made here; of queues, what was given."""
    for found in (
        *inventory.policies,
        *inventory.namespaces,
        *inventory.peers,
        *inventory.grouping,
        *given,
        *inventory.budgets,
        *inventory.space_quotas,
        *inventory.storage,
        *(one for one in inventory.claiming if not isinstance(one, ResourceClaimTemplate)),
        *inventory.nodes,
    ):
        engine.handle(events.Seen(found), now)


def _switch_on(settings: QueueSettings, inventory: Inventory) -> QueueSettings:
    """Manage the queues of each system of which there are objects."""
    n_of_kai = sum(isinstance(one, kai.Queue) for one in inventory.queueing)
    return replace(
        settings,
        kueue=settings.kueue or len(inventory.queueing) > n_of_kai,
        kai=settings.kai or (KaiSettings() if n_of_kai else None),
        makes_workloads=settings.makes_workloads and inventory.waits_for_quota,
        # What is simulated is a moment.
        ends_runs=False,
    )


def _part_workloads(
    inventory: Inventory,
) -> tuple[list[kueue.Workload], list[kueue.QueueObject | kai.Queue]]:
    """Part the Workloads that were made here from the other objects of queues."""
    made, given = list[kueue.Workload](), list[kueue.QueueObject | kai.Queue]()
    for one in inventory.queueing:
        if isinstance(one, kueue.Workload) and read_key(one) in inventory.made_workloads:
            made.append(one)
        else:
            given.append(one)
    return made, given


def _name_scheduler(inventory: Inventory, made: Iterable[kueue.Workload], config: Config) -> None:
    """Let Workloads that were made here name the scheduler of their pods, which may have got our name.

    Those of our own pods get quota only together with nodes. Without any node, quota alone can be decided.
    """
    names_of = {pod.metadata.uid: pod.spec.scheduler_name or "" for pod in inventory.pods}
    for one in made:
        uids = inventory.made_workloads[read_key(one)]
        is_ours = all(names_of.get(uid) in config.scheduler_names for uid in uids)
        for pod_set in one.spec.pod_sets or ():
            if not inventory.nodes:
                pod_set.template.spec.scheduler_name = None
            elif uids and is_ours:
                pod_set.template.spec.scheduler_name = config.scheduler_name


def _find_takeable(engine: Engine, foreign: Sequence[wire.Pod], wanted: set[str]) -> set[str]:
    """Find the pods of other schedulers that get our name, so that those that are wanted are placed.

    In a cluster a group whose pods name several schedulers is refused, so its pods keep their names. Of other groups the
    pods on nodes get our name as well.
    """
    if not wanted:
        return wanted
    name_of = {pod.metadata.uid: pod.spec.scheduler_name for pod in foreign}
    found = set(wanted)
    for uids in engine.ask(PodsByGroup()).values():
        if wanted.isdisjoint(uids):
            continue
        if len({name_of.get(uid) for uid in uids}) > 1:
            found.difference_update(uids)
        else:
            found.update(uids)
    return found


def find_time(inventory: Inventory) -> float:
    """Find the time at which the objects were read: the last time that a pod among them names; 0 if none does."""
    texts = (
        text
        for pod in inventory.pods
        for text in (pod.metadata.creation_timestamp, pod.status.start_time or "")
        if text != NOT_YET
    )
    of_queues = (one.metadata.creation_timestamp for one in inventory.queueing)
    named = (*texts, *(text for text in of_queues if text != NOT_YET))
    return float(max((at for text in named if (at := read_time(text)) is not None), default=0))


def _date_pod(pod: wire.Pod, now: float) -> wire.Pod:
    """Give a pod that is not in a cluster yet the time at which it would be created: its age counts."""
    if pod.metadata.creation_timestamp != NOT_YET:
        return pod
    # A second later than all others, so that it still comes after them.
    meta = msgspec.structs.replace(pod.metadata, creation_timestamp=write_time(now + 1))
    return msgspec.structs.replace(pod, metadata=meta)


def _check_kinds(objects: Sequence[Mapping[str, Any]], changes: Changes) -> None:
    wanted = [
        *((body, "Node", "v1") for body in changes.nodes),
        *((body, "BalancePolicy", f"{names.GROUP}/{names.VERSION}") for body in changes.policies),
    ]
    for position, (body, kind, version) in enumerate(wanted, len(objects)):
        if isinstance(body, kinds.Illegible):
            raise InputProblem(position, "", BadInput("", body.problem))
        if kinds.find_kind(body) != kind:
            # If the kind is right, the version is the mistake.
            field, allowed = ("apiVersion", version) if body.get("kind") == kind else ("kind", kind)
            given = body.get(field)
            said = "is missing" if given is None else f'"{given}" is not allowed'
            problem = BadInput(field, f"{said}; it must be {allowed}")
            raise InputProblem(position, inventories.read_name(body), problem)
    there = {kinds.read_key(body) for body in objects if kinds.find_kind(body) == "Node"}
    for position, body in enumerate(changes.nodes, len(objects)):
        if kinds.read_key(body) in there:
            problem = BadInput("metadata.name", "a node of this name exists already")
            raise InputProblem(position, inventories.read_name(body), problem)
