"""Rows about devices of ResourceSlices: what share of them pods with claims get, with pods that stay and pods that leave.

Pods come one after another, and those that fit nowhere are gone. ``fill``: none leaves, until as much was requested as 130 %
of the devices. ``churn``: lifetimes are drawn from an exponential distribution, and as much is requested as there is; the
figure is a mean over the time after the first fifth of the pods. For ``most-allocated`` and ``least-allocated`` the devices,
too, are the fullest and the emptiest that fit (GPU policies ``binpack`` and ``spread``); ``kube-scheduler`` and ``first-fit``
take the first that fit.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from scheduler.api import wire
from scheduler.api.claims import objects
from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.devices import objects as node_objects
from scheduler.embedded.agents import dra_devices
from scheduler.shapes.policies import PolicyBook
from scheduler.state.cluster import Cluster

Json = dict[str, Any]
MODES = (Mode.KEEL, Mode.KUBE_SCHEDULER, Mode.FIRST_FIT, Mode.MOST_ALLOCATED, Mode.LEAST_ALLOCATED)
_GPU_POLICIES = {Mode.MOST_ALLOCATED: "binpack", Mode.LEAST_ALLOCATED: "spread"}
_FILL_LOAD, _ARRIVALS, _UNTIMED = 1.3, 3000, 600
_LEARN_EVERY = 16
_SEVENTHS = {one.name: int(one.name[0]) for one in dra_devices.PROFILES}
# How often each profile is requested: as in docs/claims.md.
MIG_MIXES: Mapping[str, Mapping[str, int]] = {
    "mixed": {"1g.10gb": 4, "1g.20gb": 1, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1},
    "small": {"1g.10gb": 6, "2g.20gb": 3, "3g.40gb": 1},
    "large": {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 2, "4g.40gb": 3, "7g.80gb": 2},
}


class Wish(NamedTuple):
    """What a pod requests: the spec of its claim, and how much of the cluster's devices that is."""

    spec: Json
    amount: float


class Supply(NamedTuple):
    """A cluster of like nodes, what pods request there, and how much all devices are."""

    pools: Sequence[dra_devices.Pool]
    n_nodes: int
    amount: float
    draw: Callable[[random.Random], Wish]


def make_supplies() -> dict[str, Supply]:
    """Return the clusters by the names of their rows."""
    found = {
        f"MIG, {name}": Supply((dra_devices.make_mig_gpus(8),), 3, 3 * 8 * 7, _draw_profile(mix))
        for name, mix in MIG_MIXES.items()
    }
    pools = dra_devices.make_gpus(8), dra_devices.make_nics(8)
    return found | {
        "GPUs and NICs of one PCIe root": Supply(pools, 8, 8 * 8, _draw_linked),
        "shares of memory": Supply((dra_devices.make_hami_gpus(8),), 3, 3 * 8, _draw_share),
    }


def request_one(of_class: str, texts: Sequence[str]) -> Json:
    """Request a device of a class that these selectors choose."""
    return _request((of_class, {"selectors": [{"cel": {"expression": text}} for text in texts]}))


def _draw_profile(mix: Mapping[str, int]) -> Callable[[random.Random], Wish]:
    def draw(rng: random.Random) -> Wish:
        (name,) = rng.choices(list(mix), list(mix.values()))
        text = f"device.attributes['{dra_devices.NVIDIA}'].profile == '{name}'"
        return Wish(request_one(dra_devices.MIG_CLASS, [text]), _SEVENTHS[name])

    return draw


def _draw_linked(rng: random.Random) -> Wish:
    """Half want a GPU, others a GPU or two with the NIC beside them, and some half a node or all of it."""
    gpus, nics = rng.choices([(1, 0), (1, 1), (2, 1), (4, 0), (8, 0)], [50, 15, 20, 10, 5])[0]
    wanted = [(dra_devices.NVIDIA, {"count": gpus})] + [(dra_devices.NETWORK, {"count": nics})] * (
        nics > 0
    )
    spec = _request(*wanted)
    if nics:
        spec["devices"]["constraints"] = [{"matchAttribute": dra_devices.PCIE_ROOT}]
    return Wish(spec, gpus)


def _draw_share(rng: random.Random) -> Wish:
    """Sizes as they are requested: many small ones, some of half a GPU, a few whole GPUs."""
    gib = rng.choices([5, 10, 16, 24, 40, 79], [25, 25, 20, 15, 10, 5])[0]
    requests = {"memory": f"{gib}Gi", "cores": str(min(100, gib))}
    return Wish(_request((dra_devices.HAMI, {"capacity": {"requests": requests}})), gib / 79)


def _request(*wanted: tuple[str, Json]) -> Json:
    requests = [
        {"name": f"r{i}", "exactly": {"deviceClassName": of_class, **more}}
        for i, (of_class, more) in enumerate(wanted)
    ]
    return {"devices": {"requests": requests}}


class _Player:
    """A cluster to which pods come."""

    def __init__(self, supply: Supply, mode: str) -> None:
        placement = Placement(mode=Mode(mode), gpu_policy=_GPU_POLICIES.get(Mode(mode), ""))
        self._cluster = Cluster()
        self._cycle = Cycle(self._cluster, PolicyBook(Config(placement=placement)))
        self._n = 0
        claims = self._cluster.claims
        for one in dra_devices.make_classes():
            claims.see_class(msgspec.convert(one, objects.DeviceClass))
        for i in range(supply.n_nodes):
            name = f"node-{i}"
            size: wire.Quantities = {"cpu": "256", "memory": "2Ti", "pods": 500}
            self._cluster.see_node(node_objects.make_node(name, size, []))
            for body in list_slices(name, supply.pools):
                claims.see_slice(msgspec.convert(body, objects.ResourceSlice))
        claims.flush()

    def place(self, wish: Wish) -> str:
        """Let a pod come; return its uid, or nothing for a pod that fits nowhere, which is gone."""
        self._n += 1
        if self._n % _LEARN_EVERY == 0:
            self._cycle.learn()
        claim, pod = make_claimant(f"pod-{self._n}", wish.spec)
        self._cluster.claims.see_claim(claim)
        seen = self._cluster.see_pod(pod)
        assert seen is not None
        if self._cycle.schedule([seen], explain=False).binds:
            return seen.uid
        self.remove(seen.uid)
        return ""

    def remove(self, uid: str) -> None:
        """Let a pod and its claim go."""
        self._cluster.drop_pod(uid)
        self._cluster.claims.drop_claim(("default", f"{uid}-devices"))


def list_slices(node: str, pools: Sequence[dra_devices.Pool]) -> Iterator[Json]:
    """List what drivers publish of the devices of a node."""
    for pool in pools:
        parts: list[Json] = [{"sharedCounters": list(pool.counters)}] if pool.counters else []
        parts += [{"devices": list(pool.devices)}]
        about = {"name": f"{node}-{pool.driver}", "generation": 1, "resourceSliceCount": len(parts)}
        for i, part in enumerate(parts):
            spec = {"driver": pool.driver, "nodeName": node, "pool": about, **part}
            yield {"metadata": {"name": f"{node}-{pool.driver}-{i}"}, "spec": spec}


def make_claimant(name: str, spec: Json) -> tuple[objects.ResourceClaim, wire.Pod]:
    """Make a pod, whose uid is its name, and the claim that Kubernetes makes for it from a template."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True}
    of_claim = f"{name}-devices"
    meta = {"name": of_claim, "namespace": "default", "uid": of_claim, "ownerReferences": [owner]}
    claim = msgspec.convert({"metadata": meta, "spec": spec}, objects.ResourceClaim)
    asked = wire.Resources(requests={"cpu": "1", "memory": "1Gi"})
    pod = wire.Pod(
        wire.Meta(name=name, namespace="default", uid=name),
        wire.PodSpec(
            scheduler_name=Config().scheduler_name, containers=[wire.Container("main", asked)],
            resource_claims=[wire.PodClaim("devices", "", "devices")],
        ),
    )  # fmt: skip
    pod.status.resource_claim_statuses = [wire.PodClaimStatus("devices", of_claim)]
    return claim, pod


def measure_fill(supply: Supply, mode: str, seed: int) -> float:
    """Return what share of the devices is allocated in the end, in percent."""
    rng, player, asked, given = random.Random(seed), _Player(supply, mode), 0.0, 0.0
    while asked < _FILL_LOAD * supply.amount:
        wish = supply.draw(rng)
        asked += wish.amount
        given += wish.amount if player.place(wish) else 0.0
    return 100 * given / supply.amount


def measure_churn(supply: Supply, mode: str, seed: int) -> float:
    """Return what share of the devices is allocated in the mean, in percent."""
    rng, player = random.Random(seed), _Player(supply, mode)
    wishes = [supply.draw(rng) for _ in range(_ARRIVALS)]
    rate = supply.amount / (sum(one.amount for one in wishes) / _ARRIVALS)
    leaving: list[tuple[float, str, float]] = []
    now = last = began = used = area = 0.0
    for i, wish in enumerate(wishes):
        now += rng.expovariate(rate)
        lifetime = rng.expovariate(1.0)
        while leaving and leaving[0][0] <= now:
            at, uid, amount = heapq.heappop(leaving)
            area += used * (at - last)
            used, last = used - amount, at
            player.remove(uid)
        area += used * (now - last)
        last = now
        if i == _UNTIMED:
            area, began = 0.0, now
        if uid := player.place(wish):
            used += wish.amount
            heapq.heappush(leaving, (now + lifetime, uid, wish.amount))
    return 100 * area / (now - began) / supply.amount
