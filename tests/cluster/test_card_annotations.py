"""A tenant cannot write what decides about cards, by any road; those who must write it can.

The tenant owns a namespace: he may do anything in it, with every resource and every subresource.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import pytest

from scheduler.api import names
from scheduler.embedded.agents import fleet as agents
from scheduler.embedded.agents import nodes
from tests.controlplane import plane
from tests.controlplane.access import Answer
from tests.operator import accounts, servers
from tests.operator.manifests import container, pod, vgpu
from tests.operator.process import Operator
from tests.operator.world import World, enter

TENANT = "tenant"
PODS = f"/api/v1/namespaces/{TENANT}/pods"
DECIDING = (
    names.HAMI_NODE,
    names.HAMI_TIME,
    names.HAMI_TO_ALLOCATE,
    names.HAMI_ALLOCATED,
    names.HAMI_BIND_PHASE,
    names.HAMI_BIND_TIME,
    "hami.io/vgpu-mig-allocations",
    "hami.io/dcu-devices-to-allocate",
    "AWS_NEURON_IDS",
    "huawei.com/Ascend910B3",
    "metax-tech.com/gpu-devices-allocated",
    "hami.io/Ascend910B4-devices-allocated",
    "hami.io/kunlun-allocated",
)
Json = dict[str, Any]


# What HAMi's chart gives its device plugin, and what a kubelet does beside it.
PLUGIN = (
    accounts.make_rule("get list watch patch update", "nodes pods"),
    accounts.make_rule("patch", "nodes/status pods/status"),
    accounts.make_rule("delete", "pods"),
)


class Tenant:
    """The hostile one: calls with his token."""

    def __init__(self, cp: plane.ControlPlane) -> None:
        self.cp = cp
        self._token = cp.kubectl("create", "token", TENANT, "-n", TENANT).strip()

    def call(self, method: str, path: str, body: object = None) -> Answer:
        return self.cp.request(method, path, body, token=self._token)

    def create(self, name: str, **more: Any) -> Answer:
        return self.call("POST", PODS, pod(name, namespace=TENANT, **more))

    def annotate(self, name: str, subresource: str = "", **annotations: str | None) -> Answer:
        body = {"metadata": {"annotations": annotations}}
        return self.call("PATCH", f"{PODS}/{name}{subresource}", body)


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.real() as running:
        cp = running.plane
        assert cp is not None
        everything = accounts.make_rule("*", "*") | {"apiGroups": ["*"]}
        cp.kubectl("create", "namespace", TENANT)
        made = [
            *accounts.make_account(TENANT, TENANT, everything, namespaced=True),
            *accounts.make_account("plugin", "kube-system", *PLUGIN),
        ]
        accounts.apply(cp, made)
        yield running


@pytest.fixture(scope="module")
def tenant(server: servers.Server) -> Tenant:
    """As soon as the policy is in force: the API server reads it with a delay."""
    assert server.plane is not None
    made = Tenant(server.plane)
    gives_up_at = time.monotonic() + 30
    while made.create("probe", annotations={names.HAMI_NODE: "x"}).status == 201:
        made.call("DELETE", f"{PODS}/probe", {"gracePeriodSeconds": 0})
        assert time.monotonic() < gives_up_at
        time.sleep(0.1)
    return made


@pytest.fixture(scope="module")
def operator(server: servers.Server) -> Iterator[Operator]:
    running = Operator(server)
    try:
        running.wait_ready()
        yield running
    finally:
        running.stop()


@pytest.fixture
async def world(server: servers.Server, operator: Operator) -> AsyncIterator[World]:
    async with enter(server, operator) as made:
        yield made


def _is_refused(answer: Answer, key: str) -> None:
    assert answer.status == 403, answer.body
    said = answer.body["message"]
    assert f"{key}: decides which GPUs a pod holds" in said
    assert f"system:serviceaccount:{TENANT}:{TENANT} may not" in said


@pytest.mark.parametrize("key", DECIDING)
def test_a_pod_that_claims_cards_is_refused_and_the_annotation_named(
    tenant: Tenant, key: str
) -> None:
    _is_refused(tenant.create("claims", annotations={key: "x"}, nodeName="gpu-1"), key)


def _make_bound(name: str, resource: str, *, init: bool = False, owner: str = "") -> Json:
    """A pod that names its node and requests a device, of a controller of a kind."""
    taking = container(name="takes", limits={resource: "1"})
    body = pod(name, namespace=TENANT, nodeName="gpu-1", containers=[container()])
    body["spec"]["initContainers" if init else "containers"] = [taking]
    if owner:
        group = "nvidia.com/v1" if owner == "ClusterPolicy" else "v1"
        ref = {"apiVersion": group, "kind": owner, "name": "x", "uid": "x", "controller": True}
        body["metadata"]["ownerReferences"] = [ref]
    return body


@pytest.mark.parametrize("init", [False, True])
@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "amd.com/gpu", "huawei.com/Ascend910B3"])
def test_a_pod_with_devices_that_names_its_node_is_refused(
    tenant: Tenant, resource: str, *, init: bool
) -> None:
    """No scheduler and no webhook of a scheduler would see it."""
    answer = tenant.call("POST", PODS, _make_bound("takes", resource, init=init))
    assert answer.status == 403, answer.body
    said = answer.body["message"]
    assert "spec.nodeName: containers takes request devices" in said
    assert f"system:serviceaccount:{TENANT}:{TENANT} may not" in said


def test_a_node_may_be_named_where_no_devices_are_requested(tenant: Tenant) -> None:
    assert tenant.call("POST", PODS, _make_bound("plain", "example.com/fpga")).status == 201
    assert tenant.create("placed", limits={"nvidia.com/gpu": 1}).status == 201


@pytest.mark.parametrize(("owner", "may"), [("", True), ("Node", True), ("ReplicaSet", False)])
def test_who_may_patch_nodes_may_name_the_node_but_not_in_anothers_words(
    tenant: Tenant, owner: str, *, may: bool
) -> None:
    """A kubelet tells of its static pods so; a controller with every right has the words of a template."""
    body = _make_bound(f"told-by-{owner.lower() or 'nobody'}", "nvidia.com/gpu", owner=owner)
    said = tenant.cp.kubectl(
        "create", "-f", "-", "--as=kubelet", "--as-group=system:masters",
        stdin=json.dumps(body), check=False,
    )  # fmt: skip
    assert ("created" in said) == may, said
    assert ("spec.nodeName: containers takes request devices" in said) != may
    if owner == "Node":
        # The words alone are no right.
        body["metadata"]["name"] = "forged"
        assert tenant.call("POST", PODS, body).status == 403


# What the charts of NVIDIA's GPU operator give its validator, and those of KAI its binder, as far as it counts here.
VALIDATOR = accounts.make_rule("get update", "clusterpolicies/finalizers", "nvidia.com")
BINDER = accounts.make_rule("create", "pods/binding")


@pytest.mark.parametrize(
    ("account", "right", "owner"),
    [("nvidia-operator-validator", VALIDATOR, "ClusterPolicy"), ("binder", BINDER, "")],
)
def test_components_of_other_projects_that_name_the_node_may_do_so(
    tenant: Tenant, account: str, right: Json, owner: str
) -> None:
    """Neither may patch nodes. What the right is good for in all namespaces, it is not in one, nor in a template."""
    cp = tenant.cp
    pods = accounts.make_rule("create get delete", "pods")
    accounts.apply(cp, accounts.make_account(account, "kube-system", pods, right))
    token = cp.kubectl("create", "token", account, "-n", "kube-system").strip()
    for i, (kind, status) in enumerate([(owner, 201), ("ReplicaSet", 403)]):
        body = _make_bound(f"{account}-{i}", "nvidia.com/gpu", init=True, owner=kind)
        answer = cp.request("POST", PODS, body, token=token)
        assert answer.status == status, answer.body
    body = _make_bound(f"{account}-forged", "nvidia.com/gpu", owner=owner)
    answer = tenant.call("POST", PODS, body)
    assert answer.status == 403, answer.body
    assert "select one by its label kubernetes.io/hostname" in answer.body["message"]


def test_the_label_of_the_same_name_is_refused(tenant: Tenant) -> None:
    _is_refused(tenant.create("labelled", labels={names.HAMI_NODE: "x"}), names.HAMI_NODE)


def test_what_steers_is_the_tenants(tenant: Tenant) -> None:
    steering = dict.fromkeys(names.STEERING, "x") | {"hami.io/numa-alignment": "strict"}
    assert tenant.create("steers", annotations=steering).status == 201
    assert tenant.annotate("steers", **{names.HAMI_NODE_POLICY: "spread"}).status == 200
    unplaced = {
        "metax-tech.com/sgpu-qos-policy": "fixed-share",
        "huawei.com/vnpu-mode": "hami-core",
    }
    assert tenant.annotate("steers", **unplaced).status == 200


def test_a_pod_with_a_thousand_annotations_is_taken(tenant: Tenant) -> None:
    many = {f"example.com/{'long-' * 8}{i}": "x" for i in range(1_000)}
    assert tenant.create("annotated", annotations=many).status == 201


@pytest.mark.parametrize("subresource", ["", "/status"])
def test_no_change_of_a_pod_brings_them_in(tenant: Tenant, subresource: str) -> None:
    """A change of the status may change annotations, too."""
    name = f"changes{subresource.replace('/', '-')}"
    assert tenant.create(name).status == 201
    answer = tenant.annotate(name, subresource, **{names.HAMI_ALLOCATED: "x"})
    _is_refused(answer, names.HAMI_ALLOCATED)


@pytest.mark.parametrize("subresource", ["/resize", "/ephemeralcontainers"])
def test_other_changes_bring_none_in_today(tenant: Tenant, subresource: str) -> None:
    """The API server leaves out what does not belong to the subresource; if it did not, the policy would
    refuse it."""
    name = f"changes{subresource.replace('/', '-')}"
    assert tenant.create(name).status == 201
    tenant.annotate(name, subresource, **{names.HAMI_ALLOCATED: "x"})
    found = tenant.call("GET", f"{PODS}/{name}").body
    assert names.HAMI_ALLOCATED not in found["metadata"].get("annotations", {})


@pytest.mark.parametrize("path", [f"{PODS}/binds/binding", f"/api/v1/namespaces/{TENANT}/bindings"])
def test_no_binding_of_the_tenants_brings_them_in(tenant: Tenant, path: str) -> None:
    """The tenant's role lets him bind, because it lets him do anything in his namespace."""
    tenant.create("binds")
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "binds", "namespace": TENANT, "annotations": {names.HAMI_ALLOCATED: "x"}},
        "target": {"kind": "Node", "name": "gpu-1"},
    }  # fmt: skip
    _is_refused(tenant.call("POST", path, body), names.HAMI_ALLOCATED)


@pytest.mark.parametrize("controller", ["replicaset", "job", "statefulset", "daemon-set"])
def test_controllers_are_nobody_special(tenant: Tenant, controller: str) -> None:
    """Controllers create pods with their own rights and with a tenant's words."""
    body = pod("made", namespace=TENANT, annotations={names.HAMI_ALLOCATED: "x"})
    said = tenant.cp.kubectl(
        "create", "-f", "-", f"--as=system:serviceaccount:kube-system:{controller}-controller",
        stdin=json.dumps(body), check=False,
    )  # fmt: skip
    assert f"{names.HAMI_ALLOCATED}: decides which GPUs a pod holds" in said


@pytest.mark.usefixtures("peers")
def test_a_template_brings_none_in_whoever_runs_the_controllers(
    tenant: Tenant, request: pytest.FixtureRequest
) -> None:
    """Here controllers run as cluster admin, who may write the annotations, but the words are still the
    template's."""
    cp = tenant.cp
    cp.start_controller_manager(("deployment-controller", "replicaset-controller"))
    request.addfinalizer(partial(cp.kill, "kube-controller-manager"))
    labels = {"app": "hostile"}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "hostile", "namespace": TENANT},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": {names.HAMI_ALLOCATED: "x"}},
                "spec": {"containers": [container()]},
            },
        },
    }
    made = tenant.call("POST", f"/apis/apps/v1/namespaces/{TENANT}/deployments", body)
    assert made.status == 201, made.body
    hostile = ("deployment/hostile", "-n", TENANT)
    cp.kubectl("wait", *hostile, "--for=condition=ReplicaFailure=True", "--timeout=30s")
    told = cp.kubectl("get", *hostile, "-o", "json")
    assert f"{names.HAMI_ALLOCATED}: decides which GPUs a pod holds" in told
    assert "remove it from the template" in told
    assert tenant.call("GET", f"{PODS}?labelSelector=app%3Dhostile").body["items"] == []


@pytest.mark.usefixtures("peers")
def test_every_expression_fits_the_types_it_is_asked_about(
    tenant: Tenant, request: pytest.FixtureRequest
) -> None:
    """One that does not fails at a user's request, and nothing said so before."""
    cp = tenant.cp
    cp.start_controller_manager(("validatingadmissionpolicy-status-controller",))
    request.addfinalizer(partial(cp.kill, "kube-controller-manager"))
    policy = "validatingadmissionpolicy/evenkeel"
    cp.kubectl("wait", policy, "--for=jsonpath={.status.observedGeneration}=1", "--timeout=30s")
    status = json.loads(cp.kubectl("get", policy, "-o", "json"))["status"]
    assert status["typeChecking"] == {}, status


async def test_scheduler_and_plugin_write_them_and_the_owner_keeps_his_pod(
    world: World, tenant: Tenant
) -> None:
    """The plugin has the rights that HAMi gives it, the operator those of its role."""
    await world.create(nodes.make_gpu_node("gpu-1"))
    url, tls = world.server.url, world.server.tls
    token = tenant.cp.kubectl("create", "token", "plugin", "-n", "kube-system").strip()
    async with agents.run(url, token=token, ssl=tls):
        made = await asyncio.to_thread(tenant.call, "POST", PODS, vgpu("work", namespace=TENANT))
        assert made.status == 201, made.body

        async def read() -> Json:
            return await world.call("GET", f"{PODS}/work")

        found = await world.wait_until(read, lambda one: one["status"].get("phase") == "Running")
    written = found["metadata"]["annotations"]
    assert written[names.HAMI_BIND_PHASE] == names.BIND_SUCCESS
    for change in ({names.HAMI_ALLOCATED: None}, {names.HAMI_ALLOCATED: ";"}):
        refused = await asyncio.to_thread(partial(tenant.annotate, "work", **change))
        _is_refused(refused, names.HAMI_ALLOCATED)
    policy = {"metax-tech.com/sgpu-qos-policy": "fixed-share"}
    _is_refused(await asyncio.to_thread(partial(tenant.annotate, "work", **policy)), *policy)
    body = {"metadata": {"labels": {"mine": "yes"}, "annotations": {"note": "kept"}}}
    answer = await asyncio.to_thread(tenant.call, "PATCH", f"{PODS}/work", body)
    assert answer.status == 200, answer.body
