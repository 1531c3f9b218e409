"""A life in which anything may happen, and a cluster built afresh from what the server has, to compare with."""

import json
import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence

from scheduler.api import names
from scheduler.api.cards import Slots, list_uses
from scheduler.devices.table import CARD_DRIVERS
from scheduler.state import told_cards
from scheduler.state.cluster import Cluster
from scheduler.state.pods import Life as PodLife
from scheduler.state.pods import PodRecord
from scheduler.state.registers import Registers
from tests import make
from tests.model import clusters
from tests.model.life import Town, happenings, slots
from tests.model.server import Json

KIT = clusters.Kit(
    # So many without HAMi's plugin that the last with it goes now and then.
    families=clusters.HEALTHY
    | {"whole": 60, "shares": 30, "hami in text": 10, "broken register": 10, "broken amount": 5},
    cpu=("4", "3500m", "8"),
    memory=("8Gi", "16Gi"),
    pods=(0, 5, 110),
    counts=(0, 1, 2, 3, 4),
    closed=0.1,
    soft=0.4,
    beside=0.3,
    late=0.5,
    marked=0.3,
    gaps=True,
    uids=3,
)
NODES = [f"node-{i}" for i in range(5)]
ENDLESS = ";".join(f"{node}-GPU-{i},NVIDIA,{10**30},1:" for node in NODES for i in range(5))


class Followed(Registers):
    """Writes down for itself which cards left a node's register under which pods.

    Attributes:
        registered: UUIDs by row, as the register had them last.
        lost: by row and uid, those that were registered when the pod named them and are not any more.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.nodes, cluster.cards)
        self.registered: dict[int, set[str]] = {}
        self.lost: dict[int, dict[str, set[str]]] = {}

    def write(self, row: int, pods: Collection[PodRecord]) -> None:
        facts = self._nodes.facts[row]
        told = (
            ()
            if facts is None or facts.problem
            else CARD_DRIVERS["HAMi"].list_cards(facts.find_reading(0).words)
        )
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

    def follow_pod(self, pod: PodRecord, node_row: int, sign: int) -> None:
        self.pods[node_row, str(pod.labels), pod.deleting] += sign

    def ignores(self, pods: Sequence[PodRecord]) -> bool:
        return not pods

    def holds_for(self, cluster: Cluster) -> bool:
        """Whether what it counted is what there is."""
        there = Counter(
            (row, str(pod.labels), pod.deleting)
            for name, row in cluster.nodes.rows.items()
            for pod in cluster.pods_on.get(name, {}).values()
        )
        return there == Counter({key: n for key, n in self.pods.items() if n})


def named(pod: PodRecord) -> set[str]:
    return {use.uuid for use in list_uses(pod.claim)}


def by_container(cards: Slots, asks: told_cards.Asks) -> Slots:
    """A slot for each container, whatever it asks, as a decision has them."""
    told = iter([uses for uses in cards if uses])
    return tuple(next(told, ()) if ask.cards else () for ask in asks)


class Wild(Town):
    """Nodes and pods of any kind that change in any way; the server breaks its own rules about uids."""

    names = NODES
    kit = KIT

    def new_cluster(self) -> Cluster:
        cluster = Cluster()
        self.followed = Followed(cluster)
        cluster.registers = cluster.roster.registers = self.followed
        self.counted = Counted()
        cluster.roster.followers.append(self.counted)
        return cluster

    # Nodes.

    def node_changes_a_little(self, rng: random.Random) -> None:
        def edit(body: Json) -> None:
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

        if nodes := self.server.of_kind("nodes"):
            self.server.change("nodes", "", rng.choice(nodes)["metadata"]["name"], edit)

    def another_vendors_devices_come_or_go(self, rng: random.Random) -> None:
        def edit(body: Json) -> None:
            allocatable = body["status"]["allocatable"]
            if not allocatable.pop(names.AMD_GPU, None):
                allocatable[names.AMD_GPU] = 2

        if nodes := self.server.of_kind("nodes"):
            self.server.change("nodes", "", rng.choice(nodes)["metadata"]["name"], edit)

    def card_leaves_under_a_pod(self, rng: random.Random) -> None:
        """One that it names leaves the register of its node, the others stay."""
        holders = [pod for pod in self.cluster.pods.values() if pod.claim]
        if not holders:
            return
        pod = rng.choice(holders)
        lost = rng.choice(sorted(named(pod)))

        def edit(body: Json) -> None:
            notes = body["metadata"].get("annotations") or {}
            if notes.get(names.HAMI_REGISTER, "").startswith("[{"):
                cards = json.loads(notes[names.HAMI_REGISTER])
                left = [card for card in cards if card["id"] != lost]
                notes[names.HAMI_REGISTER] = json.dumps(left)

        self.server.change("nodes", "", pod.node, edit)

    def seventy_nodes_come(self, rng: random.Random) -> None:
        for i in range(70):
            self.server.put("nodes", clusters.node(rng, f"many-{rng.randrange(2)}{i}", KIT))

    # Pods.

    def pods_come_that_ask_what_is_new(self, rng: random.Random) -> None:
        late = {f"example.com/late-{rng.randrange(9)}": 1}
        self.new_pod(rng.choice(["plain", "host-port"]), requests=late)

    def pod_changes(self, rng: random.Random) -> None:
        def edit(body: Json) -> None:
            meta, status = body["metadata"], body["status"]
            notes = meta["annotations"] = meta.get("annotations") or {}
            match rng.randrange(5):
                case 0:
                    meta["labels"] = {"tier": rng.choice("ab")}
                case 1:
                    meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
                case 2:
                    status["conditions"] = [{"type": "Initialized", "status": "True"}]
                case 3:
                    notes["noise"] = str(rng.random())
                case 4 if not body["spec"].get("nodeName"):
                    notes[names.VGPU_MODE] = rng.choice(["hami-core", "mig"])

        self._change_one(self.server.of_kind("pods"), edit, rng)

    def bound_pod_changes(self, rng: random.Random) -> None:
        def edit(body: Json) -> None:
            meta, status = body["metadata"], body["status"]
            match rng.randrange(4):
                case 0:
                    granted = {"cpu": rng.choice(["50m", "1"]), "memory": "1Gi"}
                    _grant(status, granted)
                case 1:
                    _grant(status, {"cpu": "50m"})
                    reason = rng.choice(["Infeasible", "Deferred"])
                    status["conditions"] = [{"type": "PodResizePending", "reason": reason}]
                case 2 if meta.get("annotations"):
                    text = rng.choice(["node-1-GPU-0,NVIDIA,5,5:;", "oops,1:;", ENDLESS, ""])
                    meta["annotations"][names.HAMI_ALLOCATED] = text
                case 3:
                    status["startTime"] = f"2026-01-01T00:00:{rng.randrange(10, 60)}Z"

        self._change_one(self.pods(bound=True), edit, rng)

    # The scheduler.

    def pod_is_assumed_anywhere(self, rng: random.Random) -> None:
        waiting = [pod for pod in self.cluster.pods.values() if make.is_waiting(pod)]
        if not waiting:
            return
        pod, node = rng.choice(waiting), rng.choice([*NODES, "never-seen"])
        body = self.server.pod_of(pod.uid)
        cards = slots(rng, body, node) if body else ()
        self.cluster.assume(
            pod.uid,
            node,
            make.grant(
                told_cards.limit_claim(
                    by_container(cards, pod.asks), pod.asks, initialized=pod.initialized
                )
            ),
        )
        self.in_flight[pod.uid] = (node, cards)

    def bind_takes_effect_and_is_thought_to_have_failed(self, rng: random.Random) -> None:
        if uid := self.some_bind(rng):
            self.send(uid)
            self.cluster.forget(uid)
            del self.in_flight[uid]

    def another_binds_our_pod(self, rng: random.Random) -> None:
        if pending := self.pods(bound=False):
            self.streams.bind(rng.choice(pending)["metadata"]["uid"], rng.choice(NODES), ())

    # Support.

    def _change_one(
        self, pods: list[Json], edit: Callable[[Json], None], rng: random.Random
    ) -> None:
        if pods:
            self.server.change("pods", "default", rng.choice(pods)["metadata"]["name"], edit)

    def expected(self, seed: int) -> Cluster:
        """What a fresh build from the server's objects is; all must have been delivered."""
        fresh = Cluster()
        for name, row in self.cluster.nodes.rows.items():
            facts = self.cluster.nodes.facts[row]
            if facts and self.cluster.nodes.was_signed[0, row]:
                # No object tells any more that the node registered cards.
                registered = {names.HAMI_REGISTER: "[]"}
                fresh.see_node(make.node(name=name, uid=facts.uid, annotations=registered))
        self.streams.build(fresh, random.Random(seed))
        for uid, (node, cards) in self.in_flight.items():
            pod = fresh.pods[uid]
            if pod.life == PodLife.PENDING:
                fresh.assume(
                    uid,
                    node,
                    make.grant(
                        told_cards.limit_claim(
                            by_container(cards, pod.asks), pod.asks, initialized=pod.initialized
                        )
                    ),
                )
        for name, row in self.cluster.nodes.rows.items():
            # Nor that it registered these, which its pods hold.
            lost = self.followed.lost.get(row, {})
            fresh_row, pods = fresh.nodes.rows[name], fresh.roster.strike(name)
            fresh.registers._gone_from[fresh_row] = {
                uid: dict.fromkeys(uuids, -1) for uid, uuids in lost.items()
            }
            fresh.roster.charge(pods, fresh_row)
        return fresh


def _grant(status: Json, granted: Json) -> None:
    status["containerStatuses"] = [{"name": "main", "allocatedResources": granted, "resources": {}}]


OFTEN = [name for name in happenings(Wild) if name != "seventy_nodes_come"]
