"""The label of the replica that leads: what is written when, and what becomes of writes that fail."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from scheduler.errors import ApiError
from scheduler.kube import client
from scheduler.kube.lead import role
from scheduler.kube.lead.role import RoleLabel

KEY = "hami.io/scheduler-role"
OWN = {"app.kubernetes.io/name": "evenkeel", "app.kubernetes.io/instance": "one"}


class Api:
    """Pods by name with their labels; ``n_failures``: so many calls fail."""

    def __init__(self, **pods: dict[str, str]) -> None:
        self.pods = pods
        self.n_failures = 0
        self.written: list[tuple[str, str]] = []

    async def send(self, method: str, path: str, body: Any, *, content_type: str) -> bytes:
        assert (method, content_type) == ("PATCH", "application/merge-patch+json")
        self._fail()
        *_, name, part = path.split("/")
        assert part == "status"
        labels = body["metadata"]["labels"]
        self.pods[name].update(labels)
        self.written.append((name, labels[KEY]))
        return json.dumps({"metadata": {"labels": self.pods[name]}}).encode()

    async def get(self, path: str, params: Mapping[str, str]) -> Any:
        assert path == "/api/v1/namespaces/system/pods"
        self._fail()
        wanted = dict(one.split("=") for one in params["labelSelector"].split(","))
        found = [name for name, labels in self.pods.items() if wanted.items() <= labels.items()]
        return {"items": [{"metadata": {"name": name}} for name in found]}

    def _fail(self) -> None:
        if self.n_failures:
            self.n_failures -= 1
            raise ApiError(500, "InternalError", "no")


class Replica:
    def __init__(self, api: Any) -> None:
        self.is_leading = False
        self.label = RoleLabel(api, KEY, ("system", "a"), lambda: self.is_leading)
        self.task = asyncio.create_task(self.label.run())

    async def turn(self, *, leads: bool) -> None:
        self.is_leading = leads
        await asyncio.sleep(0.05)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(role, "_TURN_SECONDS", 0.001)
    monkeypatch.setattr(client, "get_backoff", lambda _: 0.001)


async def test_each_change_of_the_lead_is_written_once() -> None:
    api = Api(a=dict(OWN))
    replica = Replica(api)
    for leads in (False, True, True, False, True):
        await replica.turn(leads=leads)
    assert api.written == [("a", one) for one in ("follower", "leader", "follower", "leader")]
    replica.task.cancel()


async def test_a_leader_takes_the_label_from_pods_of_its_installation_only() -> None:
    led = {KEY: "leader"}
    api = Api(a=dict(OWN), dead=OWN | led, other={**OWN, "app.kubernetes.io/instance": "two"} | led)
    replica = Replica(api)
    await replica.turn(leads=False)
    assert api.pods["dead"][KEY] == "leader"
    await replica.turn(leads=True)
    assert {name: labels[KEY] for name, labels in api.pods.items()} == {
        "a": "leader",
        "dead": "follower",
        "other": "leader",
    }
    replica.task.cancel()


async def test_without_the_labels_of_an_installation_other_pods_are_left_alone() -> None:
    api = Api(a={}, b={KEY: "leader"})
    replica = Replica(api)
    await replica.turn(leads=True)
    assert api.written == [("a", "leader")]
    replica.task.cancel()


async def test_writes_that_fail_are_tried_again() -> None:
    api = Api(a=dict(OWN), dead=OWN | {KEY: "leader"})
    replica = Replica(api)
    api.n_failures = 3
    await replica.turn(leads=True)
    assert api.pods["a"][KEY] == "leader"
    # Once the own label is written, it is the list of the others that fails.
    await replica.turn(leads=False)
    api.pods["dead"][KEY] = "leader"
    api.n_failures = 2
    await replica.turn(leads=True)
    assert api.pods["dead"][KEY] == "follower"
    replica.task.cancel()


async def test_a_replica_that_stops_takes_its_label_off_and_need_not_reach_the_server() -> None:
    api = Api(a=dict(OWN))
    replica = Replica(api)
    await replica.turn(leads=True)
    replica.task.cancel()
    await replica.label.step_down()
    assert api.pods["a"][KEY] == "follower"
    api.n_failures = 1
    await replica.label.step_down()
