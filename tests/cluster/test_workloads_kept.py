"""Who may write Workloads, and not their status, cannot have more than the quota that they say; Evenkeel can go on.

The tenant may write Workloads of his namespace as Kueue's role for editors allows it.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import pytest

from scheduler.api import names
from tests.controlplane import plane
from tests.controlplane.access import Answer
from tests.operator import accounts, installed, servers

Json = dict[str, Any]
TENANT = "tenant"
_GROUP, _VERSIONS = "kueue.x-k8s.io", ("v1beta2", "v1beta1")
_KEYS = (names.KUEUE_ELASTIC, names.KUEUE_CHAIN, names.KUEUE_REPLACES, names.FITS_GENERATION)
_OWNER: Json = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "name": "job",
    "uid": "1",
    "controller": True,
}
_NOW = "2026-01-01T00:00:00Z"
_ELASTIC = {names.KUEUE_ELASTIC: "true"}
_KEPT, _COUNT = "spec.podSets: while the Workload has quota", "spec.podSets[main].count: "
_AS_ITS_JOB = "is as large as its job"


class Writer(NamedTuple):
    """One who writes Workloads with his token."""

    cp: plane.ControlPlane
    token: str

    def call(self, method: str, path: str, body: object = None, version: str = "v1beta2") -> Answer:
        root = f"/apis/{_GROUP}/{version}/namespaces/{TENANT}/workloads"
        return self.cp.request(method, f"{root}{path}", body, token=self.token)

    def create(self, body: Json, version: str = "v1beta2") -> Answer:
        kind = {"apiVersion": f"{_GROUP}/{version}", "kind": "Workload"}
        return self.call("POST", "", kind | body, version)

    def patch(self, name: str, body: Json, version: str = "v1beta2") -> Answer:
        return self.call("PATCH", f"/{name}", body, version)

    def annotate(self, name: str, **texts: str | None) -> Answer:
        return self.patch(name, {"metadata": {"annotations": texts}})

    def write_status(self, name: str, status: Json) -> Answer:
        return self.call("PATCH", f"/{name}/status", {"status": status})


def _make_set(name: str = "main", count: int = 4, cpu: str = "1") -> Json:
    box = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    return {"name": name, "count": count, "template": {"spec": {"containers": [box]}}}


def _make(name: str, *sets: Json, **meta: Any) -> Json:
    spec = {"queueName": "team", "podSets": list(sets) or [_make_set()]}
    return {"metadata": {"name": name, **meta}, "spec": spec}


def _serve_first_version(crd: Json) -> Json:
    """Serve Workloads in the version before, too: here both look the same."""
    found = copy.deepcopy(crd)
    versions = found["spec"]["versions"]
    if found["spec"]["names"]["kind"] == "Workload" and len(versions) == 1:
        versions.append(copy.deepcopy(versions[0]) | {"name": "v1beta1", "storage": False})
    return found


@pytest.fixture(scope="module")
def server(kueue_crds: list[Json]) -> Iterator[servers.Server]:
    with servers.with_queues(map(_serve_first_version, kueue_crds)) as running:
        cp = running.plane
        assert cp is not None
        cp.kubectl("create", "namespace", TENANT)
        rules = (
            accounts.make_rule(
                "get list watch create update patch delete deletecollection", "workloads", _GROUP
            ),
            accounts.make_rule("get", "workloads/status", _GROUP),
        )
        accounts.apply(cp, accounts.make_account(TENANT, TENANT, *rules, namespaced=True))
        yield running


@pytest.fixture(scope="module")
def tenant(server: servers.Server) -> Writer:
    """As soon as the policy is in force: the API server reads it with a delay."""
    cp = server.plane
    assert cp is not None
    made = Writer(cp, cp.kubectl("create", "token", TENANT, "-n", TENANT).strip())
    probe = _make("probe", annotations={names.KUEUE_REPLACES: f"{TENANT}/x"})
    gives_up_at = time.monotonic() + 30
    while (answer := made.create(probe)).status != 403:
        made.call("DELETE", "/probe")
        assert time.monotonic() < gives_up_at, answer
        time.sleep(0.1)
    return made


@pytest.fixture(scope="module")
def operator(server: servers.Server, tenant: Writer) -> Writer:  # noqa: ARG001 - the policy is in force
    """Writes with Evenkeel's rights and no others."""
    assert server.plane is not None
    return Writer(server.plane, installed.token(server.plane))


def _give_quota(operator: Writer, body: Json, **more: Any) -> str:
    """Make a Workload that has quota; return its name."""
    assert operator.create(body).status == 201
    name: str = body["metadata"]["name"]
    answer = operator.write_status(name, _write_admission(body["spec"]["podSets"]) | more)
    assert answer.status == 200, answer.body
    return name


def _write_admission(sets: list[Json]) -> Json:
    given = [{"name": one["name"], "count": one["count"]} for one in sets]
    condition = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved"}
    return {
        "admission": {"clusterQueue": "team", "podSetAssignments": given},
        "conditions": [condition | {"message": "", "lastTransitionTime": _NOW}],
    }


def _is_refused(answer: Answer, *words: str, status: int = 403) -> None:
    assert answer.status == status, answer.body
    told = [answer.body["message"]]
    told += [one["message"] for one in answer.body.get("details", {}).get("causes", ())]
    for one in words:
        assert any(one in text for text in told), told
    if status == 403:
        assert any(f"{TENANT}:{TENANT} may not" in text for text in told), told


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("key", _KEYS)
def test_no_tenant_makes_a_slice(tenant: Writer, key: str, version: str) -> None:
    """He owns it as a job does, and names the Workload that has the quota of the job."""
    body = _make("forged", annotations={key: f"{TENANT}/has-quota"}, ownerReferences=[_OWNER])
    _is_refused(tenant.create(body, version), f"metadata.annotations[{key}]: decides with which")


@pytest.mark.parametrize("key", _KEYS)
def test_no_tenant_changes_what_a_slice_says(tenant: Writer, operator: Writer, key: str) -> None:
    name = f"says-{_KEYS.index(key)}"
    assert operator.create(_make(name)).status == 201
    _is_refused(tenant.annotate(name, **{key: "x"}), key)
    assert operator.annotate(name, **{key: "true"}).status == 200
    for text in ("other", None):
        _is_refused(tenant.annotate(name, **{key: text}), key)
        assert tenant.annotate(name, note=text).status == 200
    assert operator.annotate(name, **{key: None}).status == 200


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("has_quota", [True, False])
def test_only_evenkeel_resizes_a_slice(
    tenant: Writer, operator: Writer, version: str, *, has_quota: bool
) -> None:
    """One without quota may be about to take the place of one that has it."""
    body = _make(f"resized-{version}-{has_quota}".lower(), annotations=_ELASTIC)
    name = body["metadata"]["name"]
    if has_quota:
        _give_quota(operator, body)
    else:
        assert operator.create(body).status == 201
    smaller = {"spec": {"podSets": [_make_set(count=2)]}}
    told = (_AS_ITS_JOB, "change the job")
    _is_refused(tenant.patch(name, smaller, version), *told)
    answer = operator.patch(name, smaller, version)
    assert answer.status == 200, answer.body
    assert answer.body["spec"]["podSets"][0]["count"] == 2
    cheaper = {"spec": {"podSets": [_make_set(count=2, cpu="100m")]}}
    assert tenant.patch(name, cheaper, version).status >= 400
    larger = operator.patch(name, {"spec": {"podSets": [_make_set(count=3)]}}, version)
    if has_quota:
        _is_refused(larger, _COUNT, "may only get smaller", status=422)
    else:
        assert larger.status == 200, larger.body


@pytest.mark.parametrize(
    ("sets", "told"),
    [
        ([_make_set(count=2)], _COUNT),
        ([_make_set(count=5)], _COUNT),
        ([_make_set(cpu="100m")], _KEPT),
        ([_make_set() | {"minCount": 1}], _KEPT),
        ([_make_set("other")], _KEPT),
        ([_make_set(), _make_set("other")], "podSetAssignments"),
    ],
    ids=["smaller", "larger", "cheaper", "partial", "renamed", "more"],
)
@pytest.mark.parametrize("version", _VERSIONS)
def test_pod_sets_stay_while_they_have_quota(
    tenant: Writer,
    operator: Writer,
    sets: list[Json],
    told: str,
    version: str,
    request: pytest.FixtureRequest,
) -> None:
    """For everybody, Evenkeel itself included; before and after they may change."""
    name = request.node.callspec.id.replace("_", "-")
    assert tenant.create(_make(name)).status == 201
    asked = {"spec": {"podSets": sets}}
    for change in (asked, {"spec": {"podSets": [_make_set()]}}):
        answer = tenant.patch(name, change, version)
        assert answer.status == 200, answer.body
    assert operator.write_status(name, _write_admission([_make_set()])).status == 200
    for writer in (tenant, operator):
        _is_refused(writer.patch(name, asked, version), told, status=422)
    condition = _write_admission([])["conditions"][0] | {"status": "False"}
    free = {"admission": None, "conditions": [condition]}
    assert operator.write_status(name, free).status == 200
    assert tenant.patch(name, asked, version).status == 200


def test_a_workload_made_before_its_job_is_its_makers(tenant: Writer, operator: Writer) -> None:
    """He may make it, change what has no quota behind it, and delete it."""
    assert tenant.create(_make("before", ownerReferences=[_OWNER])).status == 201
    assert operator.write_status("before", _write_admission([_make_set()])).status == 200
    for change in (
        {"spec": {"active": False}},
        {"spec": {"active": True, "priority": 7}},
        {"metadata": {"labels": {"mine": "yes"}, "annotations": {"note": "kept"}}},
        {"metadata": {"ownerReferences": None, "finalizers": ["example.com/mine"]}},
        {"metadata": {"finalizers": None}},
        {"spec": {"podSets": [_make_set()]}},
    ):
        answer = tenant.patch("before", change)
        assert answer.status == 200, answer.body
    assert tenant.call("DELETE", "/before").status == 200


def test_no_tenant_gives_a_slice_to_another_job(tenant: Writer, operator: Writer) -> None:
    name = _give_quota(operator, _make("owned", annotations=_ELASTIC, ownerReferences=[_OWNER]))
    told = "metadata.ownerReferences: decides which job runs"
    for owners in (None, [_OWNER | {"uid": "2"}], [_OWNER | {"controller": False}]):
        change = {"metadata": {"ownerReferences": owners}}
        _is_refused(tenant.patch(name, change), told)
    beside: Json = {"apiVersion": "v1", "kind": "ConfigMap", "name": "one", "uid": "3"}
    change = {"metadata": {"ownerReferences": [_OWNER, beside]}}
    assert tenant.patch(name, change).status == 200
    change = {"metadata": {"ownerReferences": [beside, _OWNER | {"uid": "2"}]}}
    assert operator.patch(name, change).status == 200
    # It takes the owner away from what its job leaves behind.
    collector = "--as=system:serviceaccount:kube-system:generic-garbage-collector"
    change = {"metadata": {"ownerReferences": [beside]}}
    path = ("workloads.kueue.x-k8s.io", name, "-n", TENANT)
    operator.cp.kubectl("patch", *path, "--type=merge", "-p", json.dumps(change), collector)


def test_an_admission_is_set_and_unset_and_its_topology_may_change(operator: Writer) -> None:
    name = _give_quota(operator, _make("admitted"))
    for change in (
        {"clusterQueue": "other"},
        {"podSetAssignments": [{"name": "main", "count": 3}]},
        {"podSetAssignments": [{"name": "main", "count": 4, "flavors": {"cpu": "plain"}}]},
        {"podSetAssignments": [{"name": "main"}]},
    ):
        answer = operator.write_status(name, {"admission": change})
        _is_refused(answer, "status.admission: may be set and unset", status=422)
    one = {"domainCount": 1, "valuesPerLevel": [{"universal": "r1"}], "podCounts": {"universal": 4}}
    place = {"levels": ["rack"], "slices": [one]}
    for more in (
        {"delayedTopologyRequest": "Pending"},
        {"delayedTopologyRequest": "Ready", "topologyAssignment": place},
        {"topologyAssignment": place},
        {},
    ):
        given = {"podSetAssignments": [{"name": "main", "count": 4, **more}]}
        answer = operator.write_status(name, {"admission": given})
        assert answer.status == 200, answer.body
    other = _write_admission([_make_set()])["admission"] | {"clusterQueue": "other"}
    condition = _write_admission([])["conditions"][0] | {"status": "False"}
    for status in ({"admission": None, "conditions": [condition]}, {"admission": other}):
        assert operator.write_status(name, status).status == 200


def test_what_was_given_back_is_not_taken_again(operator: Writer) -> None:
    name = _give_quota(operator, _make("gives"))
    _give_back(operator, name, 2, 200)
    for n in (1, 0, None):
        _give_back(operator, name, n, 422)
    _give_back(operator, name, 3, 200)
    condition = _write_admission([])["conditions"][0] | {"status": "False"}
    free = {"admission": None, "conditions": [condition], "reclaimablePods": None}
    assert operator.write_status(name, free).status == 200
    _give_back(operator, name, 1, 200)
    _give_back(operator, name, None, 200)
    # Those of a job that got smaller are counted anew.
    name = _give_quota(operator, _make("shrinks", annotations=_ELASTIC))
    _give_back(operator, name, 3, 200)
    _give_back(operator, name, 2, 422)
    assert operator.patch(name, {"spec": {"podSets": [_make_set(count=2)]}}).status == 200
    _give_back(operator, name, 2, 200)


def _give_back(operator: Writer, name: str, n: int | None, status: int) -> None:
    items = None if n is None else [{"name": "main", "count": n}]
    answer = operator.write_status(name, {"reclaimablePods": items})
    assert answer.status == status, answer.body
    if status == 422:
        _is_refused(answer, "status.reclaimablePods: ", status=status)


def test_the_largest_workload_is_no_trouble(tenant: Writer, operator: Writer) -> None:
    """What an expression may cost is limited, and one that costs more refuses everything."""
    env = [{"name": f"NAME_{i}", "value": "x" * 50} for i in range(500)]
    sets = [_make_set(f"set-{i}") for i in range(8)]
    for one in sets:
        one["template"]["spec"]["containers"][0]["env"] = env
    texts = _ELASTIC | {f"example.com/{'long-' * 8}{i}": "x" for i in range(1_000)}
    name = _give_quota(operator, _make("large", *sets, annotations=texts))
    assert tenant.patch(name, {"spec": {"active": False}}).status == 200
    smaller = [one | {"count": 1} for one in sets]
    assert tenant.patch(name, {"spec": {"podSets": smaller}}).status == 403
    answer = operator.patch(name, {"spec": {"podSets": smaller}})
    assert answer.status == 200, answer.body


@pytest.mark.usefixtures("peers", "tenant")
def test_every_expression_fits_the_types_it_is_asked_about(
    server: servers.Server, request: pytest.FixtureRequest
) -> None:
    """One that does not fails at a user's request, and nothing said so before."""
    cp = server.plane
    assert cp is not None
    cp.start_controller_manager(("validatingadmissionpolicy-status-controller",))
    request.addfinalizer(partial(cp.kill, "kube-controller-manager"))
    policy = "validatingadmissionpolicy/evenkeel-queues"
    cp.kubectl("wait", policy, "--for=jsonpath={.status.observedGeneration}=1", "--timeout=30s")
    status = json.loads(cp.kubectl("get", policy, "-o", "json"))["status"]
    assert status["typeChecking"] == {}, status
