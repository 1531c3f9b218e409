"""Objects of queues stay while others use them, and go when nobody does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from scheduler.api import kinds, kueue, names, wire
from scheduler.api.door import events
from scheduler.api.groups import objects
from scheduler.api.kind import Kind
from scheduler.api.kinds import BY_KIND
from scheduler.api.queues.settings import QueueSettings
from scheduler.config import Config
from scheduler.engine.engine import Engine
from scheduler.engine.questions.queues import IsObjectInUse
from scheduler.errors import ApiError
from scheduler.kube.queues import finalizers
from scheduler.kube.queues.finalizers import Finalizers

Json = dict[str, Any]
TOPOLOGY = str(objects.KueueTopology.__struct_config__.tag)
GONE = "2027-01-15T08:00:00Z"


class Stage:
    """Finalizers, and the API server that gets them; ``used``: the objects that are in use."""

    def __init__(self) -> None:
        self.used: set[tuple[str, str]] = set()
        self.written: list[tuple[str, list[str]]] = []
        self.may_write, self.answers = True, list[int]()
        me: Any = self
        self.finalizers = Finalizers(me, me, find_kind=find_kind, may_write=lambda: self.may_write)

    def ask(self, question: IsObjectInUse) -> bool:
        return (question.kind, question.key) in self.used

    async def send(self, method: str, path: str, body: Json, *, content_type: str) -> None:
        assert (method, content_type) == ("PATCH", "application/merge-patch+json")
        meta = body["metadata"]
        assert set(body) == {"metadata"}
        assert (meta["uid"], meta["resourceVersion"]) == ("u", "7")
        self.written.append((path.partition("/v1beta2/")[2], meta["finalizers"]))
        if self.answers:
            raise ApiError(self.answers.pop(0), "", "")

    def see(self, kind: str, *held: str, goes: bool = False, **more: Any) -> None:
        meta = wire.GuardedMeta(
            name="x",
            uid="u",
            resource_version="7",
            finalizers=list(held) or None,
            deletion_timestamp=GONE if goes else None,
            **more,
        )
        self.finalizers.see(kind, meta)

    async def wait(self) -> list[tuple[str, list[str]]]:
        """Wait a moment; return what was written."""
        before = len(self.written)
        await asyncio.sleep(0.03)
        return self.written[before:]


def find_kind(name: str) -> Kind:
    return next(one for some in BY_KIND.values() for one in some if one.name == name)


@pytest.fixture
async def stage(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setattr(finalizers, "_SECONDS", 0.002)
    monkeypatch.setattr(finalizers, "_MOST_SECONDS", 0.004)
    made = Stage()
    running = asyncio.create_task(made.finalizers.run())
    yield made
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("ClusterQueue", "clusterqueues/x"),
        ("ResourceFlavor", "resourceflavors/x"),
        ("AdmissionCheck", "admissionchecks/x"),
        (TOPOLOGY, "topologies/x"),
    ],
)
async def test_what_others_may_use_is_kept_until_nobody_uses_it(
    stage: Stage, kind: str, path: str
) -> None:
    stage.used.add((kind, "x"))
    stage.see(kind, "of/another")
    assert await stage.wait() == [(path, ["of/another", names.KUEUE_IN_USE])]
    stage.see(kind, "of/another", names.KUEUE_IN_USE)
    stage.see(kind, "of/another", names.KUEUE_IN_USE, goes=True)
    assert await stage.wait() == []
    stage.used.clear()
    assert await stage.wait() == [(path, ["of/another"])]


async def test_what_goes_and_was_never_kept_gets_no_finalizer(stage: Stage) -> None:
    stage.see("ClusterQueue", "of/another", goes=True)
    assert await stage.wait() == []


async def test_a_workload_is_let_go_that_nobody_owns(stage: Stage) -> None:
    work = kinds.WORKLOADS.name
    stage.see(work)
    owner = [wire.Owner(kind="Job", name="j", uid="j")]
    stage.see(work, names.KUEUE_IN_USE, goes=True, owner_references=owner)
    assert await stage.wait() == []
    stage.see(work, names.KUEUE_IN_USE, goes=True, namespace="a")
    assert await stage.wait() == [("namespaces/a/workloads/x", [])]


async def test_nothing_is_written_while_another_controller_manages_the_queues(
    stage: Stage,
) -> None:
    stage.may_write = False
    stage.see("ClusterQueue")
    assert await stage.wait() == []
    stage.may_write = True
    assert len(await stage.wait()) == 1


async def test_after_a_conflict_the_newer_version_is_waited_for(stage: Stage) -> None:
    stage.answers = [409]
    stage.see("ClusterQueue")
    assert len(await stage.wait()) == 1
    assert await stage.wait() == []


async def test_a_refused_write_is_tried_again(stage: Stage) -> None:
    stage.answers = [500, 403]
    stage.see("ClusterQueue")
    assert len(await stage.wait()) == 3


async def test_what_is_gone_is_forgotten(stage: Stage) -> None:
    stage.may_write = False
    stage.see("ClusterQueue")
    stage.finalizers.drop("ClusterQueue", "x")
    stage.may_write = True
    assert await stage.wait() == []


def make_queue() -> kueue.ClusterQueue:
    quota = {"name": "cpu", "nominalQuota": "1"}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "plain", "resources": [quota]}]}
    checks = {"admissionChecks": [{"name": "budget"}]}
    return kueue.ClusterQueue(
        metadata=wire.GuardedMeta(name="q"),
        spec={"resourceGroups": [group], "admissionChecksStrategy": checks},
    )


def test_the_engine_knows_who_uses_what() -> None:
    engine = Engine(Config(queues=QueueSettings(kueue=True)))
    spec = {"nodeLabels": {"a": "b"}, "topologyName": "racks"}
    flavor = kueue.ResourceFlavor(metadata=wire.GuardedMeta(name="plain"), spec=spec)
    asked = [
        ("ResourceFlavor", "plain"),
        ("AdmissionCheck", "budget"),
        (TOPOLOGY, "racks"),
        ("ClusterQueue", "q"),
        ("Cohort", "q"),
    ]

    def ask() -> list[bool]:
        return [engine.ask(IsObjectInUse(*one)) for one in asked]

    assert ask() == [False] * 5
    engine.handle(events.Seen(flavor), 0.0)
    assert ask() == [False, False, True, False, False]
    engine.handle(events.Seen(make_queue()), 0.0)
    assert ask() == [True, True, True, False, False]
    engine.handle(events.Gone("ClusterQueue", "q"), 0.0)
    engine.handle(events.Gone("ResourceFlavor", "plain"), 0.0)
    assert ask() == [False] * 5
