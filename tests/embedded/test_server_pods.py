from collections.abc import Callable
from typing import Any

import pytest

from tests.embedded.conftest import Api


async def test_a_new_pod_has_the_defaults_a_scheduler_reads(api: Api) -> None:
    made = await api.made(
        api.pods,
        {
            "metadata": {"name": "p"},
            "spec": {
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "ports": [{"containerPort": 80, "hostPort": 8080}],
                        "resources": {
                            "limits": {"cpu": "0.5", "memory": "1024Mi", "nvidia.com/gpu": 1},
                            "requests": {"cpu": "100m"},
                        },
                    }
                ],
                "initContainers": [
                    {"name": "i", "image": "i:1", "resources": {"limits": {"cpu": 1}}}
                ],
            },
            "status": {"phase": "Running"},
        },
    )
    spec = made["spec"]
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["restartPolicy"] == "Always"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert spec["containers"][0]["resources"] == {
        "limits": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "1"},
        "requests": {"cpu": "100m", "memory": "1Gi", "nvidia.com/gpu": "1"},
    }
    assert spec["initContainers"][0]["resources"]["requests"] == {"cpu": "1"}
    assert spec["containers"][0]["ports"][0]["protocol"] == "TCP"
    assert spec["containers"][0]["imagePullPolicy"] == "Always"
    assert spec["initContainers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert spec["tolerations"] == [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }
        for key in ("not-ready", "unreachable")
    ]
    assert made["status"] == {"phase": "Pending", "qosClass": "Burstable"}
    assert made["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("0.5", "500m"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("2", "2"),
        (2, "2"),
        (0.25, "250m"),
        ("1e3", "1e3"),
        ("100k", "100k"),
        ("1000k", "1M"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("512Ki", "512Ki"),
        ("0.5Ki", "512"),
        ("1000Mi", "1000Mi"),
        ("1048576", "1048576"),
        ("0", "0"),
        ("0Mi", "0"),
        ("1n", "1m"),
        ("1500u", "2m"),
        ("12345678900", "12345678900"),
        ("5000000", "5M"),
    ],
)
async def test_quantities_are_stored_in_their_canonical_form(
    api: Api, written: Any, stored: str
) -> None:
    container = {"name": "c", "image": "i:1", "resources": {"requests": {"memory": written}}}
    made = await api.pod(containers=[container])
    assert made["spec"]["containers"][0]["resources"]["requests"]["memory"] == stored


async def test_a_toleration_of_ones_own_is_not_doubled(api: Api) -> None:
    mine = {"operator": "Exists"}
    made = await api.pod(tolerations=[mine])
    assert made["spec"]["tolerations"] == [mine]


async def test_gates_show_in_the_condition(api: Api) -> None:
    made = await api.pod(schedulingGates=[{"name": "test.dev/wait"}])
    (condition,) = made["status"]["conditions"]
    assert condition["type"] == "PodScheduled"
    assert condition["status"] == "False"
    assert condition["reason"] == "SchedulingGated"
    assert condition["message"] == "Scheduling is blocked due to non-empty scheduling gates"


async def test_priority_comes_from_its_class(api: Api, unique: Callable[[str], str]) -> None:
    name = unique("high")
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    body = {"metadata": {"name": name}, "value": 1000, "preemptionPolicy": "Never"}
    await api.cluster_wide(classes, body)
    # The real server's admission reads classes from a cache that may be a moment behind.
    for _ in range(20):
        reply = await api.post(api.pods, _pod("a", priorityClassName=name))
        if reply.code == 201:
            break
    assert (reply["spec"]["priority"], reply["spec"]["preemptionPolicy"]) == (1000, "Never")
    reply = await api.post(api.pods, _pod("b", priorityClassName="nope"))
    assert (reply.code, reply["reason"]) == (403, "Forbidden")
    assert reply["message"] == ('pods "b" is forbidden: no PriorityClass with name nope was found')
    made = await api.pod("c", priorityClassName="system-node-critical")
    assert made["spec"]["priority"] == 2_000_001_000
    reply = await api.post(api.pods, _pod("d", priority=5))
    assert (reply.code, "must not be provided in pod spec" in reply["message"]) == (403, True)


def _pod(name: str, **spec: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i:1"}], **spec}
    return {"metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"containers": []}, "spec.containers: Required value"),
        ({"containers": [{"name": "c"}]}, "spec.containers[0].image: Required value"),
        ({"containers": [{"image": "i"}]}, "spec.containers[0].name: Required value"),
        (
            {"containers": [{"name": "c", "image": "i"}, {"name": "c", "image": "i"}]},
            'spec.containers[1].name: Duplicate value: "c"',
        ),
    ],
)
async def test_pods_without_the_essentials_are_refused(api: Api, spec: Any, text: str) -> None:
    reply = await api.post(api.pods, {"metadata": {"name": "p"}, "spec": spec})
    assert (reply.code, reply["reason"]) == (422, "Invalid")
    assert text in reply["message"]


@pytest.mark.parametrize(
    ("resources", "text"),
    [
        (
            {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
            (
                'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal'
                " to cpu limit of 1"
            ),
        ),
        (
            {"limits": {"nvidia.com/gpu": 2}, "requests": {"nvidia.com/gpu": 1}},
            (
                'spec.containers[0].resources.requests: Invalid value: "1": must be equal to'
                " nvidia.com/gpu limit of 2"
            ),
        ),
        (
            {"requests": {"nvidia.com/gpu": 1}},
            (
                "spec.containers[0].resources.limits: Required value: Limit must be set for non"
                " overcommitable resources"
            ),
        ),
        (
            {"limits": {"nvidia.com/gpu": "0.5"}},
            (
                'spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "500m": must be'
                " an integer"
            ),
        ),
        (
            {"limits": {"cpu": "-1"}},
            (
                'spec.containers[0].resources.limits[cpu]: Invalid value: "-1": must be greater than'
                " or equal to 0"
            ),
        ),
    ],
)
async def test_senseless_resources_are_refused(api: Api, resources: Any, text: str) -> None:
    container = {"name": "c", "image": "i:1", "resources": resources}
    reply = await api.post(api.pods, _pod("p", containers=[container]))
    assert reply.code == 422
    assert text in reply["message"]


async def test_a_quantity_that_is_none_is_a_400(api: Api) -> None:
    container = {"name": "c", "image": "i:1", "resources": {"limits": {"cpu": "much"}}}
    reply = await api.post(api.pods, _pod("p", containers=[container]))
    assert (reply.code, reply["reason"]) == (400, "BadRequest")
    assert "quantities must match the regular expression" in reply["message"]


async def test_the_quality_of_service_class_is_computed(api: Api) -> None:
    def container(limits: Any, requests: Any) -> list[dict[str, Any]]:
        resources = {"limits": limits, "requests": requests}
        return [{"name": "c", "image": "i:1", "resources": resources}]

    full = {"cpu": "1", "memory": "1Gi"}
    made = await api.pod("a", containers=container(full, full))
    assert made["status"]["qosClass"] == "Guaranteed"
    made = await api.pod("b", containers=container({}, {"cpu": "1"}))
    assert made["status"]["qosClass"] == "Burstable"
    made = await api.pod("c", containers=container({"nvidia.com/gpu": "1"}, {}))
    assert made["status"]["qosClass"] == "BestEffort"


@pytest.mark.parametrize(
    "change",
    [
        {"nodeName": "n1"},
        {"schedulerName": "other"},
        {"priority": 3},
        {"nodeSelector": {"a": "b"}},
        {"affinity": {"nodeAffinity": {}}},
        {"containers": [{"name": "c", "image": "busybox:1", "command": ["x"]}]},
    ],
)
async def test_the_spec_of_a_pod_is_fixed(api: Api, change: Any) -> None:
    await api.pod()
    reply = await api.merge(f"{api.pods}/p", {"spec": change})
    assert (reply.code, reply["reason"]) == (422, "Invalid")
    assert (
        'Pod "p" is invalid: spec: Forbidden: pod updates may not change fields other than'
        in (reply["message"])
    )


async def test_what_may_change_on_a_pod_does_and_counts_a_generation(api: Api) -> None:
    made = await api.pod()
    path = f"{api.pods}/p"
    reply = await api.strategic(path, {"spec": {"containers": [{"name": "c", "image": "x:2"}]}})
    assert reply.code == 200, reply
    assert reply["metadata"]["generation"] == 2
    added = [*made["spec"]["tolerations"], {"key": "k", "operator": "Exists"}]
    reply = await api.merge(path, {"spec": {"tolerations": added}})
    assert reply.code == 200, reply
    reply = await api.merge(path, {"spec": {"tolerations": added[1:]}})
    # Admission puts back what it had added itself.
    assert reply["spec"]["tolerations"] == [*added[1:], added[0]]
    reply = await api.merge(path, {"spec": {"tolerations": added[:2]}})
    assert reply.code == 422
    assert (
        "existing toleration can not be modified except its tolerationSeconds" in (reply["message"])
    )
    assert (await api.merge(path, {"spec": {"activeDeadlineSeconds": 9}})).code == 200
    reply = await api.merge(path, {"spec": {"activeDeadlineSeconds": 10}})
    assert reply.code == 422


async def test_a_gated_pod_may_be_narrowed_and_let_go_but_not_gated_more(api: Api) -> None:
    await api.pod(
        schedulingGates=[{"name": "t.dev/a"}, {"name": "t.dev/b"}], nodeSelector={"a": "b"}
    )
    path = f"{api.pods}/p"
    assert (await api.merge(path, {"spec": {"nodeSelector": {"c": "d"}}})).code == 200
    reply = await api.merge(path, {"spec": {"nodeSelector": {"a": "x"}}})
    assert "only additions to spec.nodeSelector are allowed" in reply["message"]
    gates = [{"name": "t.dev/c"}, {"name": "t.dev/a"}, {"name": "t.dev/b"}]
    reply = await api.merge(path, {"spec": {"schedulingGates": gates}})
    assert "only deletion is allowed, but found new scheduling gate 't.dev/c'" in reply["message"]
    reply = await api.merge(path, {"spec": {"schedulingGates": None}})
    assert reply.code == 200, reply
    assert "schedulingGates" not in reply["spec"]


async def test_the_status_of_a_pod_is_written_only_at_its_own_path(api: Api) -> None:
    await api.pod()
    reply = await api.merge(f"{api.pods}/p", {"status": {"phase": "Running"}})
    assert reply["status"]["phase"] == "Pending"
    body = {"status": {"phase": "Running"}, "spec": {"schedulerName": "x"}}
    reply = await api.merge(f"{api.pods}/p/status", body)
    assert (reply["status"]["phase"], reply["spec"]["schedulerName"]) == (
        "Running",
        "default-scheduler",
    )
    assert reply["metadata"]["generation"] == 1


async def test_conditions_merge_by_type_in_a_strategic_patch(api: Api) -> None:
    await api.pod()
    path = f"{api.pods}/p/status"
    one = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}
    await api.strategic(path, {"status": {"conditions": [one]}})
    two = {"type": "Ready", "status": "False"}
    await api.strategic(path, {"status": {"conditions": [two]}})
    reply = await api.strategic(path, {"status": {"conditions": [{**one, "message": "n"}]}})
    found = {one["type"]: one.get("message") for one in reply["status"]["conditions"]}
    assert found == {"PodScheduled": "n", "Ready": None}
