"""HAMi's device plugin, rule by rule."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from scheduler.embedded.agents import cards, mig, nodes
from scheduler.embedded.agents import fleet as agents
from scheduler.embedded.agents.hami_plugin import Knobs
from tests.embedded.conftest import Api

LOCK = "hami.io/mutex.lock"
TO_ALLOCATE = "hami.io/vgpu-devices-to-allocate"
PHASE = "hami.io/bind-phase"
NOW = "2026-01-01T00:00:00Z"


def container(name: str, gpus: int = 0, **more: Any) -> dict[str, Any]:
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    return {"name": name, "image": "i:1", "resources": resources, **more}


class Field:
    """One GPU node with its agents, and the scheduler's side of the protocol."""

    def __init__(self, api: Api, node: str, running: agents.Agents, eventually: Any) -> None:
        self.api = api
        self.node = node
        self.agents = running
        self.eventually = eventually

    async def annotations(self) -> dict[str, str]:
        node = await self.api.get(f"/api/v1/nodes/{self.node}")
        return dict(node["metadata"].get("annotations") or {})

    async def lock(self, pod: str = "p", value: str = "") -> None:
        text = value or f"{NOW},{self.api.namespace},{pod}"
        meta = {"annotations": {LOCK: text}}
        assert (await self.api.merge(f"/api/v1/nodes/{self.node}", {"metadata": meta})).code == 200

    async def place(self, devices: str, pod: str = "p", **more: str) -> None:
        """Bind a pod with its devices, as a scheduler that writes all at once does."""
        written = {
            "hami.io/vgpu-node": self.node,
            TO_ALLOCATE: devices,
            "hami.io/vgpu-devices-allocated": devices,
            PHASE: "allocating",
            "hami.io/bind-time": "1767225600",
            **more,
        }
        assert (await self.api.bind(pod, self.node, {"annotations": written})).code == 201

    async def pod(self, name: str = "p") -> Any:
        return (await self.api.get(f"{self.api.pods}/{name}")).body

    async def until(self, phase: str, name: str = "p") -> Any:
        """Wait until a pod is in a phase; return it."""
        return await self.eventually(
            lambda: self.pod(name), lambda one: one["status"]["phase"] == phase
        )


@pytest.fixture
async def field(api: Api, unique: Callable[[str], str], eventually: Any) -> AsyncIterator[Field]:
    name = unique("gpu")
    await api.cluster_wide("/api/v1/nodes", nodes.make_gpu_node(name, cards=2))
    async with agents.run(api.url, nodes={name}, token=api.token, ssl=api.context) as running:
        yield Field(api, name, running, eventually)


def test_the_json_registration_leaves_out_zero_values() -> None:
    listed = (
        cards.Card(id="GPU-a", index=0, numa=0),
        cards.Card(id="GPU-b", index=1, numa=1, health=False, mode=""),
    )
    assert cards.write_register(cards.Hardware(cards=listed)) == (
        '[{"id":"GPU-a","count":10,"devmem":15360,"devcore":100,"type":"NVIDIA-Tesla T4",'
        '"mode":"hami-core","health":true},'
        '{"id":"GPU-b","index":1,"count":10,"devmem":15360,"devcore":100,'
        '"type":"NVIDIA-Tesla T4","numa":1}]'
    )


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("text7", "GPU-a,10,15360,100,NVIDIA-Tesla T4,0,true:"),
        ("text9", "GPU-a,10,15360,100,NVIDIA-Tesla T4,0,true,0,hami-core:"),
    ],
)
def test_the_text_registrations(form: str, expected: str) -> None:
    hardware = cards.Hardware(cards=(cards.Card(id="GPU-a"),), form=form)
    assert cards.write_register(hardware) == expected


def test_the_order_of_a_registration_is_any_but_told_by_its_seed() -> None:
    listed = tuple(cards.Card(id=f"GPU-{index}", index=index) for index in range(8))
    hardware = cards.Hardware(cards=listed)
    texts = [cards.write_register(hardware, f"7/{number}") for number in range(4)]
    assert len(set(texts)) == 4
    assert texts[0] == cards.write_register(hardware, "7/0")
    ids = [[one["id"] for one in json.loads(text)] for text in texts]
    assert all(sorted(one) == sorted(card.id for card in listed) for one in ids)


@pytest.mark.parametrize("form", cards.FORMS)
async def test_the_plugin_announces_its_cards(
    api: Api, unique: Callable[[str], str], eventually: Any, form: str
) -> None:
    name = unique("gpu")
    node = nodes.remove_announcement(nodes.make_gpu_node(name, cards=3, split=4, register=form))
    await api.cluster_wide("/api/v1/nodes", node)
    path = f"/api/v1/nodes/{name}"

    def announced(reply: Any) -> bool:
        return "nvidia.com/gpu" in reply["status"]["allocatable"]

    async with agents.run(api.url, nodes={name}, token=api.token, ssl=api.context):
        found = await eventually(lambda: api.get(path), announced)
    for part in ("capacity", "allocatable"):
        assert found["status"][part]["nvidia.com/gpu"] == "12"
    annotations = found["metadata"]["annotations"]
    hardware = cards.read_hardware(found.body)
    assert hardware is not None
    assert annotations[cards.REGISTER] == cards.write_register(hardware)
    # Only plugins of the text days report in the handshake.
    assert (cards.HANDSHAKE in annotations) is (form != "json")


async def test_a_card_that_breaks_is_announced_as_such(field: Field) -> None:
    path = f"/api/v1/nodes/{field.node}"
    node = (await field.api.get(path)).body
    hardware = cards.read_hardware(node)
    assert hardware is not None
    broken = nodes.mark_unhealthy(hardware, 1)
    meta = {"annotations": {cards.HARDWARE: broken.write_annotation()}}
    await field.api.merge(path, {"metadata": meta})
    found = await field.eventually(
        lambda: field.api.get(path),
        lambda reply: reply["status"]["allocatable"]["nvidia.com/gpu"] == "10",
    )
    assert found["status"]["capacity"]["nvidia.com/gpu"] == "20"
    registered = json.loads(found["metadata"]["annotations"][cards.REGISTER])
    assert [one.get("health") for one in registered] == [True, None]


async def test_the_locks_pod_gets_its_cards_and_the_lock_goes(field: Field) -> None:
    await field.api.pod(containers=[container("c", 1)])
    await field.lock()
    await field.place("GPU-a,NVIDIA,3000,30:;")
    pod = await field.until("Running")
    (given,) = field.agents.list_allocated("p", field.api.namespace)
    assert (given.container, given.slot, given.node) == ("c", 0, field.node)
    assert given.shares == (("GPU-a", 3000, 30),)
    annotations = pod["metadata"]["annotations"]
    assert annotations[TO_ALLOCATE] == ";"
    assert annotations["hami.io/vgpu-devices-allocated"] == "GPU-a,NVIDIA,3000,30:;"
    assert annotations[PHASE] == "success"
    assert LOCK not in await field.annotations()


async def test_slots_are_used_in_the_kubelets_order(field: Field) -> None:
    sidecar = container("side", 1, restartPolicy="Always")
    await field.api.pod(
        initContainers=[container("init", 1), container("plain-init"), sidecar],
        containers=[container("plain"), container("two", 2)],
    )
    await field.lock()
    devices = "GPU-a,NVIDIA,1,0:;;GPU-b,NVIDIA,2,0:;;GPU-a,NVIDIA,3,0:GPU-b,NVIDIA,4,0:;"
    await field.place(devices)
    pod = await field.until("Running")
    given = field.agents.list_allocated("p", field.api.namespace)
    assert [(one.container, one.slot, len(one.shares)) for one in given] == [
        ("init", 0, 1),
        ("side", 2, 1),
        ("two", 4, 2),
    ]
    assert pod["metadata"]["annotations"][TO_ALLOCATE] == ";;;;;"
    assert LOCK not in await field.annotations()


async def test_success_comes_only_with_the_last_slot(field: Field) -> None:
    await field.api.pod(containers=[container("a", 1), container("b", 1)])
    await field.lock()
    start = (await field.api.get(field.api.pods))["metadata"]["resourceVersion"]
    async with field.api.watch(field.api.pods, resourceVersion=start) as watch:
        await field.place("GPU-a,NVIDIA,1,0:;GPU-b,NVIDIA,2,0:;")
        await field.until("Running")
        seen: list[tuple[str, str]] = []
        while not seen or seen[-1][1] != "success":
            annotations = (await watch.next())["object"]["metadata"]["annotations"]
            seen.append((annotations[TO_ALLOCATE], annotations[PHASE]))
    assert list(dict.fromkeys(seen)) == [
        ("GPU-a,NVIDIA,1,0:;GPU-b,NVIDIA,2,0:;", "allocating"),
        (";GPU-b,NVIDIA,2,0:;", "allocating"),
        (";;", "allocating"),
        (";;", "success"),
    ]


async def test_a_wrong_number_of_cards_fails_the_pod_for_good(field: Field) -> None:
    await field.api.pod(containers=[container("c", 2)])
    await field.lock()
    await field.place("GPU-a,NVIDIA,3000,30:;")
    pod = await field.until("Failed")
    assert pod["status"]["reason"] == "UnexpectedAdmissionError"
    assert "device number not matched" in pod["status"]["message"]
    assert pod["metadata"]["annotations"][PHASE] == "failed"
    assert pod["metadata"]["annotations"][TO_ALLOCATE] == "GPU-a,NVIDIA,3000,30:;"
    assert LOCK not in await field.annotations()
    assert field.agents.allocations == []


@pytest.mark.parametrize("lock", ["", NOW])
async def test_without_a_named_lock_the_first_binding_pod_is_taken(field: Field, lock: str) -> None:
    if lock:
        await field.lock(value=lock)
    await field.api.pod(containers=[container("c", 1)])
    await field.place("GPU-a,NVIDIA,3000,30:;")
    await field.until("Running")
    assert len(field.agents.list_allocated("p", field.api.namespace)) == 1
    # A bare time belongs to nobody, so anybody may take it away.
    assert LOCK not in await field.annotations()


async def test_the_guess_can_be_wrong(field: Field) -> None:
    """Two pods without a lock: the call made for one consumes the other's slot."""
    field.agents.knobs.delay_seconds = 3.0
    for name in ("a", "b"):
        await field.api.pod(name, containers=[container("c", 1)])
    await field.place("GPU-b,NVIDIA,2,0:;", pod="b")
    await field.place("GPU-a,NVIDIA,1,0:;", pod="a")
    await field.until("Running", "b")
    first = field.agents.allocations[0]
    assert (first.pod, first.shares[0].uuid) == ("a", "GPU-a")


async def test_a_pod_that_nothing_names_fails_and_the_lock_stays(field: Field) -> None:
    await field.lock("some-other-pod")
    await field.api.pod(containers=[container("c", 1)])
    await field.place("GPU-a,NVIDIA,3000,30:;")
    pod = await field.until("Failed")
    assert pod["status"]["reason"] == "UnexpectedAdmissionError"
    assert pod["metadata"]["annotations"][PHASE] == "allocating"
    assert (await field.annotations())[LOCK].endswith(",some-other-pod")


async def test_a_malformed_lock_fails_the_call(field: Field) -> None:
    await field.lock(value=f"{NOW},only-two")
    await field.api.pod(containers=[container("c", 1)])
    await field.place("GPU-a,NVIDIA,3000,30:;")
    pod = await field.until("Failed")
    assert "malformed lock" in pod["status"]["message"]
    assert LOCK in await field.annotations()


async def test_a_pod_without_its_annotation_fails(field: Field) -> None:
    await field.api.pod(containers=[container("c", 1)])
    await field.lock()
    await field.place(";")
    pod = await field.until("Failed")
    assert "device request not found" in pod["status"]["message"]
    assert pod["metadata"]["annotations"][PHASE] == "failed"
    assert LOCK not in await field.annotations()


async def test_pods_that_ask_for_no_card_never_meet_the_plugin(field: Field) -> None:
    await field.lock("somebody")
    await field.api.pod()
    await field.api.bind("p", field.node)
    await field.until("Running")
    assert field.agents.allocations == []
    assert LOCK in await field.annotations()


async def test_a_failure_can_be_ordered(field: Field) -> None:
    field.agents.fail_allocate("p", field.api.namespace, "no such luck")
    await field.api.pod(containers=[container("c", 1)])
    await field.lock()
    await field.place("GPU-a,NVIDIA,3000,30:;")
    pod = await field.until("Failed")
    assert pod["status"]["message"] == (
        "Pod was rejected: Allocate failed due to no such luck, which is unexpected"
    )
    assert LOCK not in await field.annotations()


async def test_a_dead_plugin_never_answers(field: Field) -> None:
    field.agents.knobs.dead = True
    await field.api.pod(containers=[container("c", 1)])
    await field.lock()
    await field.place("GPU-a,NVIDIA,3000,30:;")
    await asyncio.sleep(0.2)
    assert (await field.pod())["status"]["phase"] == "Pending"
    assert LOCK in await field.annotations()


async def test_the_kubelet_refuses_what_it_has_no_slots_for(
    api: Api, unique: Callable[[str], str], eventually: Any
) -> None:
    name = unique("gpu")
    await api.cluster_wide("/api/v1/nodes", nodes.make_gpu_node(name, cards=1, split=1))
    async with agents.run(api.url, nodes={name}, token=api.token, ssl=api.context) as running:
        field = Field(api, name, running, eventually)
        for pod in ("a", "b"):
            await api.pod(pod, containers=[container("c", 1)])
        await field.lock("a")
        await field.place("GPU-a,NVIDIA,1,0:;", pod="a")
        await field.until("Running", "a")
        await field.lock("b")
        await field.place("GPU-a,NVIDIA,1,0:;", pod="b")
        pod = await field.until("Failed", "b")
        assert (
            "requested number of devices unavailable for nvidia.com/gpu. Requested: 1,"
            in (pod["status"]["message"])
        )
        # A pod that ends gives its slot back.
        await api.delete(f"{api.pods}/a")
        await eventually(lambda: api.get(f"{api.pods}/a"), lambda reply: reply.code == 404)
        await api.pod("c", containers=[container("c", 1)])
        await field.lock("c")
        await field.place("GPU-a,NVIDIA,1,0:;", pod="c")
        await field.until("Running", "c")


async def test_many_nodes_work_side_by_side(
    api: Api, unique: Callable[[str], str], eventually: Any
) -> None:
    names = [unique("gpu") for _ in range(5)]
    for name in names:
        await api.cluster_wide("/api/v1/nodes", nodes.make_gpu_node(name))
    knobs = Knobs(delay_seconds=3.0)
    async with agents.run(
        api.url, nodes=set(names), token=api.token, ssl=api.context, knobs=knobs
    ) as running:
        loop = asyncio.get_running_loop()
        start = loop.time()
        for name in names:
            field = Field(api, name, running, eventually)
            await api.pod(name, containers=[container("c", 1)])
            await field.lock(name)
            await field.place("GPU-a,NVIDIA,1,0:;", pod=name)
        for name in names:
            await field.until("Running", name)
        # One after another would take five times the delay.
        assert loop.time() - start < 12.0


async def test_an_instance_goes_with_its_pod_that_has_ended(
    api: Api, unique: Callable[[str], str], eventually: Any
) -> None:
    """A pod that ended is still an object, and its place is free for the next pod."""
    name = unique("gpu")
    place = {"start": 0, "size": 4}
    profile = {"name": "3g.20gb", "memoryMB": 19_968, "core": 43, "sliceCount": 3}
    cut = cards.Card(id="GPU-m", mode="mig", migProfiles=({**profile, "placements": [place]},))
    hardware = cards.Hardware(cards=(cut,))
    await api.cluster_wide("/api/v1/nodes", nodes.add_cards(nodes.make_plain_node(name), hardware))
    reserved = {"containerIndex": 0, "deviceIndex": 0, "gpuUUID": "GPU-m", "profile": "3g.20gb"}
    notes = {mig.ALLOCATIONS: json.dumps([{**reserved, "placement": place}])}
    async with agents.run(api.url, nodes={name}, token=api.token, ssl=api.context) as running:
        field = Field(api, name, running, eventually)
        for pod in ("first", "second"):
            meta = {"annotations": {"evenkeel.dev/run-seconds": "0"}}
            await api.pod(pod, containers=[container("a", 1)])
            await api.merge(f"{api.pods}/{pod}", {"metadata": meta})
            await field.lock(pod)
            await field.place("GPU-m,NVIDIA,19968,43:;", pod, **notes)
            await field.until("Succeeded", pod)
