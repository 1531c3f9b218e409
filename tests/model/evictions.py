"""Every eviction in an engine's log beside what the twin would have done: did any node offer to break fewer budgets?"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from scheduler.api import kinds, steering, wire
from scheduler.api.door import events
from scheduler.api.door.decisions import Evict
from scheduler.engine import log
from scheduler.engine.allowance import SpentAllowance
from scheduler.engine.engine import Engine
from tests.oracles import preemption as twin

Json = dict[str, Any]


class Judged(NamedTuple):
    """One eviction.

    Attributes:
        pod, node: uid of the pod that was to get room, and where.
        n_victims: how many pods were sent away.
        violations: how many of them in violation of a budget, by the twin.
        least: the fewest that any node offered, by the twin.
    """

    pod: str
    node: str
    n_victims: int
    violations: int
    least: int


class History:
    """What the log has told so far, as raw objects, and the engine that has heard it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._nodes: dict[str, Json] = {}
        self._pods: dict[str, Json] = {}
        self._budgets: dict[tuple[str, str], Json] = {}

    def hear(self, event: events.Event) -> None:
        """Keep what an event says."""
        match event:
            case events.Seen(wire.Node() as node):
                self._nodes[node.metadata.name] = msgspec.to_builtins(node)
            case events.Gone("Node", name):
                self._nodes.pop(name, None)
            case events.Seen(wire.Pod() as pod):
                self._pods[pod.metadata.uid] = msgspec.to_builtins(pod)
            case events.Gone("Pod", uid):
                self._pods.pop(uid, None)
            case events.Seen(steering.PodDisruptionBudget() as found):
                meta, status = found.metadata, found.status
                self._budgets[meta.namespace, meta.name] = {
                    "metadata": {"namespace": meta.namespace, "name": meta.name},
                    "spec": {"selector": msgspec.to_builtins(found.spec.selector)},
                    "status": {
                        "disruptionsAllowed": status.disruptions_allowed,
                        "disruptedPods": status.disrupted_pods or {},
                    },
                }
            case events.Gone("PodDisruptionBudget", key):
                self._budgets.pop(kinds.split_key(key), None)

    def make_world(self) -> twin.World:
        """The cluster as the engine knows it now: with the pods that it has decided and promised room to."""
        pods = []
        for record in self.engine._cluster.pods.values():
            raw = self._pods[record.uid]
            nominated = self.engine._cluster.nominations.find_node(record.uid)
            spec = raw["spec"] | {"nodeName": record.node or ""}
            status = raw.get("status", {}) | {"nominatedNodeName": nominated}
            pods.append(raw | {"spec": spec, "status": status})
        return twin.World(list(self._nodes.values()), pods, list(self._budgets.values()))


def judge_evictions(lines: Iterable[bytes]) -> Iterator[Judged]:
    """Each eviction of a log; an incomplete last line is left out."""
    history: History | None = None
    for text in lines:
        if not text.endswith(b"\n"):
            return
        line = log.decode(text)
        if isinstance(line, log.Head):
            history = History(Engine(line.config))
        elif isinstance(line, log.Happened):
            assert history is not None
            history.hear(line.event)
            history.engine.handle(line.event, line.at)
        else:
            assert history is not None
            yield from _judge(line, history)


def _judge(line: log.Decided, history: History) -> Iterator[Judged]:
    """The evictions of one decision: what was decided before each of them is part of the twin's world."""
    world = history.make_world() if line.evicts else None
    outcome = history.engine.decide(line.at, SpentAllowance(line.pods, line.spent))
    assert tuple(outcome.evicts) == line.evicts, "the log does not run again as it was written"
    if world is None:
        return
    waiting = {twin.uid(one): one for one in world.pods}
    for bind in outcome.binds:
        waiting[bind.uid]["spec"]["nodeName"] = bind.node
    for evict in outcome.evicts:
        yield _compare(evict, waiting[evict.makes_room_for], world)
        waiting[evict.makes_room_for]["status"]["nominatedNodeName"] = evict.node


def _compare(evict: Evict, pod: Json, world: twin.World) -> Judged:
    running = [one for one in world.pods if one["spec"]["nodeName"]]
    least = []
    for node in world.nodes:
        refused, is_lasting = twin.beside_nominated(pod, node, world, running)
        if not refused or is_lasting:
            continue
        target, _ = twin.select_victims(pod, node, world, running)
        if target is not None:
            least.append(target.violations)
    victims = set(evict.victims)
    there = [
        one
        for one in running
        if one["spec"]["nodeName"] == evict.node and twin.priority(one) < twin.priority(pod)
    ]
    violating, _ = twin.split_by_budgets(sorted(there, key=twin.importance_of_pod), world.budgets)
    n = sum(twin.uid(one) in victims for one in violating)
    return Judged(evict.makes_room_for, evict.node, len(victims), n, min(least, default=-1))
