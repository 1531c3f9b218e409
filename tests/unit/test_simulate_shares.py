"""Pods that request a share of a GPU in neutral words are simulated as the webhook would write them."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from scheduler import cli
from scheduler.api import names
from scheduler.api.admission.settings import DeviceWebhookSettings
from scheduler.config import Config
from scheduler.simulate.reading.inventory import InputProblem
from scheduler.simulate.run import schedule
from tests import make

Json = dict[str, Any]
_WITH = Config(device_webhook=DeviceWebhookSettings())
_LABELS = {"nvidia.com/gpu.count": "1", "nvidia.com/mig-1g.10gb.memory": "9856", "nvidia.com/mig-1g.10gb.count": "7"}  # fmt: skip


def _make_pod(name: str = "p", **limits: str) -> Json:
    named = {f"evenkeel.dev/{key.replace('_', '-')}": text for key, text in limits.items()}
    body = {"name": "main", "image": "x", "resources": {"limits": named}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": "evenkeel", "containers": [body]},
    }


def _make_deployment(replicas: int, **limits: str) -> Json:
    spec = _make_pod(**limits)["spec"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": spec},
        },
    }


def _make_nodes() -> list[Json]:
    hami = make.raw(make.hami_node(name="shared", cards=1, cpu="64"))
    mig = make.raw(
        make.node(name="cut", cpu=64, labels=_LABELS, allocatable={"nvidia.com/mig-1g.10gb": 7})
    )
    return [{"apiVersion": "v1", "kind": "Node"} | one for one in (hami, mig)]


def test_a_share_becomes_one_of_a_card() -> None:
    found = schedule([*_make_nodes(), _make_pod(gpu_memory="8Gi")], config=_WITH)
    (row,) = found["pods"]
    assert row["node"] == "shared"
    assert [one["memoryMiB"] for one in row["devices"]] == [8192]
    assert found["mistakes"] == []


def test_pods_of_a_workload_are_written_anew_each() -> None:
    """A T4 has room for one share of 8 GiB; the second pod waits for this way, as in a cluster."""
    found = schedule([*_make_nodes(), _make_deployment(2, gpu_memory="8Gi")], config=_WITH)
    assert [row["node"] for row in found["pods"]] == ["shared", None]


def test_without_the_webhook_such_pods_wait() -> None:
    found = schedule([*_make_nodes(), _make_pod(gpu_memory="8Gi")])
    (row,) = found["pods"]
    assert row["node"] is None
    assert "evenkeel.dev/gpu-memory" in row["message"]


def test_a_share_that_no_node_has_is_a_mistake_of_the_object() -> None:
    given = [*_make_nodes(), _make_deployment(2, gpu_memory="800Gi")]
    found = schedule(given, config=_WITH)
    (mistake,) = found["mistakes"]
    assert mistake["object"] == "Deployment default/d"
    assert "800Gi: no share on any node suffices" in mistake["problem"]
    assert [row["node"] for row in found["pods"]] == [None, None]
    with pytest.raises(InputProblem, match="no share on any node suffices"):
        schedule(given, config=_WITH, strict=True)


@pytest.mark.parametrize("there", ["created", "placed"])
def test_pods_that_are_in_a_cluster_stay_as_they_are(there: str) -> None:
    pod = _make_pod(gpu_memory="8Gi")
    if there == "created":
        pod["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    else:
        pod["spec"]["nodeName"] = "shared"
    found = schedule([*_make_nodes(), pod, _make_pod("q", gpu_memory="15360Mi")], config=_WITH)
    rows = {row["name"]: row for row in found["pods"]}
    assert rows["q"]["node"] == "shared"
    assert "p" not in rows or rows["p"]["node"] is None


def test_kais_words_are_read_as_well() -> None:
    pod = _make_pod()
    pod["metadata"]["annotations"] = {names.KAI_FRACTION: "0.5"}
    (row,) = schedule([*_make_nodes(), pod], config=_WITH)["pods"]
    assert [one["memoryMiB"] for one in row["devices"]] == [make.T4_MIB // 2]


def test_the_command_answers_for_pods_that_the_webhook_would_refuse(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("deviceWebhook: {}\n")
    given = {"apiVersion": "v1", "kind": "List", "items": [*_make_nodes(), _make_pod("p", gpu_memory="800Gi"), _make_pod("q", gpu_memory="8Gi")]}  # fmt: skip
    of = ["simulate", "-f", "-", "--config", str(config), "-o", "json"]
    found = CliRunner().invoke(cli.app, of, input=json.dumps(given))
    rows = {row["name"]: row for row in json.loads(found.stdout)["pods"]}
    assert (rows["p"]["node"], rows["q"]["node"]) == (None, "shared")
    assert "800Gi: no share on any node suffices" in rows["p"]["message"]
