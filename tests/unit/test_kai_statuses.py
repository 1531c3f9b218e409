"""The statuses of KAI's queues and groups: KAI's fields, written where they differ and not again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from scheduler.api import kai, names, wire
from scheduler.api.door import events
from scheduler.api.door.notes import HeldByQueue, Note
from scheduler.api.groups import objects
from scheduler.api.groups.definitions import GroupKey
from scheduler.api.queues import configuration
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.kube.queues.kai import KaiHands, Ties
from scheduler.kube.report.groups import GroupReports
from tests import make

Json = dict[str, Any]
NOW = 1_800_000_000.0
AT = "2027-01-15T08:00:00Z"
FREE = {"quota": -1, "limit": -1}


class Reporter:
    """A reporter: what is put."""

    def __init__(self) -> None:
        self.statuses: list[tuple[str, Json]] = []
        self.events: list[tuple[str, ...]] = []
        self.waiting: list[tuple[str, str]] = []

    def report_status(self, _: str, path: str, make_body: Callable[[], bytes]) -> None:
        self.statuses.append((path, msgspec.json.decode(make_body())["status"]))

    def report_on_object(self, _: Any, meta: wire.Meta, words: tuple[str, ...], **__: Any) -> None:
        self.events.append((meta.name, *words))

    def report_waiting(self, pod: Any, saying: Any) -> None:
        self.waiting.append((pod.name, saying.message))

    def report_on_group(self, group: Any, saying: Any, _: str) -> None:
        self.waiting.append((group.name, saying.message))

    def report_group_status(self, group: Any, status: Json) -> None:
        self.statuses.append((group.name, status))


def make_queue(name: str, *, version: str = "1", status: Any = None, **spec: Any) -> kai.Queue:
    resources = {"gpu": {"quota": 1, "limit": 2, "overQuotaWeight": 1}, "cpu": FREE, "memory": FREE}
    meta = wire.Meta(name=name, uid=f"uid of {name}", resource_version=version)
    return kai.Queue(metadata=meta, spec={"resources": resources, **spec}, status=status)


class Api:
    """The pods in the namespace of KAI-Scheduler."""

    def __init__(self) -> None:
        self.pods: list[Json] = []

    async def get(self, path: str, _: Json) -> Json:
        assert path == "/api/v1/namespaces/kai-scheduler/pods"
        return {"items": self.pods}


def make_kai_pod(name: str, account: str, phase: str = "Running") -> Json:
    return {
        "metadata": {"name": name},
        "spec": {"serviceAccountName": account},
        "status": {"phase": phase},
    }


class World:
    """An engine with queues, and who writes their statuses."""

    def __init__(self) -> None:
        config = Config(queues=configuration.read_settings({"kai": True}))
        self.engine, self.reporter = Engine(config), Reporter()
        reporter: Any = self.reporter
        self.api = Api()
        api: Any = self.api
        ties = Ties(self.engine, reporter, self._hand_in, lambda: True, lambda: NOW, {})
        self.hands = KaiHands(api, ties)
        self.groups = GroupReports(self.engine, reporter, lambda: True)

    def _hand_in(self, event: events.Event) -> None:
        self.engine.handle(event, NOW)

    async def look(self, *running: Json) -> None:
        """Let these pods run where KAI is installed, and look."""
        self.api.pods = list(running)
        await self.hands.guard.look()

    def see(self, found: Any) -> None:
        event = events.Seen(found)
        self.hands.hear(event, self.engine.handle(event, NOW))

    def place(self) -> list[str]:
        """Decide, and return the pods that are placed."""
        outcome = self.engine.decide(NOW, Unlimited())
        for bind in outcome.binds:
            self.engine.handle(events.BindDone(bind.uid), NOW)
        assert not outcome.evicts
        return sorted(bind.uid for bind in outcome.binds)

    def decide(self) -> list[Note]:
        outcome = self.engine.decide(NOW, Unlimited())
        for bind in outcome.binds:
            self.engine.handle(events.BindDone(bind.uid), NOW)
        return outcome.notes


async def test_a_queue_says_what_its_pods_hold_and_want() -> None:
    world = World()
    await world.look()
    for found in (
        make_queue("top"),
        make_queue("leaf", parentQueue="top"),
        make_queue("lost", parentQueue="none"),
    ):
        world.see(found)
    world.see(make.hami_node(name="n", cards=make.cards(count=4)))
    labels = {names.KAI_QUEUE: "leaf"}
    world.see(make.pod(name="whole", labels=labels, cpu="1500m", memory="1Gi", gpu=1))
    world.see(make.pod(name="half", labels=labels, cpu="1", memory="1Gi", gpu=1, gpumem_percent=50))
    world.see(make.pod(name="more", labels=labels, cpu="1", memory="1Gi", gpu=1))
    world.decide()
    world.hands.write()
    conditions = [
        {"type": "Orphan", "status": "False", "lastTransitionTime": AT},
        {"type": "OverQuota", "status": "True", "lastTransitionTime": AT},
    ]
    held = {"cpu": "2500m", "memory": str(2 << 30), "nvidia.com/gpu": "1500m"}
    none = {"cpu": "0", "memory": "0", "nvidia.com/gpu": "0"}
    wanted = {
        "allocated": held,
        "allocatedNonPreemptible": none,
        "requested": {"cpu": "3500m", "memory": str(3 << 30), "nvidia.com/gpu": "2500m"},
        "conditions": conditions,
    }
    written = dict(world.reporter.statuses)
    path = "/apis/scheduling.run.ai/v2/queues"
    assert written[f"{path}/leaf"] == {**wanted, "childQueues": []}
    assert written[f"{path}/top"] == {**wanted, "childQueues": ["leaf"]}
    lost = written[f"{path}/lost"]
    assert lost["conditions"][0] == {"type": "Orphan", "status": "True", "lastTransitionTime": AT}
    assert len(world.reporter.statuses) == 3
    world.hands.write()
    assert len(world.reporter.statuses) == 3
    # The API server shows the status; what does not differ is not written, whatever the version.
    world.see(make_queue("leaf", parentQueue="top", version="2", status=written[f"{path}/leaf"]))
    world.hands.write()
    assert len(world.reporter.statuses) == 3
    # Who leads anew does not know what was written.
    world.hands.begin_term()
    world.hands.write()
    again = sorted(one for one, _ in world.reporter.statuses[3:])
    assert again == [f"{path}/lost", f"{path}/top"]


async def test_a_mistake_is_reported_once_and_stops_no_other_queue() -> None:
    world = World()
    await world.look()
    world.see(make_queue("right"))
    for _ in range(2):
        world.see(make_queue("wrong", priority="high"))
    ((name, kind, reason, note),) = world.reporter.events
    assert (name, kind, reason) == ("wrong", "Warning", "Misconfigured")
    assert note.startswith("spec.priority: ")
    world.see(make.node(name="n", gpus=1))
    for queue in ("right", "wrong"):
        world.see(make.pod(name=queue, labels={names.KAI_QUEUE: queue}, gpu=1))
    held = [one for one in world.decide() if isinstance(one, HeldByQueue)]
    assert [(one.uid, one.reason) for one in held] == [("default/wrong", "QueueDoesNotExist")]
    assert held[0].why == "QueueDoesNotExist: queue wrong, or one above it, has a mistake"
    # A queue that is mended starts pods again.
    world.see(make_queue("wrong"))
    world.see(make.node(name="n", gpus=2))
    assert world.decide() == []
    assert world.engine._cluster.pods["default/wrong"].node == "n"
    world.engine.handle(events.Gone("Queue.scheduling.run.ai", "wrong"), NOW)
    world.hands.hear(events.Gone("Queue.scheduling.run.ai", "wrong"), ())
    world.hands.write()
    assert not any(path.endswith("/wrong") for path, _ in world.reporter.statuses)


async def test_who_waits_for_quota_is_told_so_once_and_gets_no_condition() -> None:
    world = World()
    await world.look()
    world.see(make_queue("q"))
    world.see(make.node(name="n", gpus=9))
    labels = {names.KAI_QUEUE: "q"}
    world.see(make.pod(name="big", labels=labels, gpu=3))
    spec = {"minMember": 1, "queue": "q"}
    meta = wire.Meta(name="gang", namespace="default", uid="uid of gang")
    world.see(objects.KaiPodGroup(metadata=meta, spec=spec))
    member = make.pod(name="m", annotations={names.KAI_GROUP: "gang"}, gpu=3)
    world.see(member)
    held = [one for one in world.decide() if isinstance(one, HeldByQueue)]
    gang = GroupKey("PodGroup.scheduling.run.ai", "default", "gang")
    assert {one.group for one in held} == {None, gang}
    for one in held:
        world.groups.report_held(one)
    text = "OverLimit: queue q is limited to 2 of gpu: 0 are held, and 3 more are wanted"
    assert sorted(world.reporter.waiting) == [("big", text), ("gang", text)]
    ((name, status),) = world.reporter.statuses
    assert name == "gang"
    (condition,) = status["schedulingConditions"]
    assert (condition["reason"], condition["message"]) == ("OverLimit", text)
    # The same again, with other figures, is not said again.
    world.see(make.pod(name="small", labels=labels, gpu=1))
    assert [one for one in world.decide() if isinstance(one, HeldByQueue)] == []


async def test_as_long_as_kai_runs_nothing_in_its_queues_is_decided_and_nothing_written() -> None:
    world = World()
    world.see(make_queue("a"))
    world.see(make.node(name="n", gpus=3))
    labels = {names.KAI_QUEUE: "a"}
    for name in ("x", "y"):
        world.see(make.pod(name=name, labels=labels, gpu=1))
    # Before it is known whether KAI runs nothing is decided, and nothing said.
    assert world.decide() == []
    assert not world.hands.may_write()
    await world.look(
        make_kai_pod("grouper-1", "pod-grouper"),
        make_kai_pod("binder-1", "binder", "Succeeded"),
        make_kai_pod("scheduler-1", "scheduler"),
    )
    (held, _) = world.decide()
    assert isinstance(held, HeldByQueue)
    assert held == HeldByQueue(
        None,
        "default/x",
        "OtherSchedulerDecides",
        "OtherSchedulerDecides: KAI's pod scheduler-1 in namespace kai-scheduler runs; pods in queue a wait until it "
        "has stopped",
    )
    assert not world.hands.may_write()
    # Who is in no queue of KAI's is placed as always.
    world.see(make.pod(name="free", gpu=1))
    assert world.place() == ["default/free"]
    await world.look()
    assert world.place() == ["default/x", "default/y"]
    assert world.hands.may_write()
    # What waits for room waits on when KAI comes back, and nobody goes for it.
    world.see(make.pod(name="z", labels=labels, gpu=1))
    assert world.place() == []
    await world.look(make_kai_pod("queue-controller-1", "queue-controller", "Pending"))
    world.see(make.pod(name="w", labels=labels, gpu=1))
    assert world.place() == []
    await world.look()
    world.engine.handle(events.Gone("Pod", "default/x"), NOW)
    assert world.place() == ["default/z"]


async def test_a_stale_gang_is_left_to_kai_as_long_as_it_runs() -> None:
    world = World()
    world.see(make_queue("a"))
    world.see(make.node(name="n", gpus=1))
    meta = wire.Meta(name="gang", namespace="default", uid="uid of gang")
    world.see(objects.KaiPodGroup(metadata=meta, spec={"minMember": 2, "queue": "a"}))
    world.see(make.pod(name="m", annotations={names.KAI_GROUP: "gang"}, gpu=1, node="n"))
    await world.look(make_kai_pod("scheduler-1", "scheduler"))
    for seconds in range(0, 300, 50):
        assert not world.engine.decide(NOW + seconds, Unlimited()).evicts
    await world.look()
    gone = [
        uid
        for seconds in range(300, 600, 50)
        for one in world.engine.decide(NOW + seconds, Unlimited()).evicts
        for uid in one.victims
    ]
    assert gone[:1] == ["default/m"]
