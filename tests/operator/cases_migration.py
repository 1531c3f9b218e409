"""Evenkeel in the place of HAMi's scheduler, and back: nothing is touched, and each reads what the other wrote."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from scheduler.embedded.agents import hami_plugin
from tests.operator import audit, left_by_hami
from tests.operator.foreign import bind_for_another
from tests.operator.left_by_hami import HAMI, NO_MIG, SHARED
from tests.operator.manifests import container, pod
from tests.operator.process import Operator
from tests.operator.world import NODES, PODS, World
from tests.oracles import hami as twin

Json = dict[str, Any]
# What Evenkeel is started with.
CONFIG = {
    "schedulerName": "evenkeel",
    "placement": {"nodePolicy": "binpack", "gpuPolicy": "spread"},
    "profiles": [{"schedulerName": HAMI}],
    "hamiConfigMap": f"kube-system/{left_by_hami.MAP}",
}
_MEM, _PERCENT, _CORES = (
    f"nvidia.com/{name}" for name in ("gpumem", "gpumem-percentage", "gpucores")
)
_POLICY = "hami.io/gpu-scheduler-policy"
_NODE_POLICY = "hami.io/node-scheduler-policy"
_WEIGHTS = "hami.io/device-scoring-weights"
# All that HAMi's scheduler writes on a pod; the plugin changes two of them.
_COMMON = {
    "hami.io/vgpu-node", "hami.io/vgpu-time", "hami.io/bind-phase", "hami.io/bind-time",
}  # fmt: skip


@dataclass
class Ask:
    """A pod that comes, as the user writes it and as HAMi reads it."""

    name: str
    asks: list[tuple[str, Json]]
    notes: dict[str, str] = field(default_factory=dict)
    scheduler: str = "evenkeel"

    def make(self) -> Json:
        listed = [
            container(f"c{i}", limits=limits) for i, (kind, limits) in enumerate(self.asks) if kind == "app"
        ]  # fmt: skip
        inits = [
            container(f"i{i}", limits=limits) for i, (kind, limits) in enumerate(self.asks) if kind == "init"
        ]  # fmt: skip
        made = pod(self.name, annotations=NO_MIG | self.notes, schedulerName=self.scheduler)
        made["spec"] |= {"containers": listed} | ({"initContainers": inits} if inits else {})
        return made

    def read(self) -> twin.Pod:
        weights = self.notes.get(_WEIGHTS, "slot=1,core=1,memory=1")
        return twin.Pod(
            containers=tuple(_read_container(kind, limits) for kind, limits in self.asks),
            policy=self.notes.get(_POLICY, "spread"),
            use_type=self.notes.get("nvidia.com/use-gputype", ""),
            vgpu_mode=NO_MIG["nvidia.com/vgpu-mode"],
            weights=tuple(int(one.partition("=")[2]) for one in weights.split(",")),  # type: ignore[arg-type]
        )


def _read_container(kind: str, limits: Json) -> twin.Container:
    """What HAMi's webhook and scheduler make of the limits."""
    percent = limits.get(_PERCENT, twin.PERCENT_UNSET if _MEM in limits else 100)
    is_whole = _MEM not in limits and percent == 100
    cores = limits.get(_CORES, 100 if is_whole else 0)
    return twin.Container(kind, limits.get(audit.GPU, 0), limits.get(_MEM, 0), percent, cores)


# All were created for HAMi's scheduler, and wait when it is stopped.
_WAITING = (
    Ask("wait-0", [("app", {audit.GPU: 1, _MEM: 3000})], scheduler=HAMI),
    Ask("wait-1", [("app", {audit.GPU: 2, _PERCENT: 25})], scheduler=HAMI),
    Ask("wait-2", [("app", {audit.GPU: 1, _MEM: 6000, _CORES: 40})], scheduler=HAMI),
)
_NEXT = (
    Ask("next-whole", [("app", {audit.GPU: 1})], scheduler=HAMI),
    Ask("next-0", [("app", {audit.GPU: 1, _MEM: 2500})]),
    Ask("next-1", [("app", {audit.GPU: 1, _MEM: 1000})], {_POLICY: "binpack"}, HAMI),
    Ask("next-2", [("app", {audit.GPU: 1, _MEM: 4000, _CORES: 20})], {_NODE_POLICY: "spread"}),
    Ask("next-3", [("app", {audit.GPU: 1, _PERCENT: 20})], {"nvidia.com/use-gputype": "a10g"}),
    Ask(
        "next-4",
        [("init", {audit.GPU: 1, _MEM: 500}), ("app", {}), ("app", {audit.GPU: 1, _MEM: 700})],
        {_POLICY: "binpack", _WEIGHTS: "slot=0,core=0,memory=1"},
    ),
)


async def hami_is_replaced_and_comes_back(world: World, config: str) -> None:
    """Running pods keep their cards, waiting and new ones get those that HAMi would give, and HAMi reads them all."""
    await left_by_hami.leave_cluster(world)
    left = [one["metadata"]["name"] for one in await world.pods()]
    await _create_waiting(world)
    before = await _look(world, left)
    expected = await _foresee(world, _WAITING)
    operator = await world.start_operator(args=("--config", config))
    await world.leads(operator)
    await _lock_is_respected(world, expected, before["nodes"]["card-0"][audit.LOCK])
    knobs = hami_plugin.Knobs(seed=3)
    async with world.agents(nodes=[*SHARED, "mig-0"], knobs=knobs) as played:
        await world.running("holds", *expected, "wait-m")
        assert [await _find_place(world, name) for name in expected] == [*expected.values()]
        await _check_other_kinds(world)
        for ask in _NEXT:
            (place,) = (await _foresee(world, [ask])).values()
            await world.create(ask.make())
            await world.running(ask.name)
            assert await _find_place(world, ask.name) == place, ask.name
        await _quota_is_respected(world, operator)
        await world.wait_until(world.nodes, lambda found: not audit.locked(found))
        assert operator.stop().code == 0
        given = {one.pod for one in played.allocations}
        assert given == {"holds", "wait-m", "over", *(one.name for one in (*_WAITING, *_NEXT))}
        assert await _look(world, left) == before | {"nodes": _without_locks(before["nodes"])}
        for one in await world.pods():
            if one["metadata"]["name"] not in left:
                _is_what_hami_reads(one)
        await _hami_places_again(world)
    # The audit at the end knows no short slots and no cards of Hygon.
    for name in ("left-b", "left-u", "wait-d"):
        await world.delete(f"{PODS}/{name}")
    await world.delete(f"{left_by_hami.MAPS}/{left_by_hami.MAP}")
    await world.delete(f"{left_by_hami.QUOTAS}/cores")


async def cards_cut_by_tables_keep_their_templates(world: World, config: str) -> None:
    """As HAMi up to 2.9 cuts them: by what stands on the pods, also after a restart; what cannot be read closes its card."""
    await left_by_hami.leave_old_mig(world)
    first, second = (left_by_hami.find_card("old-0", i) for i in range(2))

    async def runs(name: str, text: str) -> None:
        await world.running(name)
        notes = (await world.pod(name))["metadata"]["annotations"]
        assert notes[audit.ALLOCATED] == text
        assert left_by_hami.MIG_ALLOCATIONS not in notes

    def ask(name: str, mib: int, count: int = 1) -> Json:
        limits = {audit.GPU: count, _MEM: mib}
        return pod(name, limits=limits, annotations={_POLICY: "binpack"}, schedulerName=HAMI)

    operator = await world.start_operator(args=("--config", config))
    await world.leads(operator)
    async with world.agents(nodes=["old-0"]) as played:
        await world.create(ask("small", 9000))
        await runs("small", f"{first}[1-2],NVIDIA,10240,28:;")
        await world.create(ask("large", 15_000))
        said = "the largest that fits has 10240 MiB"
        await world.refused(
            "large",
            f"CardMigTopologyInfeasible on 2 GPUs: requested an instance with 15000 MiB, {said}",
        )
        for name in ("left-x", "old-0"):
            events = await world.wait_until(partial(world.events, "MalformedPod", name))
            assert "is not named as HAMi names a MIG instance" in events[0]["note"]
        await world.delete(f"{PODS}/left-x")
        await runs("large", f"{second}[2-0],NVIDIA,20480,42:;")
        assert operator.stop().code == 0
        again = await world.start_operator(args=("--config", config))
        await world.leads(again)
        await world.create(ask("last", 9000))
        await runs("last", f"{first}[1-3],NVIDIA,10240,28:;")
        await world.create(ask("none", 9000, 2))
        await world.refused("none", "requested 2 GPUs")
        assert {one.pod for one in played.allocations} == {"small", "large", "last"}
        assert again.stop().code == 0
    await world.delete(f"{left_by_hami.MAPS}/{left_by_hami.MAP}")


async def _create_waiting(world: World) -> None:
    for ask in _WAITING:
        made = ask.make()
        if ask.name == "wait-2":
            made["metadata"]["annotations"] |= left_by_hami.make_abandoned_claim()
        await world.create(made)
        # They are decided in this order: pods of the same second have none.
        await asyncio.sleep(1.05)
    of_mig = {"nvidia.com/vgpu-mode": "mig"}
    mig = {audit.GPU: 1, _MEM: 9000}
    dcu = {"hygon.com/dcunum": 1, "hygon.com/dcumem": 8, "hygon.com/dcucores": 20}
    await world.create(
        pod("wait-m", limits=mig, annotations=of_mig, schedulerName=HAMI),
        pod("wait-d", limits=dcu, schedulerName=HAMI),
    )


async def _look(world: World, left: list[str]) -> dict[str, Any]:
    """All that must stay as it is; what a plugin writes while it serves a pod, and its random order, is left out."""
    pods: Json = {}
    for name in left:
        if name in {"left-a", "holds"}:
            continue
        one = await world.pod(name)
        meta = one["metadata"]
        pods[name] = (meta["annotations"], meta["labels"], one["spec"])
    nodes = {one["metadata"]["name"]: one["metadata"]["annotations"] for one in await world.nodes()}
    for notes in nodes.values():
        notes.pop(audit.REGISTER, None)
    device_map = await world.call("GET", f"{left_by_hami.MAPS}/{left_by_hami.MAP}")
    quota = await world.call("GET", f"{left_by_hami.QUOTAS}/cores")
    return {"pods": pods, "nodes": nodes, "map": device_map, "quota": quota}


def _without_locks(nodes: dict[str, Json]) -> dict[str, Json]:
    return {
        name: {key: text for key, text in notes.items() if key != audit.LOCK}
        for name, notes in nodes.items()
    }


async def _foresee(world: World, asks: Any, without: str = "") -> dict[str, tuple[str, Any]]:
    """Node and cards that HAMi's scheduler would choose for these pods, one after another, from what is written."""
    there = await _read_cards(world, without)
    found = {}
    for ask in asks:
        asked = ask.read()
        fitting = {name: twin.choose(cards, asked) for name, cards in there.items()}
        scores = {
            name: float(twin.node_score(there[name]))
            for name, choice in fitting.items()
            if choice.fits
        }
        spreads = ask.notes.get(_NODE_POLICY) == "spread"
        chosen = (min if spreads else max)(scores, key=lambda name: scores[name])
        # Among equal nodes HAMi may take any: such a case would prove nothing.
        assert list(scores.values()).count(scores[chosen]) == 1, (ask.name, scores)
        choice = fitting[chosen]
        found[ask.name] = chosen, choice.picks
        for card in there[chosen]:
            slots, mem, cores = choice.charge.get(card.uuid, (0, 0, 0))
            card.used, card.used_mem, card.used_cores = (
                card.used + slots, card.used_mem + mem, card.used_cores + cores,
            )  # fmt: skip
    return found


async def _read_cards(world: World, without: str) -> dict[str, list[twin.Card]]:
    """The cards of each node with what pods hold of them, as HAMi's scheduler counts after a restart."""
    there: dict[str, list[twin.Card]] = {}
    for name in SHARED:
        node = await world.node(name)
        cordoned = node["metadata"]["annotations"].get("hami.io/device-cordon", "").split(",")
        there[name] = [
            twin.Card(
                uuid, one.get("index", 0), one["count"], one["devmem"], one["devcore"], one["type"],
                health=one.get("health", False), cordoned=uuid in cordoned,
            )
            for uuid, one in audit.cards(node).items()
        ]  # fmt: skip
    for one in await world.pods():
        # HAMi would also count what a pod without a node claims, until it tries that pod again.
        node = one["spec"].get("nodeName")
        if node and one["metadata"]["name"] != without:
            _charge(there.get(node, []), one)
    return there


def _charge(cards: list[twin.Card], one: Json) -> None:
    n_inits = len(one["spec"].get("initContainers", ()))
    for card in cards:
        used = [
            [(1, mem, cores) for uuid, mem, cores in slot if uuid == card.uuid]
            for slot in audit.devices(one)
        ]
        apps = [figures for slot in used[n_inits:] for figures in slot]
        inits = [figures for slot in used[:n_inits] for figures in slot]
        sums = [sum(column) for column in zip(*apps, strict=True)] or [0, 0, 0]
        slots, mem, cores = (max(sums[i], *(figures[i] for figures in inits), 0) for i in range(3))
        card.used += slots
        card.used_mem += mem
        card.used_cores += cores


async def _find_place(world: World, name: str) -> tuple[str, Any]:
    one = await world.pod(name)
    return one["spec"]["nodeName"], audit.devices(one)


async def _lock_is_respected(world: World, expected: dict[str, tuple[str, Any]], lock: str) -> None:
    """No plugin answers yet: pods for the node wait, without an event, until the pod of the lock is served."""
    await world.bound("wait-m", "wait-d")
    behind = [name for name, (node, _) in expected.items() if node == "card-0"]
    assert behind
    for name in behind:
        assert "nodeName" not in (await world.pod(name))["spec"]
        assert not await world.events("FailedScheduling", name)
    assert (await world.node("card-0"))["metadata"]["annotations"][audit.LOCK] == lock


async def _check_other_kinds(world: World) -> None:
    """The next place that HAMi tries on the MIG card, and the emptier DCU by the unit of HAMi's ConfigMap."""
    meta = (await world.pod("wait-m"))["metadata"]
    assert meta["annotations"][audit.ALLOCATED] == "GPU-mig,NVIDIA,9728,15:;"
    (one,) = json.loads(meta["annotations"][left_by_hami.MIG_ALLOCATIONS])
    assert (one["profile"], one["placement"]) == ("1g.10gb", {"start": 5, "size": 1})
    lock = (await world.node("dcu-0"))["metadata"]["annotations"][audit.LOCK]
    assert lock.endswith(",default,wait-d")
    notes = (await world.pod("wait-d"))["metadata"]["annotations"]
    assert notes[left_by_hami.DCU_TO_ALLOCATE] == notes[left_by_hami.DCU_ALLOCATED]
    assert notes[left_by_hami.DCU_ALLOCATED] == "DCU-a,DCU,8192,20:;"
    # What Hygon's plugin does.
    served = {left_by_hami.DCU_TO_ALLOCATE: ";", "hami.io/bind-phase": "success"}
    await world.annotate(f"{PODS}/wait-d", served)
    await world.annotate(f"{NODES}/dcu-0", {audit.LOCK: None})


async def _quota_is_respected(world: World, operator: Operator) -> None:
    """The cores of HAMi's pods count: 30, 15 of an instance, and what came since; 30 more exceed it."""
    over = Ask("over", [("app", {audit.GPU: 1, _MEM: 100, _CORES: 30})])
    await world.create(over.make())
    said = "exceeded quota: cores, requested: limits.nvidia.com/gpucores=30, used: limits.nvidia.com/gpucores=220"
    await world.refused("over", said)
    (place,) = (await _foresee(world, [over], without="left-a")).values()
    await world.delete(f"{PODS}/left-a")
    await world.running("over")
    assert await _find_place(world, "over") == place
    assert operator.is_running


def _is_what_hami_reads(one: Json) -> None:
    """Every key of HAMi's protocol is there, in its form, and no other key."""
    meta, spec = one["metadata"], one["spec"]
    notes = meta["annotations"]
    name = meta["name"]
    family = "dcu" if name == "wait-d" else "vgpu"
    to_allocate, allocated = (
        f"hami.io/{family}-devices-{end}" for end in ("to-allocate", "allocated")
    )
    written = {key for key in notes if key.startswith("hami.io/")} - {
        _POLICY,
        _NODE_POLICY,
        _WEIGHTS,
    }
    has_instances = name == "wait-m"
    if name == "wait-2":
        # It was chosen an instance once; a Binding can only empty the annotation, and HAMi reads that as none.
        assert notes[left_by_hami.MIG_ALLOCATIONS] == ""
        written.remove(left_by_hami.MIG_ALLOCATIONS)
    wanted = _COMMON | {to_allocate, allocated}
    assert written == wanted | ({left_by_hami.MIG_ALLOCATIONS} if has_instances else set()), name
    assert notes["hami.io/vgpu-node"] == meta["labels"]["hami.io/vgpu-node"] == spec["nodeName"]
    # Seconds since 1970, and the times of this attempt.
    assert notes["hami.io/vgpu-time"].isdigit()
    assert int(notes["hami.io/bind-time"]) >= int(notes["hami.io/vgpu-time"]) > 1_790_000_000
    assert notes["hami.io/bind-phase"] == "success"
    count = len(spec.get("initContainers", ())) + len(spec["containers"])
    assert notes[to_allocate] == ";" * count
    *slots, last = notes[allocated].split(";")
    assert (len(slots), last) == (count, "")
    for slot in slots:
        *records, last = slot.split(":")
        assert not last
        for record in records:
            _, word, mem, cores = record.split(",")
            assert word == ("DCU" if family == "dcu" else "NVIDIA")
            assert int(mem) > 0
            assert 0 <= int(cores) <= 100
    if has_instances:
        (instance,) = json.loads(notes[left_by_hami.MIG_ALLOCATIONS])
        where = [instance[key] for key in ("containerIndex", "deviceIndex", "gpuUUID")]
        assert where == [0, 0, "GPU-mig"]
        assert {"migUUID", "gpuInstanceID", "computeInstanceID"} <= instance.keys()


async def _hami_places_again(world: World) -> None:
    """HAMi's scheduler counts what Evenkeel has written, takes the lock of the node, and its plugin serves the pod."""
    ask = Ask("back", [("app", {audit.GPU: 1, _MEM: 100})], scheduler=HAMI)
    ((node, (((uuid, mem, cores),),)),) = (await _foresee(world, [ask])).values()
    await world.annotate(f"{NODES}/{node}", {audit.LOCK: left_by_hami.make_lock("back")})
    await bind_for_another(world, "back", node, f"{uuid},NVIDIA,{mem},{cores}:;")
    await world.running("back")
    await world.wait_until(world.nodes, lambda found: not audit.locked(found))
