"""Whatever happens to slices, claims, pods and nodes, the columns are those of a fresh build from the final objects."""

import copy
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import wire
from scheduler.api.claims import objects
from scheduler.api.claims.devices import PoolKey
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.shapes.policies import PolicyBook
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from scheduler.state.pods import Life, PodRecord
from tests import make, slices
from tests.unit.claims_seen import find_fits, list_offers, list_waiting, take_fingerprint

Json = dict[str, Any]
pytestmark = pytest.mark.many

_NODES = ("n0", "n1", "n2")
_EVENTS = (
    "slice_comes", "slice_comes", "slice_goes", "rule_changes", "claim_comes", "claim_comes", "claim_goes",
    "claim_is_allocated", "claim_is_freed", "claim_is_reserved", "pod_comes", "pod_comes", "pod_goes", "pod_is_bound",
    "node_comes", "node_goes", "node_gets_labels", "scheduler_decides", "scheduler_decides", "bind_fails", "trial_is_undone",
    "decision_is_written", "decision_is_written",
)  # fmt: skip


class World:
    """Objects as the API server has them, and a cluster that hears of each change."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.cycle = Cycle(self.cluster, PolicyBook(Config()))
        self.objects: dict[tuple[str, str], Any] = {}
        self.n = 0
        self.uids: list[str] = []
        self._see(
            "class",
            objects.DeviceClass(make_meta("any"), objects.ClassSpec()),
        )
        for name in _NODES[:2]:
            self.node_comes(random.Random(0), name)

    # Events.

    def happen(self, name: str, seed: int) -> None:
        getattr(self, name)(random.Random(seed))

    def slice_comes(self, rng: random.Random) -> None:
        node, pool = rng.choice(_NODES), f"pool-{rng.randrange(3)}"
        where: Json = rng.choice([
            {"nodeName": node}, {"nodeName": node}, {"allNodes": True}, {"perDeviceNodeSelection": True},
            {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}},
        ])  # fmt: skip
        spec: Json = {
            "driver": "dra.example",
            "pool": {
                "name": pool,
                "generation": rng.randrange(2),
                "resourceSliceCount": rng.randrange(1, 3),
            },
        } | where
        if rng.random() < 0.3:
            spec["sharedCounters"] = [{"name": "set", "counters": {"a": {"value": rng.randrange(4)}, "b": {"value": "2"}}}]  # fmt: skip
        else:
            spec["devices"] = [
                make_device(rng, i, where) for i in rng.sample(range(5), rng.randrange(1, 4))
            ]
        name = f"slice-{rng.randrange(5)}"
        body = {"kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}
        self._see("slice", msgspec.convert(body, objects.ResourceSlice))

    def slice_goes(self, rng: random.Random) -> None:
        self._gone("slice", rng)

    def rule_changes(self, rng: random.Random) -> None:
        if rng.random() < 0.5:
            self._gone("rule", rng)
            return
        body = {
            "kind": "DeviceTaintRule",
            "metadata": {"name": f"rule-{rng.randrange(2)}"},
            "spec": {
                "deviceSelector": rng.choice([{}, {"device": "d1"}, {"pool": "pool-1"}]),
                "taint": {"key": "bad", "effect": rng.choice(["NoSchedule", "None"])},
            },
        }
        self._see("rule", msgspec.convert(body, objects.DeviceTaintRule))

    def claim_comes(self, rng: random.Random) -> None:
        exactly: Json = {"deviceClassName": "any"}
        exactly |= rng.choice([{}, {"count": 2}, {"allocationMode": "All"}, {"capacity": {"requests": {"memory": "3"}}}])  # fmt: skip
        self.n += 1
        name = f"claim-{rng.randrange(4)}"
        body = {
            "kind": "ResourceClaim",
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"claim-uid-{self.n}",
            },
            "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
        }
        if ("claim", name) not in self.objects:
            self._see("claim", msgspec.convert(body, objects.ResourceClaim))

    def claim_goes(self, rng: random.Random) -> None:
        self._gone("claim", rng)

    def claim_is_allocated(self, rng: random.Random) -> None:
        claim = self._pick("claim", rng)
        if claim is None or claim.status.allocation is not None:
            return
        some: dict[str, objects.Quantity] = {"memory": "2"}
        results = [
            objects.AllocatedDevice(
                request="r",
                driver="dra.example",
                pool=f"pool-{rng.randrange(3)}",
                device=f"d{i}",
                share_id=rng.choice([None, f"share-{rng.random()}"]),
                consumed_capacity=rng.choice([None, some]),
                admin_access=rng.choice([None, None, True]),
            )
            for i in rng.sample(range(5), rng.randrange(1, 3))
        ]
        claim.status.allocation = objects.Allocation(objects.AllocatedDevices(results))
        self._see("claim", claim)

    def claim_is_freed(self, rng: random.Random) -> None:
        claim = self._pick("claim", rng)
        bound = [pod for pod in self.cluster.pods.values() if pod.life == Life.BOUND]
        # What was decided for a pod counts as long as the pod is there.
        if claim is not None and not any(one.uid == claim.metadata.uid for pod in bound for one in pod.allotted):  # fmt: skip
            claim.status = objects.ClaimStatus()
            self._see("claim", claim)

    def claim_is_reserved(self, rng: random.Random) -> None:
        claim, pod = self._pick("claim", rng), self._pick("pod", rng)
        if claim is None or pod is None or claim.status.allocation is None:
            return
        consumer = objects.Consumer(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)
        claim.status.reserved_for = [*(claim.status.reserved_for or ()), consumer][-2:]
        self._see("claim", claim)

    def pod_comes(self, rng: random.Random) -> None:
        self.n += 1
        pod = make.pod(name=f"pod-{self.n}", cpu="1")
        names = rng.sample(range(4), rng.choice([1, 1, 2]))
        pod.spec.resource_claims = make.claims(*(f"claim-{i}" for i in names))
        self.uids.append(pod.metadata.uid)
        self._see("pod", pod)

    def pod_goes(self, rng: random.Random) -> None:
        self._gone("pod", rng)

    def pod_is_bound(self, rng: random.Random) -> None:
        """A pod is bound by its decision, or by hand."""
        pod = self._pick("pod", rng)
        if pod is None or pod.spec.node_name:
            return
        known = self.cluster.pods.get(pod.metadata.uid)
        decided = ""
        if known is not None and known.life == Life.ASSUMED:
            decided = known.node
            self._write_decision(known)
        pod.spec.node_name = decided or rng.choice(_NODES)
        self._see("pod", pod)

    def node_comes(self, rng: random.Random, name: str = "") -> None:
        self._see(
            "node", make.node(name=name or rng.choice(_NODES), labels={"zone": rng.choice("ab")})
        )

    def node_gets_labels(self, rng: random.Random) -> None:
        self.node_comes(rng)

    def node_goes(self, rng: random.Random) -> None:
        if len([key for key in self.objects if key[0] == "node"]) > 1:
            self._gone("node", rng)

    def scheduler_decides(self, _: random.Random) -> None:
        self.cycle.schedule(list_waiting(self.cluster))

    def decision_is_written(self, rng: random.Random) -> None:
        """What a bind writes to the claims of its pod, and what the watch says of that."""
        assumed = [pod for pod in self.cluster.pods.values() if pod.life == Life.ASSUMED]
        if assumed:
            self._write_decision(rng.choice(assumed))

    def _write_decision(self, pod: PodRecord) -> None:
        for one in pod.allotted:
            claim = copy.deepcopy(self.objects.get(("claim", one.key[1])))
            if claim is None or claim.metadata.uid != one.uid:
                continue
            status = claim.status
            if one.is_new and status.allocation is None:
                status.allocation = msgspec.json.decode(one.allocation, type=objects.Allocation)
            if status.allocation is not None:
                consumer = objects.Consumer(resource="pods", name=pod.name, uid=pod.uid)
                status.reserved_for = [*(status.reserved_for or ()), consumer]
                self._see("claim", claim)

    def bind_fails(self, rng: random.Random) -> None:
        assumed = [pod.uid for pod in self.cluster.pods.values() if pod.life == Life.ASSUMED]
        if not assumed:
            return
        uid = rng.choice(assumed)
        pod = self.cluster.pods[uid]
        # What was written is known, is not known, or nothing was written.
        versions = {one.key: rng.choice(["", "7"]) for one in pod.allotted if rng.random() < 0.5}
        if versions:
            self.cluster.claims.doubt_pods([pod])
        self.cluster.forget(uid)
        self.cluster.claims.end_bind(uid, versions)

    def trial_is_undone(self, rng: random.Random) -> None:
        cycle = Cycle(self.cluster, PolicyBook(Config()))
        before = take_fingerprint(self.cluster)
        with self.cluster.trial():
            bound = [pod for pod in self.cluster.pods.values() if pod.life == Life.BOUND]
            self.cluster.roster.take_away(rng.sample(bound, min(len(bound), 2)))
            cycle.schedule(list_waiting(self.cluster))
        assert take_fingerprint(self.cluster) == before

    # Objects.

    def _pick(self, kind: str, rng: random.Random) -> Any:
        there = [key for key in self.objects if key[0] == kind]
        return copy.deepcopy(self.objects[rng.choice(there)]) if there else None

    def _see(self, kind: str, found: Any) -> None:
        self.objects[kind, found.metadata.name] = found
        show(self.cluster, kind, found)

    def _gone(self, kind: str, rng: random.Random) -> None:
        found = self._pick(kind, rng)
        if found is None:
            return
        meta = found.metadata
        del self.objects[kind, meta.name]
        claims = self.cluster.claims
        drops: dict[str, Callable[[str], object]] = {
            "slice": claims.drop_slice,
            "rule": claims.drop_rule,
            "claim": lambda name: claims.drop_claim((meta.namespace, name)),
            "class": claims.drop_class,
            "pod": lambda _: self.cluster.drop_pod(meta.uid),
            "node": self.cluster.drop_node,
        }
        drops[kind](meta.name)
        claims.flush()

    def settle(self) -> None:
        """Let all decisions come to nothing, because a fresh build knows of none."""
        for pod in list(self.cluster.pods.values()):
            if pod.life == Life.ASSUMED:
                self.cluster.forget(pod.uid)
        for uid in self.uids:
            self.cluster.claims.end_bind(uid, {})

    def build_anew(self, seed: int) -> Cluster:
        fresh = Cluster()
        there = list(self.objects.items())
        random.Random(seed).shuffle(there)
        for (kind, _), found in there:
            show(fresh, kind, found)
        return fresh


def show(cluster: Cluster, kind: str, found: Any) -> None:
    """Let a cluster see an object."""
    found = copy.deepcopy(found)
    claims = cluster.claims
    sees: dict[str, Callable[[Any], object]] = {
        "slice": claims.see_slice,
        "rule": claims.see_rule,
        "claim": claims.see_claim,
        "class": claims.see_class,
        "pod": cluster.see_pod,
        "node": cluster.see_node,
    }
    sees[kind](found)
    claims.flush()


def make_meta(name: str) -> Any:
    return make.pod(name=name).metadata


def make_device(rng: random.Random, i: int, where: Json) -> Json:
    found: Json = {"name": f"d{i}", "attributes": {"uuid": {"string": f"u{rng.randrange(3)}"}, "kind": {"string": rng.choice("ab")}}}  # fmt: skip
    if rng.random() < 0.4:
        found |= {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "8"}}}
    if rng.random() < 0.4:
        found["consumesCounters"] = [{"counterSet": "set", "counters": {"a": {"value": rng.randrange(3)}}}]  # fmt: skip
    if rng.random() < 0.2:
        found["taints"] = [{"key": "bad", "effect": "NoSchedule"}]
    if "perDeviceNodeSelection" in where:
        found |= rng.choice([{"nodeName": rng.choice(_NODES)}, {"allNodes": True}, {}])
    return found


def play(happened: list[tuple[str, int]], world: World | None = None) -> None:
    world = world or World()
    for i, (name, seed) in enumerate(happened, start=1):
        world.happen(name, seed)
        checks.verify(world.cluster)
        if i % 10 == 0 or i == len(happened):
            world.settle()
            checks.verify(world.cluster)
            fresh = world.build_anew(i)
            checks.verify(fresh)
            assert take_fingerprint(world.cluster) == take_fingerprint(fresh)
            fits = find_fits(world.cluster, world.cycle)
            assert fits == find_fits(fresh, Cycle(fresh, PolicyBook(Config())))
            assert list_offers(world.cluster) == list_offers(fresh)
        else:
            # Boards that the cycle keeps must not miss what happened in between.
            find_fits(world.cluster, world.cycle)


@given(
    st.lists(st.tuples(st.sampled_from(_EVENTS), st.integers(0, 2**20)), min_size=10, max_size=60)
)
@settings(max_examples=slices.count_examples(200), deadline=None)
def test_any_events_leave_the_columns_of_a_fresh_build(happened: list[tuple[str, int]]) -> None:
    play(happened)


@pytest.mark.parametrize("seed", slices.pick_part(range(10)))
def test_long_histories_leave_the_columns_of_a_fresh_build(seed: int) -> None:
    rng = random.Random(seed)
    play([(rng.choice(_EVENTS), rng.randrange(2**20)) for _ in range(300)])


def test_a_claim_is_charged_once_for_the_pods_that_share_it() -> None:
    world = World()
    body = {"kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": {
        "driver": "dra.example", "nodeName": "n0", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "d0"}]}}  # fmt: skip
    world._see("slice", msgspec.convert(body, objects.ResourceSlice))
    allocated = objects.AllocatedDevice(request="r", driver="dra.example", pool="p", device="d0")
    pods = [make.pod(name=f"p{i}", node="n0", cpu="1") for i in range(2)]
    for pod in pods:
        pod.spec.resource_claims = make.claims("c")
        world._see("pod", pod)
    consumers = [
        objects.Consumer(resource="pods", name=p.metadata.name, uid=p.metadata.uid) for p in pods
    ]
    claim = objects.ResourceClaim(
        wire.GuardedMeta(name="c", namespace="default", uid="c"),
        status=objects.ClaimStatus(
            objects.Allocation(objects.AllocatedDevices([allocated])), consumers
        ),
    )
    row = world.cluster.claims.inventory.find_rows(PoolKey("dra.example", "p"), "d0")[0]
    for reserved in (consumers, consumers[:1], [], consumers):
        claim.status.reserved_for = list(reserved)
        world._see("claim", claim)
        assert world.cluster.claims.table.columns.owners[row] == 1
        checks.verify(world.cluster)
    for pod in pods:
        world.cluster.drop_pod(pod.metadata.uid)
        assert world.cluster.claims.table.columns.owners[row] == 1
    claim.status = objects.ClaimStatus()
    world._see("claim", claim)
    assert world.cluster.claims.table.columns.owners[row] == 0
