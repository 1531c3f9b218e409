"""Scenarios in steps: what comes and goes, and what is decided then, with an API server that does as it is told.

Times are virtual. Each step is so much ``after`` the one before, long past any backoff unless it says otherwise:
first whatever falls due until then is decided, then it comes, then that is decided.
"""

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from scheduler.api import kinds, wire
from scheduler.api.claims.objects import ResourceClaimTemplate
from scheduler.api.door import events
from scheduler.api.door.decisions import Outcome
from scheduler.config import Config
from scheduler.devices import answers, table
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import Pace
from scheduler.engine.engine import Engine
from scheduler.simulate.reading import inventory as inventories
from scheduler.simulate.reading.inventory import Inventory
from scheduler.telling import sayings

Json = dict[str, Any]
# What a step may say beside the objects that come.
WORDS = {"after", "gone", "leaving", "holds", "binds", "fails", "expect", "rest", "first"}
_AFTER = 60.0
# Every change is looked at when it comes; what has waited for long is looked for all the time.
_PACE = Pace(help=0.0, flush=0.0, explain=math.inf)
_ROUNDS = 100


class Town:
    """An engine, and as much of an API server as scenarios need: binds and nominations are written and come back.

    Attributes:
        pods: as the API server has them, by uid.
    """

    def __init__(self, config: Config, objects: Iterable[Json]) -> None:
        """A town of objects for which nothing is decided yet."""
        self.engine = Engine(config, pace=_PACE, is_shared=False)
        self.at = 0.0
        self.pods: dict[str, wire.Pod] = {}
        self._held: set[str] = set()
        self._come(objects)
        # What came of the last step.
        self.binds: list[str] = []
        self.messages: dict[str, str] = {}
        self.victims: dict[str, list[str]] = {}

    def step(self, step: Mapping[str, Any], objects: Iterable[Json]) -> None:
        """Time passes, something happens, and whatever can be decided is."""
        self.binds, self.messages, self.victims = [], {}, {}
        self._held |= set(step.get("holds", ()))
        until = self.at + step.get("after", _AFTER)
        self._decide(until)
        self.at = until
        self._come(objects)
        for kind, named in step.get("gone", {}).items():
            for name in named:
                self._goes(kind, name)
        for name in step.get("leaving", ()):
            self._leaves(self._uid(name))
        for name in step.get("binds", ()):
            self._is_bound(self._uid(name), self.engine._cluster.pods[self._uid(name)].node)
        for name in step.get("fails", ()):
            self._held.discard(name)
            self._tell(events.BindFailed(self._uid(name), "as the scenario has it"))
        self._decide(until)

    def found(self, name: str) -> Json:
        """How a pod stands."""
        uid = self._uid(name)
        cluster = self.engine._cluster
        return {
            "node": cluster.pods[uid].node or None,
            "nominated": cluster.nominations.find_node(uid) or None,
            "victims": self.victims.get(uid, []),
            "message": self.messages.get(uid),
        }

    def was_looked_at(self, name: str) -> bool:
        """Whether anything was decided for a pod in the last step."""
        uid = self._uid(name)
        return uid in self.binds or uid in self.messages

    def names(self, uids: Iterable[str]) -> list[str]:
        """What pods are called."""
        return [self.pods[uid].metadata.name for uid in uids]

    def _decide(self, until: float) -> None:
        for _ in range(_ROUNDS):
            self._carry_out(self.engine.decide(self.at, Unlimited()))
            due = self.engine.find_due(self.at)
            if due > until:
                return
            self.at = max(self.at, due)
        raise AssertionError("it never comes to rest")

    def _carry_out(self, outcome: Outcome) -> None:
        for hold in outcome.holds:
            self.messages[hold.uid] = sayings.say_why(hold).message
        for evict in outcome.evicts:
            self.victims[evict.makes_room_for] = self.names(evict.victims)
        for nominate in outcome.nominates:
            if nominate.uid in self.pods:
                self.pods[nominate.uid].status.nominated_node_name = nominate.node
                self._tell(events.Seen(self.pods[nominate.uid]))
        for bind in outcome.binds:
            self.binds.append(bind.uid)
            if self.pods[bind.uid].metadata.name not in self._held:
                annotations = self.pods[bind.uid].metadata.annotations or {}
                if bind.devices:
                    annotations |= answers.write_answers(
                        table.CARD_DRIVERS, bind.node, bind.devices, int(self.at)
                    ).annotations
                self.pods[bind.uid].metadata.annotations = annotations
                self._is_bound(bind.uid, bind.node)

    def _is_bound(self, uid: str, node: str) -> None:
        pod = self.pods[uid]
        self._held.discard(pod.metadata.name)
        pod.spec.node_name, pod.status.nominated_node_name = node, ""
        self._tell(events.BindDone(uid))
        self._tell(events.Seen(pod))

    def _leaves(self, uid: str) -> None:
        """Its time to go has come, and it is not gone before it likes."""
        pod = self.pods[uid]
        pod.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
        if uid in self.engine._cluster.nominations.going:
            self._tell(events.EvictDone(uid))
            evicted = wire.Condition(
                type="DisruptionTarget", status="True", reason="PreemptionByScheduler"
            )
            pod.status.conditions = [*(pod.status.conditions or ()), evicted]
        self._tell(events.Seen(pod))

    def _goes(self, kind: str, name: str) -> None:
        if kind == "Node":
            self._tell(events.Gone("Node", name))
        elif kind == "Pod":
            uid = self._uid(name)
            self._held.discard(name)
            del self.pods[uid]
            self._tell(events.Gone("Pod", uid))
        else:
            key = f"default/{name}" if kinds.BY_NAME[kind].is_namespaced else name
            self._tell(events.Gone(kind, key))

    def _come(self, objects: Iterable[Json]) -> None:
        inventory = inventories.read_inventory(list(objects))
        inventory.refuse_mistakes()
        for event in _events(inventory):
            if isinstance(event.found, wire.Pod):
                self._is_written(event.found)
            self._tell(event)

    def _is_written(self, pod: wire.Pod) -> None:
        """Who changes a pod leaves alone what was written on it here."""
        before = self.pods.get(pod.metadata.uid)
        if before is not None:
            pod.spec.node_name = pod.spec.node_name or before.spec.node_name
            pod.status.nominated_node_name = (
                pod.status.nominated_node_name or before.status.nominated_node_name
            )
        self.pods[pod.metadata.uid] = pod

    def _uid(self, name: str) -> str:
        found = [uid for uid, pod in self.pods.items() if pod.metadata.name == name]
        assert len(found) == 1, f"{name} is {found}"
        return found[0]

    def _tell(self, event: events.Event) -> None:
        match event:
            case events.Seen(wire.Pod() as pod):
                # What is written here later is not known there until it is told.
                event = events.Seen(msgspec.convert(msgspec.to_builtins(pod), wire.Pod))
        self.engine.handle(event, self.at)


def _events(inventory: Inventory) -> Iterable[events.Seen]:
    kept = (
        inventory.namespaces,
        inventory.peers,
        inventory.grouping,
        inventory.budgets,
        inventory.storage,
    )
    yield from map(events.Seen, itertools.chain(*kept))
    for node in inventory.nodes:
        yield events.Seen(node)
    for one in inventory.claiming:
        if not isinstance(one, ResourceClaimTemplate):
            yield events.Seen(one)
    for pod in inventory.pods:
        yield events.Seen(pod)
