"""Workloads on an API server: defaults, refusals and the scale subresource."""

from typing import Any

import pytest

from scheduler.embedded.agents.workloads.controllers import NOT_RUN
from scheduler.embedded.api.server import Settings
from tests.embedded.conftest import Api

Json = dict[str, Any]
APPS = "apis/apps/v1"


def template(**spec: Any) -> Json:
    containers = [{"name": "c", "image": "i:1"}]
    return {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": containers, **spec}}


def workload(name: str = "w", **spec: Any) -> Json:
    selector = {"matchLabels": {"app": "a"}}
    return {
        "metadata": {"name": name},
        "spec": {"selector": selector, "template": template(), **spec},
    }


@pytest.mark.parametrize(
    ("plural", "more", "expected"),
    [
        ("deployments", {}, {"replicas": 1, "revisionHistoryLimit": 10}),
        ("replicasets", {}, {"replicas": 1}),
        ("statefulsets", {"serviceName": "s"}, {"replicas": 1, "podManagementPolicy": "OrderedReady"}),
        ("replicasets", {"replicas": 0}, {"replicas": 0}),
    ],
)  # fmt: skip
async def test_what_is_not_said_is_filled_in(
    api: Api, plural: str, more: Json, expected: Json
) -> None:
    made = await api.made(api.at(plural, APPS), workload(**more))
    assert {field: made["spec"].get(field) for field in expected} == expected
    assert made["spec"]["template"]["spec"]["restartPolicy"] == "Always"
    assert made["spec"]["template"]["spec"]["schedulerName"] == "default-scheduler"


async def test_a_job_selects_its_own_pods(api: Api) -> None:
    spec = {"template": template(restartPolicy="Never")}
    made = await api.made(
        api.at("jobs", "apis/batch/v1"), {"metadata": {"name": "j"}, "spec": spec}
    )
    uid = made["metadata"]["uid"]
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert labels["batch.kubernetes.io/job-name"] == labels["job-name"] == "j"
    counts = {
        field: made["spec"][field] for field in ("parallelism", "completions", "backoffLimit")
    }
    assert counts == {"parallelism": 1, "completions": 1, "backoffLimit": 6}


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"replicas": -1}, "spec.replicas"),
        ({"selector": {"matchLabels": {"app": "b"}}}, "spec.template.metadata.labels"),
        ({"template": template(containers=[])}, "spec.template.spec.containers"),
        ({"template": template(restartPolicy="Never")}, "spec.template.spec.restartPolicy"),
    ],
)
async def test_what_no_pod_can_be_made_of_is_refused(api: Api, more: Json, field: str) -> None:
    reply = await api.post(api.at("deployments", APPS), workload(**more))
    assert (reply.code, reply["reason"]) == (422, "Invalid")
    assert field in [cause["field"] for cause in reply["details"]["causes"]]


async def test_a_number_that_is_none_is_refused(api: Api) -> None:
    for replicas in ("many", 1 << 40, 1.5):
        reply = await api.post(api.at("deployments", APPS), workload(replicas=replicas))
        assert (reply.code, reply["reason"]) == (400, "BadRequest")


async def test_a_selector_stays_as_it_is(api: Api) -> None:
    await api.made(api.at("deployments", APPS), workload())
    change = {"spec": {"selector": {"matchLabels": {"more": "x"}}}}
    change["spec"]["template"] = {"metadata": {"labels": {"more": "x"}}}  # type: ignore[dict-item]
    reply = await api.merge(f"{api.at('deployments', APPS)}/w", change)
    assert reply.code == 422
    assert "field is immutable" in reply["message"]


@pytest.mark.parametrize("plural", ["deployments", "replicasets", "statefulsets"])
async def test_a_workload_is_scaled(api: Api, plural: str) -> None:
    await api.made(api.at(plural, APPS), workload(serviceName="s") if plural == "statefulsets" else workload())  # fmt: skip
    path = f"{api.at(plural, APPS)}/w"
    scale = await api.get(f"{path}/scale")
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 1}
    assert scale["status"]["selector"] == "app=a"
    patched = await api.merge(f"{path}/scale", {"spec": {"replicas": 4}})
    assert (patched["kind"], patched["spec"]) == ("Scale", {"replicas": 4})
    found = await api.get(path)
    assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (4, 2)
    # The Scale that was read first is of an older version by now.
    stale = await api.put(f"{path}/scale", scale.body)
    assert (stale.code, stale["reason"]) == (409, "Conflict")
    put = await api.put(f"{path}/scale", {**patched.body, "spec": {"replicas": 2}})
    assert put["spec"] == {"replicas": 2}
    assert (await api.merge(f"{path}/scale", {"spec": {"replicas": -1}})).code == 422
    assert (await api.get(path))["spec"]["replicas"] == 2


async def test_scaling_is_discovered_where_it_is_done(api: Api) -> None:
    listed = (await api.get(f"/{APPS}"))["resources"]
    scales = {one["name"]: (one["group"], one["kind"]) for one in listed if "/scale" in one["name"]}
    assert scales == dict.fromkeys(
        ("deployments/scale", "replicasets/scale", "statefulsets/scale"), ("autoscaling", "Scale")
    )
    await api.made(api.at("configmaps"), {"metadata": {"name": "a"}})
    assert (await api.get(f"{api.at('configmaps')}/a/scale")).code == 404


@pytest.mark.usefixtures("cluster")
async def test_pods_that_are_left_have_no_owner(api: Api) -> None:
    """The real server leaves this to a controller that does not run in these tests."""
    owner = await api.made(api.at("replicasets", APPS), workload())
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "w"}
    reference["uid"] = owner["metadata"]["uid"]
    pod = {"metadata": {"name": "p", "ownerReferences": [reference]}, "spec": template()["spec"]}
    await api.made(api.pods, pod)
    path = f"{api.at('replicasets', APPS)}/w"
    refused = await api.delete(path, {"propagationPolicy": "Foreground"})
    assert refused.code == 422
    assert "Background and Orphan are done" in refused["message"]
    await api.delete(path, {"propagationPolicy": "Orphan"})
    assert (await api.get(path)).code == 404
    assert not (await api.get(f"{api.pods}/p"))["metadata"].get("ownerReferences")


@pytest.mark.parametrize("cluster", [Settings(refused=NOT_RUN)], indirect=True)
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/apis/apps/v1/namespaces/default/daemonsets", "DaemonSet"),
        ("/apis/batch/v1/namespaces/default/cronjobs", "CronJob"),
        ("/api/v1/namespaces/default/replicationcontrollers", "ReplicationController"),
    ],
)
@pytest.mark.usefixtures("cluster")
async def test_what_nothing_runs_is_refused_where_it_is_told_to(
    api: Api, path: str, kind: str
) -> None:
    for reply in (await api.post(path, workload()), await api.apply(f"{path}/w", workload())):
        assert (reply.code, reply["reason"]) == (403, "Forbidden")
        assert reply["message"].startswith(f"nothing in this cluster runs a {kind};")
    assert (await api.get(path))["items"] == []
    assert (await api.post(api.at("deployments", APPS), workload())).code == 201


@pytest.mark.usefixtures("cluster")
async def test_rules_that_are_not_evaluated_are_said(api: Api) -> None:
    rules = [{"rule": "self.a > 0", "message": "a must be above 0"}]
    inner = {"type": "object", "properties": {"a": {"type": "integer"}}}
    schemas = {"gauges": {**inner, "x-kubernetes-validations": rules}, "plains": inner}
    for plural, schema in schemas.items():
        kind = plural.capitalize()[:-1]
        version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
        top = {"type": "object", "properties": {"spec": schema, "status": {"type": "object"}}}
        body = {
            "metadata": {"name": f"{plural}.test.evenkeel.dev"},
            "spec": {
                "group": "test.evenkeel.dev",
                "scope": "Cluster",
                "names": {"plural": plural, "kind": kind},
                "versions": [{**version, "schema": {"openAPIV3Schema": top}}],
            },
        }
        head = {"apiVersion": "test.evenkeel.dev/v1", "kind": kind, "metadata": {"name": "x"}}
        path = f"/apis/test.evenkeel.dev/v1/{plural}"
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        replies = [
            await api.post(crds, body),
            await api.post(path, {**head, "spec": {"a": -1}}),
            await api.merge(f"{path}/x", {"spec": {"a": -2}}),
        ]
        assert [reply.code for reply in replies] == [201, 201, 200]
        warned = [reply.headers.get("Warning", "") for reply in replies]
        if plural == "plains":
            assert warned == ["", "", ""]
            continue
        text = f"the rules in CEL of {kind}.test.evenkeel.dev (x-kubernetes-validations) are not"
        assert all(text in warning for warning in warned)
        # Who writes a status has nothing to do with the rules.
        reply = await api.merge(f"{path}/x/status", {"status": {}})
        assert "Warning" not in reply.headers


def field(number: int, data: bytes) -> bytes:
    """A text or message in protobuf, of less than 128 bytes."""
    assert len(data) < 128
    return bytes((number << 3 | 2, len(data))) + data


def deployment(name: bytes, *more: bytes) -> bytes:
    """A Deployment of 3 as kubectl sends one; ``more`` goes to the spec of its pods."""
    label = field(1, b"app") + field(2, b"a")
    pod = field(2, field(1, b"c") + field(2, b"i:1") + field(5, b"")) + b"".join(more)
    made = field(1, field(11, label)) + field(2, pod)
    spec = b"\x08\x03" + field(2, field(1, label)) + field(3, made) + field(4, field(1, b""))
    raw = field(1, field(1, name)) + field(2, spec) + field(3, b"\x08\x00")
    return b"k8s\0" + field(1, field(1, b"apps/v1") + field(2, b"Deployment")) + field(2, raw)


@pytest.mark.usefixtures("cluster")
async def test_what_is_not_read_of_protobuf_is_not_lost_unsaid(api: Api) -> None:
    """The real server reads all of it."""
    path, media = api.at("deployments", APPS), "application/vnd.kubernetes.protobuf"
    made = await api.call("POST", path, deployment(b"w"), media)
    assert (made.code, made["spec"]["replicas"]) == (201, 3)
    assert made["spec"]["template"]["spec"]["containers"][0]["image"] == "i:1"
    volumes = field(1, field(1, b"data"))
    refused = await api.call("POST", path, deployment(b"x", volumes), media)
    assert refused.code == 415
    assert "send it as JSON or YAML" in refused["message"]
