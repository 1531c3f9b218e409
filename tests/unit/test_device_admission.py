"""What becomes of pods with devices while they are created.

Cases: HAMi (v2.10), ``pkg/scheduler/webhook_test.go`` and ``pkg/device/nvidia/device_test.go``, in our own words.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scheduler.api.admission.settings import AdmissionSettings, NvidiaAdmission
from scheduler.devices.admission.drafts import PodDraft
from scheduler.devices.admission.steps import Allowed, Denied, Error
from tests.unit.device_pods import DEFAULT, admit, make_container, make_pod, review

Json = dict[str, Any]
GPU, MEM, PERCENT, CORES, PRIORITY = (
    "nvidia.com/gpu",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
    "nvidia.com/priority",
)


def _of_nvidia(**changes: Any) -> AdmissionSettings:
    return AdmissionSettings(nvidia=NvidiaAdmission(**changes))


@pytest.mark.parametrize(
    ("limits", "wanted"),
    [
        # A number alone means whole cards.
        ({GPU: "1"}, {GPU: "1", CORES: "100"}),
        ({GPU: "2"}, {GPU: "2", CORES: "100"}),
        # Parts alone mean one card.
        ({MEM: "4096"}, {MEM: "4096", GPU: "1"}),
        ({CORES: "30"}, {CORES: "30", GPU: "1"}),
        ({PERCENT: "50"}, {PERCENT: "50", GPU: "1"}),
        # All memory of a card means the whole card.
        ({PERCENT: "100"}, {PERCENT: "100", GPU: "1", CORES: "100"}),
        ({GPU: "1", PERCENT: "100"}, {GPU: "1", PERCENT: "100", CORES: "100"}),
        ({GPU: "1", PERCENT: "100", MEM: "1"}, {GPU: "1", PERCENT: "100", MEM: "1", CORES: "100"}),
        ({GPU: "1", PERCENT: "99"}, {GPU: "1", PERCENT: "99"}),
        ({GPU: "1", PERCENT: "0"}, {GPU: "1", PERCENT: "0"}),
        ({GPU: "1", MEM: "8192"}, {GPU: "1", MEM: "8192"}),
        # What is said of cores stays.
        ({GPU: "1", CORES: "70"}, {GPU: "1", CORES: "70"}),
        ({GPU: "1", CORES: "0"}, {GPU: "1", CORES: "0"}),
        # A count of 0 is a count.
        ({GPU: "0"}, {GPU: "0", CORES: "100"}),
    ],
)
def test_what_a_container_gets(limits: Json, wanted: Json) -> None:
    spec = admit(make_pod(make_container(limits=limits)))
    assert spec["containers"][0]["resources"]["limits"] == wanted
    assert spec["schedulerName"] == "evenkeel"


@pytest.mark.parametrize("limits", [{}, None, {"cpu": "1"}, {PRIORITY: "1"}])
def test_a_pod_without_devices_keeps_its_scheduler(limits: Json | None) -> None:
    spec = admit(make_pod(make_container(limits=limits)))
    assert spec["schedulerName"] == "default-scheduler"
    assert GPU not in spec["containers"][0]["resources"].get("limits", {})


def test_what_is_only_requested() -> None:
    """The API server refuses such pods after the webhook."""
    part = {"name": "main", "resources": {"requests": {MEM: "1"}}}
    assert review(make_pod(part)) == Allowed([])
    whole = {"name": "main", "resources": {"requests": {GPU: "1"}}}
    assert admit(make_pod(whole))["containers"][0]["resources"]["limits"] == {CORES: "100"}
    said = {"name": "main", "resources": {"requests": {GPU: "1", CORES: "55"}}}
    assert review(make_pod(said)) == Allowed([])
    percent = {"name": "main", "resources": {"requests": {GPU: "1", PERCENT: "101"}}}
    assert isinstance(review(make_pod(percent)), Error)


def test_without_a_default_number_parts_ask_for_nothing() -> None:
    pod = make_pod(make_container(limits={MEM: "1"}))
    assert review(pod, _of_nvidia(default_count=0)) == Allowed([])
    spec = admit(pod, _of_nvidia(default_count=3))
    assert spec["containers"][0]["resources"]["limits"][GPU] == "3"


def test_other_names_of_resources() -> None:
    settings = _of_nvidia(count="a/gpu", memory="", memory_percent="a/percent", cores="a/cores")
    pod = make_pod(make_container(limits={"a/gpu": "1"}), make_container(limits={GPU: "1"}))
    first, second = admit(pod, settings)["containers"]
    assert first["resources"]["limits"] == {"a/gpu": "1", "a/cores": "100"}
    assert second["resources"]["limits"] == {GPU: "1"}
    no_cores = admit(pod, replace(settings, nvidia=replace(settings.nvidia, cores="")))
    assert no_cores["containers"][0]["resources"]["limits"] == {"a/gpu": "1"}


@pytest.mark.parametrize("percent", ["101", "150", "100.5", "1k", "-1", "half"])
def test_a_percentage_that_cannot_be(percent: str) -> None:
    verdict = review(make_pod(make_container(limits={GPU: "1", PERCENT: percent})))
    assert isinstance(verdict, Error)
    assert not verdict.is_unreadable
    assert verdict.message.startswith(f"container main: {PERCENT}: ")


@pytest.mark.parametrize("percent", ["0", "100", "99.5", "1e2", 100])
def test_a_percentage_that_can_be(percent: Any) -> None:
    assert isinstance(review(make_pod(make_container(limits={PERCENT: percent}))), Allowed)


def test_the_priority_becomes_a_variable() -> None:
    settings = _of_nvidia(priority="")
    pod = make_pod(make_container(limits={GPU: "1", PRIORITY: "5"}, env=[{"name": "A", "value": "1"}]))  # fmt: skip
    assert admit(pod)["containers"][0]["env"] == [
        {"name": "A", "value": "1"},
        {"name": "CUDA_TASK_PRIORITY", "value": "5"},
    ]
    assert admit(pod, settings)["containers"][0]["env"] == [{"name": "A", "value": "1"}]
    # HAMi gives it to containers without cards as well.
    alone = admit(make_pod(make_container(limits={PRIORITY: "1"})))
    assert alone["containers"][0]["env"] == [{"name": "CUDA_TASK_PRIORITY", "value": "1"}]


def test_the_core_policy_goes_to_every_container() -> None:
    pod = make_pod(make_container(limits={GPU: "1"}), make_container("b"))
    for container in admit(pod, _of_nvidia(core_policy="force"))["containers"]:
        assert container["env"] == [{"name": "GPU_CORE_UTILIZATION_POLICY", "value": "force"}]
    assert all("env" not in one for one in admit(pod)["containers"])


def test_cards_are_hidden_from_containers_without_any() -> None:
    pod = make_pod(make_container(limits={GPU: "1"}), make_container("b"))
    first, second = admit(pod, _of_nvidia(hides_cards=True))["containers"]
    assert "env" not in first
    assert second["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}]


def test_the_runtime_class_of_pods_with_cards() -> None:
    settings = _of_nvidia(runtime_class="nvidia")
    asks = make_container(limits={GPU: "1"})
    assert admit(make_pod(asks), settings)["runtimeClassName"] == "nvidia"
    assert admit(make_pod(asks, runtimeClassName="mine"), settings)["runtimeClassName"] == "mine"
    assert "runtimeClassName" not in admit(make_pod(make_container()), settings)
    assert "runtimeClassName" not in admit(make_pod(asks))


@pytest.mark.parametrize("container", [{"name": "a", "resources": {"limits": None}, "env": None},
    {"name": "a", "resources": {}}, {"name": "a", "resources": None}, {"name": "a"}])  # fmt: skip
def test_a_patch_makes_what_is_not_there(container: Json) -> None:
    settings = _of_nvidia(hides_cards=True)
    spec = admit(make_pod(container), settings)
    assert spec["containers"][0]["env"][0]["value"] == "none"
    requests = {**container, "resources": {**(container.get("resources") or {}), "requests": {GPU: "1"}}}  # fmt: skip
    spec = admit(make_pod(requests), settings)
    assert spec["containers"][0]["resources"]["limits"] == {CORES: "100"}


def test_a_pod_that_comes_a_second_time_stays_as_it_is() -> None:
    """Other webhooks may have it called again."""
    settings = _of_nvidia(hides_cards=True, core_policy="force", runtime_class="nvidia")
    pod = make_pod(make_container(limits={MEM: "1", PRIORITY: "1"}), make_container("b"))
    once = {"metadata": pod["metadata"], "spec": admit(pod, settings)}
    assert review(once, settings) == Allowed([])


def test_a_variable_that_another_value_follows_is_added_again() -> None:
    wanted = {"name": "CUDA_TASK_PRIORITY", "value": "1"}
    limits = {PRIORITY: "1"}
    other = {"name": "CUDA_TASK_PRIORITY", "value": "0"}
    pod = make_pod(make_container(limits=limits, env=[wanted, other]))
    assert admit(pod)["containers"][0]["env"] == [wanted, other, wanted]
    elsewhere = {"name": "CUDA_TASK_PRIORITY", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}
    pod = make_pod(make_container(limits=limits, env=[elsewhere]))
    assert admit(pod)["containers"][0]["env"] == [elsewhere, wanted]


# The order of the decisions.

_PRIVILEGED: Json = {"securityContext": {"privileged": True}}
_WRONG = {GPU: "1", PERCENT: "101"}


def test_a_pod_without_containers_is_denied_first() -> None:
    for scheduler in ("default-scheduler", "other"):
        assert review(make_pod(scheduler=scheduler)) == Denied("pod has no containers")
    assert review({"spec": {}}) == Denied("pod has no containers")
    assert review({}) == Denied("pod has no containers")


@pytest.mark.parametrize("scheduler", ["other", "hami-scheduler"])
def test_of_another_schedulers_pod_nothing_is_changed_or_refused(scheduler: str) -> None:
    container = make_container(limits=_WRONG, **_PRIVILEGED)
    pod = make_pod(container, scheduler=scheduler, nodeName="n1")
    assert review(pod, find_quota_excess=lambda _: "all of it") == Allowed([])


def test_default_scheduler_may_keep_its_pods() -> None:
    settings = AdmissionSettings(overwrites_default=False)
    pod = make_pod(make_container(limits={GPU: "1"}))
    assert review(pod, settings) == Allowed([])
    unnamed = make_pod(make_container(limits={GPU: "1"}), scheduler="")
    assert admit(unnamed, settings)["schedulerName"] == "evenkeel"


def test_our_names_stay_and_the_first_is_given() -> None:
    settings = AdmissionSettings(scheduler_names=("first", "second"))
    asks = make_container(limits={GPU: "1"})
    for scheduler, wanted in (("second", "second"), ("first", "first"), ("default-scheduler", "first"), ("", "first")):  # fmt: skip
        assert admit(make_pod(asks, scheduler=scheduler), settings)["schedulerName"] == wanted
    in_place = AdmissionSettings(scheduler_names=("evenkeel", "default-scheduler"), overwrites_default=False)  # fmt: skip
    assert admit(make_pod(asks), in_place)["schedulerName"] == "default-scheduler"


def test_pods_of_another_scheduler_are_taken_over_when_told() -> None:
    settings = AdmissionSettings(taken_over=("hami-scheduler",))
    asks = make_pod(make_container(limits={MEM: "1"}), scheduler="hami-scheduler")
    spec = admit(asks, settings)
    assert spec["schedulerName"] == "evenkeel"
    assert spec["containers"][0]["resources"]["limits"][GPU] == "1"
    # Nobody would place it otherwise.
    plain = make_pod(make_container(), scheduler="hami-scheduler", nodeName="n1")
    assert admit(plain, settings)["schedulerName"] == "evenkeel"
    assert review(make_pod(make_container(limits=_WRONG), scheduler="other"), settings) == Allowed([])  # fmt: skip


def test_what_cannot_be_comes_before_privileged_containers() -> None:
    pod = make_pod(make_container(limits=_WRONG, **_PRIVILEGED))
    assert isinstance(review(pod), Error)


@pytest.mark.parametrize("key", ["containers", "initContainers"])
def test_privileged_containers_get_no_devices_near_them(key: str) -> None:
    asks, privileged = make_container(limits={GPU: "1"}), make_container("bad", **_PRIVILEGED)
    pod = make_pod(asks, nodeName="n1")
    pod["spec"][key] = [*pod["spec"].get(key, []), privileged]
    over = review(pod, find_quota_excess=lambda _: "all of it")
    assert over == Denied("container bad is privileged")
    # The one without devices is none of our business.
    assert review(make_pod(make_container("bad", **_PRIVILEGED))) == Allowed([])
    for unset in (None, {}, {"privileged": None}, {"privileged": False}):
        pod["spec"][key][-1] = make_container("good", securityContext=unset)
        assert review(pod) == Denied("pod has node assigned")


def test_init_containers_come_first() -> None:
    wrong, other = make_container("app", _WRONG), make_container("init", {PERCENT: "102"})
    verdict = review(make_pod(wrong, initContainers=[other]))
    assert isinstance(verdict, Error)
    assert verdict.message.startswith("container init: ")
    spec = admit(make_pod(make_container(), initContainers=[make_container("i", {MEM: "1"})]))
    assert spec["initContainers"][0]["resources"]["limits"][GPU] == "1"
    assert spec["schedulerName"] == "evenkeel"


def test_a_pod_on_a_node_gets_no_devices() -> None:
    pod = make_pod(make_container(limits={GPU: "1"}), nodeName="n1")
    assert review(pod, find_quota_excess=lambda _: "all of it") == Denied("pod has node assigned")
    assert review(make_pod(make_container(), nodeName="n1")) == Allowed([])


def test_the_quota_comes_last_and_sees_the_pod_as_it_will_be() -> None:
    seen: list[tuple[str, str, int | None]] = []

    def find(pod: PodDraft) -> str:
        (container,) = pod.containers
        seen.append((pod.namespace, pod.scheduler_name, container.read_resource(GPU)))
        return "limits.nvidia.com/gpumem"

    pod = make_pod(make_container(limits={MEM: "1"}))
    wanted = Denied("exceeding resource quota: limits.nvidia.com/gpumem")
    assert review(pod, DEFAULT, find) == wanted
    # Every pod is asked about, as in HAMi.
    assert review(make_pod(make_container()), DEFAULT, find) == wanted
    assert seen == [("team", "evenkeel", 1), ("team", "default-scheduler", None)]


@pytest.mark.parametrize("pod", [None, [], "x", {"spec": []}, {"spec": {"containers": {}}},
    {"spec": {"containers": [{"resources": {"limits": {GPU: True}}}]}}])  # fmt: skip
def test_what_is_no_pod(pod: Any) -> None:
    verdict = review(pod)
    assert isinstance(verdict, Error)
    assert verdict.is_unreadable
    assert verdict.message.startswith("pod: cannot be read: ")
