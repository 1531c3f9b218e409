"""Reviews of pods with devices, as the API server sends them and reads them, and the configuration that they need."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
import yaml

from scheduler import config
from scheduler.api import kinds
from scheduler.api.admission.settings import (
    AdmissionSettings,
    DeviceWebhookSettings,
    NvidiaAdmission,
)
from scheduler.api.queues.settings import WebhookSettings
from scheduler.config import parse_config
from scheduler.devices.admission.steps import ClusterFacts
from scheduler.errors import BadInput
from scheduler.kube.report.metrics.reviews import ReviewCounts
from scheduler.kube.webhook import devices, reviews
from scheduler.kube.webhook.devices import DeviceAdmission
from scheduler.kube.webhook.keeping import Pair
from scheduler.kube.webhook.server import ReviewServer
from scheduler.kube.webhook.webhook import Answers
from tests.unit.device_pods import make_container, make_pod
from tests.unit.test_webhook_server import make_certificates, make_trust
from tests.unit.webhook_reviews import write_review

Json = dict[str, Any]
_MANIFESTS = Path(__file__).parents[2] / "manifests" / "device-webhook"
_ADMISSION = DeviceAdmission(AdmissionSettings())
_MEM = {"nvidia.com/gpumem": "1"}


def _answer(found: Any, admission: DeviceAdmission = _ADMISSION) -> Json:
    made = devices.answer_pod(write_review(kinds.PODS, found), admission)
    response: Json = msgspec.json.decode(made.body)["response"]
    return response


def test_a_patch_and_none() -> None:
    changed = _answer(make_pod(make_container(limits=_MEM)))
    assert (changed["allowed"], changed["patchType"]) == (True, "JSONPatch")
    assert msgspec.json.decode(base64.b64decode(changed["patch"])) == [
        {"op": "add", "path": "/spec/containers/0/resources/limits/nvidia.com~1gpu", "value": "1"},
        {"op": "add", "path": "/spec/schedulerName", "value": "evenkeel"},
    ]
    assert _answer(make_pod(make_container())) == {"uid": "u1", "allowed": True}


def test_refusals() -> None:
    pod = make_pod(make_container(limits=_MEM), nodeName="n1")
    status = _answer(pod)["status"]
    assert (status["code"], status["reason"]) == (403, "Forbidden")
    assert status["message"] == "Pod team/x: pod has node assigned"
    wrong = _answer(make_pod(make_container(limits={"nvidia.com/gpumem-percentage": "101"})))
    assert wrong["allowed"] is False
    assert wrong["status"]["code"] == 500
    assert "within 0..100" in wrong["status"]["message"]
    assert _answer({"spec": 1})["status"]["code"] == 400
    over = DeviceAdmission(AdmissionSettings(), ClusterFacts(lambda pod: f"all of {pod.namespace}"))
    status = _answer(make_pod(make_container()), over)["status"]
    assert status["message"] == "Pod team/x: exceeding resource quota: all of team"


def test_what_a_tenant_writes_cannot_write_a_second_line() -> None:
    pod = make_pod(make_container("a\nb\u202e", _MEM, securityContext={"privileged": True}))
    assert _answer(pod)["status"]["message"] == r"Pod team/x: container a\nb\u202e is privileged"


def test_other_objects_are_let_in() -> None:
    assert _answer(None) == {"uid": "u1", "allowed": True}
    made = devices.answer_pod(write_review(kinds.JOBS, {"spec": 1}), _ADMISSION)
    assert msgspec.json.decode(made.body)["response"]["allowed"] is True
    with pytest.raises(reviews.NotReview):
        devices.answer_pod(b"{}", _ADMISSION)


async def test_it_is_served_alone_and_beside_queues() -> None:
    made = make_certificates()
    counts = ReviewCounts()
    server = ReviewServer(Answers(of_devices=_ADMISSION).list_by_path(), counts)
    server.use(Pair(made.certificate, made.key))
    await server.start("127.0.0.1", 0)
    connector = aiohttp.TCPConnector(ssl=make_trust(made))
    body = write_review(kinds.PODS, make_pod(make_container(limits=_MEM)))
    try:
        async with aiohttp.ClientSession(connector=connector) as session:
            root = f"https://localhost:{server.port}"
            async with session.post(f"{root}/mutate-device-pods", data=body) as answer:
                assert "patch" in (await answer.json())["response"]
            async with session.post(f"{root}/mutate", data=body) as answer:
                assert answer.status == 404
    finally:
        await server.stop()
    counted, _ = counts.collect()
    found = {tuple(one.labels.values()): one.value for one in counted.samples if one.value}
    assert found == {("mutate-device-pods", "changed"): 1}


# The configuration.


def test_without_settings_nothing_is_served() -> None:
    assert parse_config({}).webhook is None
    assert parse_config({"deviceWebhook": None}).webhook is None


def test_the_fields_are_hamis() -> None:
    nvidia = {
        "resourceCountName": "a/b", "resourceMemoryName": "", "resourceMemoryPercentageName": "a/c",
        "resourceCoreName": "a/d", "resourcePriorityName": "a/e", "defaultGPUNum": 2, "gpuCorePolicy": "force",
        "runtimeClassName": "nvidia", "overwriteEnv": True,
    }  # fmt: skip
    given = {"port": 1, "takeOver": ["hami-scheduler"], "forceOverwriteDefaultScheduler": False, "nvidia": nvidia}  # fmt: skip
    made = parse_config({"deviceWebhook": given})
    assert made.device_webhook == DeviceWebhookSettings(
        serving=WebhookSettings(port=1),
        admission=AdmissionSettings(
            overwrites_default=False,
            taken_over=("hami-scheduler",),
            nvidia=NvidiaAdmission(
                count="a/b", memory="", memory_percent="a/c", cores="a/d", priority="a/e",
                default_count=2, core_policy="force", runtime_class="nvidia", hides_cards=True,
            ),
        ),
    )  # fmt: skip
    assert made.webhook is not None
    assert made.webhook.list_configurations() == [
        (kinds.MUTATING_WEBHOOKS, "evenkeel-webhook-devices")
    ]
    empty = parse_config({"deviceWebhook": {"nvidia": {"gpuCorePolicy": ""}}})
    assert empty.device_webhook == DeviceWebhookSettings()


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"ports": 1}, "deviceWebhook.ports"),
        ({"port": -1}, "deviceWebhook.port"),
        ({"takeOver": "hami-scheduler"}, "deviceWebhook.takeOver"),
        ({"takeOver": ["a", "default-scheduler"]}, "deviceWebhook.takeOver[1]"),
        ({"forceOverwriteDefaultScheduler": 1}, "deviceWebhook.forceOverwriteDefaultScheduler"),
        ({"nvidia": {"resourceName": "a/b"}}, "deviceWebhook.nvidia.resourceName"),
        ({"nvidia": {"resourceCountName": ""}}, "deviceWebhook.nvidia.resourceCountName"),
        ({"nvidia": {"resourceCoreName": "cores"}}, "deviceWebhook.nvidia.resourceCoreName"),
        ({"nvidia": {"defaultGPUNum": -1}}, "deviceWebhook.nvidia.defaultGPUNum"),
        ({"nvidia": {"gpuCorePolicy": "maybe"}}, "deviceWebhook.nvidia.gpuCorePolicy"),
        ({"nvidia": {"runtimeClassName": "A"}}, "deviceWebhook.nvidia.runtimeClassName"),
        ({"nvidia": {"overwriteEnv": "true"}}, "deviceWebhook.nvidia.overwriteEnv"),
    ],
)
def test_mistakes_are_named(given: Json, field: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_config({"deviceWebhook": given})
    assert refused.value.field == field


def test_one_server_serves_queues_and_devices() -> None:
    queues = {"kueue": True, "webhook": {"port": 1}}
    made = parse_config({"queues": queues, "deviceWebhook": {"port": 1}}).webhook
    assert made is not None
    assert (made.for_queues, made.for_devices) == (True, True)
    assert [name for _, name in made.list_configurations()] == [
        "evenkeel-webhook", "evenkeel-webhook", "evenkeel-webhook-devices",
    ]  # fmt: skip
    with pytest.raises(BadInput, match=r"deviceWebhook\.port: 2 is not that of queues\.webhook"):
        parse_config({"queues": queues, "deviceWebhook": {"port": 2}})


def test_the_manifests_ask_for_what_the_settings_name() -> None:
    """Pods that the API server does not ask about get nothing."""
    given = yaml.safe_load((_MANIFESTS / "config.yaml").read_text())
    made = config.parse_config(given)
    assert made.device_webhook == DeviceWebhookSettings()
    hooks = yaml.safe_load((_MANIFESTS / "mutating.yaml").read_text())
    assert made.webhook is not None
    assert made.webhook.list_configurations() == [
        (kinds.MUTATING_WEBHOOKS, hooks["metadata"]["name"])
    ]
    (hook,) = hooks["webhooks"]
    conditions = {one["name"]: one["expression"] for one in hook["matchConditions"]}
    nvidia = made.device_webhook.admission.nvidia
    names = nvidia.count, nvidia.memory, nvidia.memory_percent, nvidia.cores
    assert f"[{', '.join(map(repr, names))}]" in conditions["devices"]
    assert conditions["ours"].endswith(f"['default-scheduler', '{made.scheduler_name}']")
