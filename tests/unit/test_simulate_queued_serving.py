"""What serves and names a queue, in a simulation: its pods wait in it, as the webhook has it."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.simulate import schedule
from tests.unit.test_simulate_queued import QUEUE, make_template, make_world

Json = dict[str, Any]


def make(kind: str, name: str, spec: Json, version: str = "apps/v1") -> Json:
    meta = {"name": name, "namespace": "team", "labels": QUEUE}
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}


def make_set(kind: str, gpus: int = 2) -> Json:
    template = make_template(gpus) | {"metadata": {"labels": {"app": "web"}}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return make(kind, "web", spec)


@pytest.mark.parametrize(("kind", "n_placed"), [("Deployment", 2), ("StatefulSet", 0)])
def test_pods_of_what_names_a_queue_wait_for_quota(kind: str, n_placed: int) -> None:
    """Those of a StatefulSet wait as one."""
    found = schedule([*make_world(5), make_set(kind)], strict=True)
    assert sum(pod["node"] is not None for pod in found["pods"]) == n_placed
    assert len(found["workloads"]) == (3 if kind == "Deployment" else 1)
    (told,) = (one for one in found["warnings"] if f"{kind} team/web" in one)
    assert "names a queue, so new pods wait for quota, as the webhook has it" in told
    found = schedule([*make_world(6), make_set(kind)], strict=True)
    assert all(one["node"] for one in found["pods"])


def test_the_pods_of_each_replica_wait_as_one() -> None:
    pair = {"size": 2, "leaderTemplate": make_template(), "workerTemplate": make_template()}
    spec = {"replicas": 2, "leaderWorkerTemplate": pair}
    lws = make("LeaderWorkerSet", "lws", spec, "leaderworkerset.x-k8s.io/v1")
    found = schedule([*make_world(3), lws], strict=True)
    assert sorted(one["state"] for one in found["workloads"]) == ["admitted", "waits"]
    assert sum(pod["node"] is not None for pod in found["pods"]) == 2


def test_what_names_no_queue_needs_no_quota() -> None:
    web = make_set("Deployment")
    del web["metadata"]["labels"]
    found = schedule([*make_world(0), web], strict=True)
    assert not found["workloads"]
    assert all(one["node"] for one in found["pods"])
