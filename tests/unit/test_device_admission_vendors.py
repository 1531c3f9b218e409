"""The webhook's parts for the vendors beside NVIDIA, against the cases that were compared with HAMi's own functions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.api.admission.settings import AdmissionSettings, follow_devices
from scheduler.api.hami_config.chart import CHART
from scheduler.api.hami_config.maps import DeviceSettings
from scheduler.api.hami_config.reading import read_config
from scheduler.devices.admission import steps, vendors
from scheduler.devices.admission.drafts import PodDraft
from scheduler.devices.vendors import table
from scheduler.errors import BadInput
from tests.model import vendor_cases as cases

Json = dict[str, Any]
MANIFESTS = Path(__file__).parents[2] / "manifests"
CONDITIONS = ("device-webhook/mutating.yaml", "chart/templates/_helpers.tpl")
FILES = [cases.read_vendor(path) for path in cases.FILES]
ADMISSIONS = [
    pytest.param(vendor, case, id=f"{vendor.vendor}: {case.name}")
    for vendor in FILES
    for case in vendor.admission
]


def write_container(case: cases.Container) -> Json:
    """The container as the API server shows it to the webhook: it requests what it limits."""
    env = [{"name": key, "value": value} for key, value in case.env.items()]
    resources = {
        "limits": dict(case.limits),
        "requests": {**case.limits, **case.requests},
    }
    return {"name": case.name, "resources": resources, **({"env": env} if env else {})}


def patch(found: Json, operations: list[Json]) -> Json:
    """Carry out a patch of additions, and let the container request what it limits."""
    for one in operations:
        assert one["op"] == "add"
        *path, last = (
            part.replace("~1", "/").replace("~0", "~") for part in one["path"].split("/")[1:]
        )
        place: Any = found
        for part in path:
            place = place[int(part) if isinstance(place, list) else part]
        if isinstance(place, list):
            assert last == "-"
            place.append(one["value"])
        else:
            place[last] = one["value"]
    for container in found["spec"]["containers"]:
        container["resources"]["requests"] = {
            **container["resources"]["limits"],
            **container["resources"]["requests"],
        }
    return found


@pytest.mark.parametrize(("vendor", "case"), ADMISSIONS)
def test_a_container_gets_what_hami_gives_it(vendor: cases.Vendor, case: cases.Admission) -> None:
    mutate = vendors.list_mutations(read_config(yaml.safe_dump(vendor.config)))[case.word]
    pod: Json = {
        "metadata": {"annotations": dict(case.pod.annotations)},
        "spec": {"containers": [write_container(case.container)]},
    }
    if case.pod.runtime_class:
        pod["spec"]["runtimeClassName"] = case.pod.runtime_class
    draft = PodDraft(json.dumps(pod).encode(), "default")
    (container,) = draft.containers
    if case.refused:
        # The field is named, or the annotation whose word is none of those that there are.
        with pytest.raises(BadInput, match=r"^(container |metadata\.annotations\[)"):
            mutate(container, draft, AdmissionSettings())
        return
    assert mutate(container, draft, AdmissionSettings()) == case.asks
    found = patch(pod, draft.list_operations())
    (made,) = found["spec"]["containers"]
    # What is only requested never comes to a webhook: the API server refuses it. HAMi's changes of limits hold here, too.
    limits = case.after.limits if case.after.limits is not None else case.container.limits
    assert made["resources"]["limits"] == limits
    assert made["resources"]["requests"] == {**case.container.requests, **limits}
    env = {one["name"]: one["value"] for one in made.get("env", [])}
    assert env == {**case.container.env, **(case.after.env or {})}
    assert found["metadata"]["annotations"] == {
        **case.pod.annotations,
        **(case.after.annotations or {}),
    }
    wanted = case.after.runtime_class or case.pod.runtime_class or None
    assert found["spec"].get("runtimeClassName") == wanted


def test_every_kind_of_device_has_a_part() -> None:
    words = {driver.name.removeprefix("HAMi ") for driver in table.list_drivers(CHART)}
    assert words == set(vendors.list_mutations(CHART))


def review(limits: dict[str, str], annotations: dict[str, str] | None = None) -> steps.Verdict:
    pod = {
        "metadata": {"name": "x", **({"annotations": annotations} if annotations else {})},
        "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]},
    }
    return steps.review_pod(
        json.dumps(pod).encode(), "default", AdmissionSettings(), steps.ClusterFacts()
    )


def test_a_pod_of_another_vendor_becomes_ours_and_gets_its_annotations() -> None:
    assert review({"metax-tech.com/sgpu": "1"}) == steps.Allowed(
        [
            {
                "op": "add",
                "path": "/metadata/annotations",
                "value": {"metax-tech.com/sgpu-qos-policy": "best-effort"},
            },
            {"op": "add", "path": "/spec/schedulerName", "value": "evenkeel"},
        ]
    )
    assert review({"metax-tech.com/sgpu": "1"}, {"a/b": "c"}) == steps.Allowed(
        [
            {
                "op": "add",
                "path": "/metadata/annotations/metax-tech.com~1sgpu-qos-policy",
                "value": "best-effort",
            },
            {"op": "add", "path": "/spec/schedulerName", "value": "evenkeel"},
        ]
    )


@pytest.mark.parametrize("amount", ["many", "1e999999999", "-1", "", "9" * 5000])
def test_an_amount_that_cannot_be_read_is_refused_with_container_and_resource(amount: str) -> None:
    for resource in (
        "mthreads.com/vgpu",
        "metax-tech.com/sgpu",
        "enflame.com/drs-gcu",
        "aws.amazon.com/neuron",
        "huawei.com/Ascend910B3",
        "iluvatar.ai/MR-V100-vgpu",
    ):
        found = review({resource: amount})
        assert isinstance(found, steps.Error)
        assert found.message.startswith(f"container main: {resource}")


@pytest.mark.parametrize("path", CONDITIONS)
def test_the_api_server_asks_about_the_resources_by_which_containers_ask_for_devices(
    path: str,
) -> None:
    """Pods that it does not ask about become nobody's; those that it asks about in vain depend on the webhook."""
    condition = (MANIFESTS / path).read_text().split("+ [", 1)[1].split("]", 1)[0]
    drivers = table.list_drivers(CHART)
    every = {one for driver in drivers for one in (*driver.resources, *driver.inner_resources)}
    asking = {one for one in every if review({one: "1"}) != steps.Allowed([])}
    assert set(re.findall(r"'([^']+)'", condition)) == asking


def test_other_vendors_are_admitted_by_the_configuration_that_is_followed() -> None:
    chips = tuple(
        one._replace(
            runtime_class="ascend", whole_mib=98304, capacity_mib=98304, cards="a.example/npu"
        )
        if one.word == "Ascend910B3"
        else one
        for one in CHART.vnpus
    )
    found = follow_devices(AdmissionSettings(), DeviceSettings(CHART._replace(vnpus=chips)))
    limits = {"a.example/npu": "1", "huawei.com/Ascend910B3-memory": "90000"}
    pod = {"spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]}}
    text = json.dumps(pod).encode()
    said = steps.review_pod(text, "default", found, steps.ClusterFacts())
    assert isinstance(said, steps.Allowed)
    written = {one["path"]: one["value"] for one in said.patch}
    assert written["/spec/runtimeClassName"] == "ascend"
    assert "98304" in json.dumps(written)
    assert steps.review_pod(
        text, "default", AdmissionSettings(), steps.ClusterFacts()
    ) == steps.Allowed([])
