"""The engine's answer on the same objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from scheduler import config
from scheduler.api.door import events
from scheduler.api.door.decisions import Outcome, Plan
from scheduler.api.door.notes import GroupHeld
from scheduler.api.groups.readers import kubernetes
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.engine.questions.pods import NamedPod, NominatedNode
from scheduler.engine.questions.waiting import ObjectsOf
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.reading.inventory import Inventory
from scheduler.simulate.situation import find_time, make_engine, prepare
from scheduler.telling import sayings
from tests.differential.groups import oracle
from tests.differential.groups.answers import Condition, GroupAnswer

Json = dict[str, Any]


@cache
def settings() -> Config:
    """What both sides' configuration says."""
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return config.parse_config(kind | oracle.make_file())


class Evenkeel:
    """The engine, in one world."""

    def __init__(self, objects: Sequence[Json]) -> None:
        self._uids: dict[str, str] = {}
        self._conditions: dict[str, Condition] = {}
        inventory = self._read(objects)
        self._engine = make_engine(inventory, settings())
        self._now = find_time(inventory)

    def see(self, objects: Sequence[Json]) -> None:
        """See what of these objects may be new: groups, and pods without a node."""
        inventory = self._read(objects)
        pods = [pod for pod in inventory.pods if not pod.spec.node_name]
        for found in (*inventory.grouping, *pods):
            self._engine.handle(events.Seen(found), self._now)

    def _read(self, objects: Sequence[Json]) -> Inventory:
        meta = [one["metadata"] for one in objects if one["kind"] == "Pod"]
        self._uids |= {one["name"]: one["uid"] for one in meta}
        return prepare(objects, Changes(), strict=True).inventory

    def answer(self, waiting: Sequence[str]) -> GroupAnswer:
        """Decide, and say what becomes of the pods that wait, by name."""
        made = _Made(self._engine, self._now, self._conditions)
        at = self._now
        while at < self._now + oracle.BACKOFF_SECONDS:
            made.add(self._engine.decide(at, Unlimited(pods=1)))
            at = max(at, self._engine.find_due(at))
        return made.write({name: self._uids[name] for name in waiting})


class _Made:
    """What the engine has decided."""

    def __init__(self, engine: Engine, now: float, conditions: dict[str, Condition]) -> None:
        """``conditions``: those of the PodGroups up to now."""
        self._engine, self._now = engine, now
        self._nodes: dict[str, str] = {}
        self._messages: dict[str, str] = {}
        self._victims: set[str] = set()
        self._conditions = conditions
        self._of_all = ""

    def add(self, outcome: Outcome) -> None:
        """Add the decisions of one call."""
        for plan in outcome.plans:
            self._add_plan(plan)
        for note in outcome.notes:
            if isinstance(note, GroupHeld) and note.is_wrong:
                # Evenkeel says what a person must mend of the group, and not of each of its pods.
                self._of_all = note.why
                for one in self._engine.ask(ObjectsOf(note.group)):
                    if one.kind == kubernetes.KIND:
                        self._set(one.name, Condition("False", "SchedulerError", note.why))

    def _add_plan(self, plan: Plan) -> None:
        for bind in plan.binds:
            self._nodes[self._name(bind.uid)] = bind.node
            self._engine.handle(events.BindDone(bind.uid), self._now)
        for evict in plan.evicts:
            self._victims |= {self._name(uid) for uid in evict.victims}
        if plan.group is None and plan.hold is not None:
            # A pod by itself.
            self._messages[self._name(plan.hold.uid)] = sayings.write_sentence(plan.hold)
        for hold in plan.group.members if plan.group else ():
            self._messages[self._name(hold.uid)] = sayings.write_sentence(hold)
        for leaf in plan.group.leaves if plan.group else ():
            if leaf.status:
                reason = "SchedulerError" if leaf.is_error else "Unschedulable"
                self._set(leaf.name, Condition("False", reason, leaf.status))
            else:
                self._set(leaf.name, Condition("True", "Scheduled", ""))

    def write(self, waiting: Mapping[str, str]) -> GroupAnswer:
        """Write it down for the pods that waited, by name with their uids."""
        pending = {name: uid for name, uid in waiting.items() if name not in self._nodes}
        nominated = {name: self._engine.ask(NominatedNode(uid)) for name, uid in pending.items()}
        return GroupAnswer(
            self._nodes,
            {name: said for name in pending if (said := self._messages.get(name, self._of_all))},
            {name: node for name, node in nominated.items() if node},
            frozenset(self._victims),
            dict(self._conditions),
        )

    def _name(self, uid: str) -> str:
        return self._engine.ask(NamedPod(uid)).name

    def _set(self, name: str, condition: Condition) -> None:
        before = self._conditions.get(name)
        if before is None or before.status != "True":
            self._conditions[name] = condition
