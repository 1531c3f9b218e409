"""A cluster that follows a server through anything that may happen, and one built afresh to compare with."""

import json
import random
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from scheduler.api import names
from scheduler.api.cards import Slots
from scheduler.config import Config
from scheduler.cycle.schedule import is_waiting
from scheduler.devices.table import CARDS
from scheduler.state.charging import claims
from scheduler.state.cluster import Cluster
from scheduler.state.pods import Life, PodRecord
from scheduler.state.registers import Registers
from tests import make
from tests.unit import api_model, random_clusters

NODES = [f"node-{i}" for i in range(5)]
ENDLESS = ";".join(f"{node}-GPU-{i},NVIDIA,{10**30},1:" for node in NODES for i in range(5))
KINDS = [*random_clusters.PODS, *random_clusters.GPU_PODS]


class Followed(Registers):
    """Writes down for itself which cards left a node's register under which pods.

    Attributes:
        registered: UUIDs by row, as the register had them last.
        lost: by row and uid, those that were registered when the pod named them and are not any more.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.nodes, cluster.cards, CARDS)
        self.registered: dict[int, set[str]] = {}
        self.lost: dict[int, dict[str, set[str]]] = {}

    def write(self, row: int, pods: Collection[PodRecord]) -> None:
        facts = self._nodes.facts[row]
        told = () if facts is None or facts.problem else CARDS.cards(facts.devices)
        now = {card.id for card in told}
        before, lost = self.registered.get(row, set()), self.lost.get(row, {})
        lost = {pod.uid: named(pod) & (before | lost.get(pod.uid, set())) - now for pod in pods}
        super().write(row, pods)
        self.registered[row], self.lost[row] = now, lost

    def clear(self, row: int) -> None:
        self.registered.pop(row, None)
        self.lost.pop(row, None)
        super().clear(row)


class Counted:
    """Counts pods by node row, labels and whether they are being deleted, as it is told."""

    def __init__(self) -> None:
        self.pods: Counter[tuple[int, str, bool]] = Counter()

    def follow(self, pod: PodRecord, node_row: int, sign: int) -> None:
        self.pods[node_row, str(pod.labels), pod.deleting] += sign

    def holds_for(self, cluster: Cluster) -> bool:
        """Whether what it counted is what there is."""
        there = Counter(
            (row, str(pod.labels), pod.deleting)
            for name, row in cluster.nodes.rows.items()
            for pod in cluster.pods_on.get(name, {}).values()
        )
        return there == Counter({key: n for key, n in self.pods.items() if n})


def named(pod: PodRecord) -> set[str]:
    return {use.uuid for uses in pod.claim for use in uses}


def by_container(cards: Slots, asks: claims.Asks) -> Slots:
    """A slot for each container, whatever it asks, as a decision has them."""
    told = iter([uses for uses in cards if uses])
    return tuple(next(told, ()) if ask.cards else () for ask in asks)


class World:
    """A server, the cluster that follows it, and binds whose results are not known yet."""

    def __init__(self, config: Config | None = None) -> None:
        self.cluster = Cluster()
        self.followed = Followed(self.cluster)
        self.cluster.registers = self.cluster.roster.registers = self.followed
        self.counted = Counted()
        self.cluster.roster.followers.append(self.counted)
        self.server = api_model.Server(self.cluster)
        self.cycle = make.cycle(cluster=self.cluster, config=config)
        self.in_flight: dict[str, tuple[str, Slots]] = {}

    # What may happen. Each takes a source of chance of its own.

    def node_changes(self, rng: random.Random) -> None:
        self.server.put_node(api_model.node(rng, rng.choice(NODES)))

    def node_changes_a_little(self, rng: random.Random) -> None:
        if not self.server.nodes:
            return
        body = self.server.nodes[rng.choice(sorted(self.server.nodes))]
        meta, spec, allocatable = body["metadata"], body["spec"], body["status"]["allocatable"]
        match rng.randrange(6):
            case 0:
                allocatable["cpu"] = rng.choice(["two", "2", "4"])
            case 1:
                notes = meta["annotations"] = meta.get("annotations") or {}
                notes[names.HAMI_CORDON] = rng.choice(["", f"{meta['name']}-GPU-0"])
            case 2:
                meta["labels"]["zone"] = rng.choice("abc")
            case 3:
                spec["unschedulable"] = not spec.get("unschedulable")
            case 4:
                allocatable.pop(names.GPU, None)
            case 5:
                (meta.get("annotations") or {}).pop(names.HAMI_REGISTER, None)
        self.server.put_node(body)

    def card_leaves_under_a_pod(self, rng: random.Random) -> None:
        """One that it names leaves the register of its node, the others stay."""
        holders = [pod for pod in self.cluster.pods.values() if pod.claim]
        pod = rng.choice(holders) if holders else None
        if pod is None or pod.node not in self.server.nodes:
            return
        body = self.server.nodes[pod.node]
        notes = body["metadata"].get("annotations") or {}
        if notes.get(names.HAMI_REGISTER, "").startswith("[{"):
            cards = json.loads(notes[names.HAMI_REGISTER])
            lost = rng.choice(sorted(named(pod)))
            left = [card for card in cards if card["id"] != lost]
            notes[names.HAMI_REGISTER] = json.dumps(left)
            self.server.put_node(body)

    def node_goes(self, rng: random.Random) -> None:
        self.server.delete_node(rng.choice(NODES))

    def seventy_nodes_come(self, rng: random.Random) -> None:
        for i in range(70):
            self.server.put_node(api_model.node(rng, f"many-{rng.randrange(2)}{i}"))

    def pod_comes(self, rng: random.Random) -> None:
        late = {f"example.com/late-{rng.randrange(9)}": 1} if rng.random() < 0.3 else {}
        kind = rng.choice(["plain", "host-port"]) if late else rng.choice(KINDS)
        more: dict[str, Any] = {"requests": late} if late else {}
        self.server.new_pod(kind, **more)

    def stranger_runs(self, rng: random.Random) -> None:
        body = self.server.new_pod(rng.choice(KINDS), scheduler_name="other")
        node = rng.choice([*NODES, "never-seen"])
        self.server.bind(
            body["metadata"]["uid"], node, api_model.slots(rng, body, rng.choice([node, node, "x"]))
        )

    def pod_goes(self, rng: random.Random) -> None:
        if uid := self._some_pod(rng):
            self.server.delete_pod(uid)

    def pod_finishes(self, rng: random.Random) -> None:
        if uid := self._some_pod(rng):
            self.server.finish_pod(uid, seen=rng.random() < 0.5)

    def pod_changes(self, rng: random.Random) -> None:
        uid = self._some_pod(rng)
        if not uid:
            return
        body = self.server.pods[uid]
        meta, spec, status = body["metadata"], body["spec"], body["status"]
        bound = bool(spec.get("nodeName"))
        match rng.randrange(8):
            case 0:
                meta["labels"] = {"tier": rng.choice("ab")}
            case 1:
                meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            case 2:
                status["conditions"] = [{"type": "Initialized", "status": "True"}]
            case 3:
                meta["annotations"] = (meta.get("annotations") or {}) | {"noise": str(rng.random())}
            case 4 if bound:
                granted = {"cpu": rng.choice(["50m", "1"]), "memory": "1Gi"}
                status["containerStatuses"] = [
                    {"name": "main", "allocatedResources": granted, "resources": {}}
                ]
            case 5 if bound:
                status["containerStatuses"] = [
                    {"name": "main", "allocatedResources": {"cpu": "50m"}, "resources": {}}
                ]
                reason = rng.choice(["Infeasible", "Deferred"])
                status["conditions"] = [{"type": "PodResizePending", "reason": reason}]
            case 7 if not bound:
                steering = {names.VGPU_MODE: rng.choice(["hami-core", "mig"])}
                meta["annotations"] = (meta.get("annotations") or {}) | steering
            case 6 if bound and meta.get("annotations"):
                text = rng.choice(["node-1-GPU-0,NVIDIA,5,5:;", "oops,1:;", ENDLESS, ""])
                meta["annotations"][names.HAMI_ALLOCATED] = text
        self.server.put_pod(body)

    def pod_starts(self, rng: random.Random) -> None:
        uid = self._some_pod(rng)
        if uid and self.server.pods[uid]["spec"].get("nodeName"):
            body = self.server.pods[uid]
            body["status"]["startTime"] = f"2026-01-01T00:00:{rng.randrange(10, 60)}Z"
            self.server.put_pod(body)

    def something_is_delivered(self, rng: random.Random) -> None:
        self._heard_gone(self.server.deliver(rng.choice(api_model.STREAMS), rng.randrange(1, 5)))

    def everything_is_delivered(self, rng: random.Random) -> None:
        del rng
        self._heard_gone(self.server.deliver_all())

    def current_object_is_repeated(self, rng: random.Random) -> None:
        stream = rng.choice(api_model.STREAMS)
        self._heard_gone(self.server.deliver(stream))
        for key, body in list({**self.server.nodes, **self.server.pods}.items()):
            if rng.random() < 0.3:
                self._repeat(stream, key, body)

    def list_is_read_again(self, rng: random.Random) -> None:
        stream = rng.choice(api_model.STREAMS)
        self.server.relist(stream, rng)
        self._heard_gone(list(self.in_flight))

    def pod_is_assumed_anywhere(self, rng: random.Random) -> None:
        waiting = [pod for pod in self.cluster.pods.values() if is_waiting(pod)]
        if not waiting:
            return
        pod, node = rng.choice(waiting), rng.choice([*NODES, "never-seen"])
        body = self.server.pods.get(pod.uid)
        cards = api_model.slots(rng, body, node) if body else ()
        self.cluster.assume(pod.uid, node, claims.allowed(by_container(cards, pod.asks), pod.asks))
        self.in_flight[pod.uid] = (node, cards)

    def cycle_decides(self, rng: random.Random) -> None:
        waiting = [pod for pod in self.cluster.pods.values() if is_waiting(pod)]
        for bind in self.cycle.schedule(waiting[: rng.randrange(1, 9)]).binds:
            self.in_flight[bind.uid] = (bind.node, bind.slots)

    def bind_takes_effect(self, rng: random.Random) -> None:
        """The server binds; the answer may come before the watch, after it, be lost, or be wrong."""
        if not self.in_flight:
            return
        uid = rng.choice(sorted(self.in_flight))
        node, cards = self.in_flight[uid]
        done = self.server.bind(uid, node, cards)
        if rng.random() < 0.5:
            self._heard_gone(self.server.deliver("ours"))
        if (not done or rng.random() < 0.3) and uid in self.in_flight:
            self.cluster.forget(uid)
            del self.in_flight[uid]

    def bind_fails(self, rng: random.Random) -> None:
        if self.in_flight:
            uid = rng.choice(sorted(self.in_flight))
            self.cluster.forget(uid)
            del self.in_flight[uid]

    def old_failure_arrives(self, rng: random.Random) -> None:
        """A result for a pod that is bound, gone, or no longer assumed changes nothing."""
        done = [uid for uid, pod in self.cluster.pods.items() if pod.life != Life.ASSUMED]
        self.cluster.forget(rng.choice([*done, "never-seen"]))

    def another_binds_our_pod(self, rng: random.Random) -> None:
        pending = [u for u, b in self.server.pods.items() if not b["spec"].get("nodeName")]
        if pending:
            self.server.bind(rng.choice(pending), rng.choice(NODES), ())

    # Support.

    def settle(self) -> None:
        """Deliver everything; binds that took effect are no longer in flight."""
        self._heard_gone(self.server.deliver_all())

    def expected(self, rng: random.Random) -> Cluster:
        fresh = Cluster()
        for name, row in self.cluster.nodes.rows.items():
            facts = self.cluster.nodes.facts[row]
            if facts and self.cluster.nodes.was_signed[row]:
                # No object tells any more that the node registered cards.
                registered = {names.HAMI_REGISTER: "[]"}
                fresh.see_node(make.node(name=name, uid=facts.uid, annotations=registered))
        self.server.build(fresh, rng)
        for uid, (node, cards) in self.in_flight.items():
            pod = fresh.pods[uid]
            if pod.life == Life.PENDING:
                fresh.assume(uid, node, claims.allowed(by_container(cards, pod.asks), pod.asks))
        for name, row in self.cluster.nodes.rows.items():
            # Nor that it registered these, which its pods hold.
            lost = self.followed.lost.get(row, {})
            fresh_row, pods = fresh.nodes.rows[name], fresh.roster.strike(name)
            fresh.registers._gone_from[fresh_row] = {
                uid: dict.fromkeys(uuids, -1) for uid, uuids in lost.items()
            }
            fresh.roster.charge(pods, fresh_row)
        return fresh

    def _some_pod(self, rng: random.Random) -> str:
        return rng.choice(sorted(self.server.pods)) if self.server.pods else ""

    def _repeat(self, stream: str, key: str, body: api_model.Json) -> None:
        if key in self.server.nodes:
            if stream == "nodes":
                self.server.see("nodes", key, body)
        elif stream == ("ours" if body["spec"]["schedulerName"] == names.SCHEDULER else "others"):
            self.server.see(stream, key, body)

    def _heard_gone(self, keys: list[str]) -> None:
        for key in keys:
            if key not in self.cluster.pods:
                self.in_flight.pop(key, None)


HAPPENINGS: dict[str, Callable[[World, random.Random], None]] = {
    name: happen
    for name, happen in vars(World).items()
    if callable(happen) and not name.startswith("_") and name not in {"settle", "expected"}
}
OFTEN = [name for name in HAPPENINGS if name != "seventy_nodes_come"]
