"""kubectl against the embedded cluster: what a user would type first has to work."""

import asyncio
import importlib
import json
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from scheduler.embedded import cluster
from scheduler.embedded.agents import fleet as agents
from scheduler.embedded.agents import nodes

Kubectl = Callable[..., Awaitable[str]]

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test.evenkeel.dev}
spec:
  group: test.evenkeel.dev
  scope: Cluster
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: Policy, type: string, jsonPath: .spec.nodePolicy}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [nodePolicy]
            properties:
              priority: {type: integer}
              nodePolicy: {type: string, enum: [binpack, spread]}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
  - name: c
    image: nginx:1
    resources: {limits: {cpu: 500m}}
"""


class KubectlError(AssertionError):
    """kubectl ended with an error; the text is what it printed."""


@pytest.fixture(scope="session")
def kubectl_binary() -> str:
    """The kubectl to use; there must be one here, so its absence is a failure, not a skip."""
    if named := os.environ.get("KUBECTL"):
        return named
    try:
        build = importlib.import_module("tests.controlplane.build")
    except ImportError:
        build = None
    if build is not None:
        return str(build.ensure("kubectl")["kubectl"])
    found = shutil.which("kubectl")
    assert found, "no kubectl: set KUBECTL or put one on the PATH"
    return found


@pytest.fixture
async def running() -> AsyncIterator[cluster.Cluster]:
    async with cluster.start() as found, agents.run(found.url):
        yield found


@pytest.fixture
def kubectl(running: cluster.Cluster, kubectl_binary: str, tmp_path: Path) -> Kubectl:
    """Run kubectl and return what it printed; input text goes to its standard input."""
    config = running.write_kubeconfig(tmp_path / "kubeconfig")
    environment = {**os.environ, "HOME": str(tmp_path), "KUBECONFIG": str(config)}

    async def run(*words: str, text: str = "") -> str:
        process = await asyncio.create_subprocess_exec(
            kubectl_binary,
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
        )
        out, _ = await asyncio.wait_for(process.communicate(text.encode()), 60)
        if process.returncode:
            raise KubectlError(out.decode())
        return out.decode()

    return run


def columns(printed: str) -> list[list[str]]:
    return [line.split() for line in printed.strip().splitlines()]


async def test_pods_from_apply_to_delete(running: cluster.Cluster, kubectl: Kubectl) -> None:
    assert await kubectl("apply", "-f", "-", text=POD) == "pod/web created\n"
    assert await kubectl("apply", "-f", "-", text=POD) == "pod/web unchanged\n"
    changed = POD.replace("nginx:1", "nginx:2").replace("app: web", "app: web2")
    assert await kubectl("apply", "-f", "-", text=changed) == "pod/web configured\n"
    header, row = columns(await kubectl("get", "pods", "-o", "wide"))
    assert header[:5] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row[:4] == ["web", "0/1", "Pending", "0"]
    assert await kubectl("label", "pod", "web", "tier=front") == "pod/web labeled\n"
    assert await kubectl("annotate", "pod", "web", "k=v") == "pod/web annotated\n"
    stored = json.loads(await kubectl("get", "pod", "web", "-o", "json"))
    assert stored["metadata"]["labels"] == {"app": "web2", "tier": "front"}
    assert stored["spec"]["containers"][0]["image"] == "nginx:2"
    assert running.store.get("pods", "default", "web") is not None
    assert "deleted" in await kubectl("delete", "pod", "web", "--timeout=30s")
    assert running.store.get("pods", "default", "web") is None


async def test_a_bound_pod_is_waited_for_described_and_deleted(
    running: cluster.Cluster, kubectl: Kubectl
) -> None:
    node = json.dumps(nodes.make_plain_node("n1"))
    assert await kubectl("create", "-f", "-", text=node) == "node/n1 created\n"
    await kubectl("create", "-f", "-", text=POD)
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "web"},
        "target": {"kind": "Node", "name": "n1"},
    }
    path = "/api/v1/namespaces/default/bindings"
    await kubectl("create", "--raw", path, "-f", "-", text=json.dumps(binding))
    met = await kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=30s")
    assert met == "pod/web condition met\n"
    uid = (running.store.get("pods", "default", "web") or {})["metadata"]["uid"]
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "web.1", "namespace": "default"},
        "regarding": {"kind": "Pod", "name": "web", "namespace": "default", "uid": uid},
        "reason": "Scheduled",
        "note": "Successfully assigned default/web to n1",
        "type": "Normal",
        "action": "Binding",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "evenkeel",
        "reportingInstance": "evenkeel-0",
    }
    await kubectl("create", "-f", "-", text=json.dumps(event))
    described = await kubectl("describe", "pod", "web")
    assert "n1" in described
    assert "Successfully assigned default/web to n1" in described
    assert "Successfully assigned default/web to n1" in await kubectl("events")
    assert "default                     web" in await kubectl("describe", "node", "n1")
    found = await kubectl("get", "pods", "--field-selector", "spec.nodeName=n1", "-o", "name")
    assert found == "pod/web\n"
    raw = json.loads(await kubectl("get", "--raw", "/api/v1/namespaces/default/pods/web"))
    assert raw["spec"]["nodeName"] == "n1"
    # The kubelet agent finishes what the graceful delete began.
    await kubectl("delete", "pod", "web", "--timeout=30s")
    assert running.store.get("pods", "default", "web") is None


async def test_nodes_are_cordoned_and_tainted(running: cluster.Cluster, kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", text=json.dumps(nodes.make_gpu_node("g1")))
    assert await kubectl("cordon", "g1") == "node/g1 cordoned\n"
    assert columns(await kubectl("get", "nodes"))[1][1] == "Ready,SchedulingDisabled"
    assert await kubectl("uncordon", "g1") == "node/g1 uncordoned\n"
    assert await kubectl("taint", "node", "g1", "gpu=only:NoSchedule") == "node/g1 tainted\n"
    node = running.store.get("nodes", "", "g1") or {}
    assert node["spec"]["taints"] == [{"key": "gpu", "value": "only", "effect": "NoSchedule"}]
    assert await kubectl("taint", "node", "g1", "gpu-") == "node/g1 untainted\n"
    assert "nvidia.com/gpu:     40" in await kubectl("describe", "node", "g1")


async def test_custom_kinds_are_served_validated_and_printed(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", text=CRD)
    wait = ("wait", "--for=condition=Established", "crd/widgets.test.evenkeel.dev")
    assert "condition met" in await kubectl(*wait, "--timeout=30s")
    head = "apiVersion: test.evenkeel.dev/v1alpha1\nkind: Widget\nmetadata: {name: a}\n"
    created = await kubectl("apply", "-f", "-", text=head + "spec: {nodePolicy: spread}\n")
    assert created == "widget.test.evenkeel.dev/a created\n"
    header, row = columns(await kubectl("get", "wd"))
    assert (header, row) == (["NAME", "POLICY"], ["a", "spread"])
    patched = await kubectl("patch", "wd", "a", "--type=merge", "-p", '{"spec":{"priority":3}}')
    assert "patched" in patched
    with pytest.raises(KubectlError, match='supported values: "binpack", "spread"'):
        await kubectl("apply", "-f", "-", text=head + "spec: {nodePolicy: x}\n")
    with pytest.raises(KubectlError, match=r'unknown field "spec\.odd"'):
        await kubectl("apply", "-f", "-", text=head + "spec: {nodePolicy: spread, odd: 1}\n")
    await kubectl("delete", "wd", "--all")
    await kubectl("delete", "crd", "widgets.test.evenkeel.dev", "--timeout=30s")


async def test_server_side_apply_tells_managers_apart(kubectl: Kubectl) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1', y: '2'}\n"
    apply = ("apply", "--server-side", "-f", "-")
    assert await kubectl(*apply, text=text) == "configmap/a serverside-applied\n"
    await kubectl(*apply, text=text.replace(", y: '2'", ""))
    assert await kubectl("get", "cm", "a", "-o", "jsonpath={.data}") == '{"x":"1"}'
    other = text.replace("'1'", "'9'")
    with pytest.raises(KubectlError, match=r'conflict with "kubectl": \.data\.x'):
        await kubectl(*apply, "--field-manager=other", text=other)
    await kubectl(*apply, "--field-manager=other", "--force-conflicts", text=other)
    assert await kubectl("get", "cm", "a", "-o", "jsonpath={.data.x}") == "9"


async def test_the_manifests_are_applied_twice_as_a_user_would(kubectl: Kubectl) -> None:
    """All kinds of a deployment of Evenkeel are served; what runs Deployments is not here."""
    manifests = Path(__file__).parents[2] / "manifests" / "base"
    for _ in range(2):
        printed = await kubectl("apply", "--server-side", "-k", str(manifests))
        lines = printed.strip().splitlines()
        assert len(lines) >= 10
        assert all(line.endswith(" serverside-applied") for line in lines)
    assert "evenkeel" in await kubectl("get", "deployments", "-n", "evenkeel-system")
    assert "evenkeel" in await kubectl("describe", "clusterrole", "evenkeel")


async def test_a_kind_that_is_not_served_is_said_to_be_unknown(kubectl: Kubectl) -> None:
    body = "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: a}\n"
    with pytest.raises(KubectlError, match='no matches for kind "Gadget"'):
        await kubectl("apply", "--server-side", "-f", "-", text=body)


async def test_a_watch_prints_what_happens(
    running: cluster.Cluster, kubectl: Kubectl, kubectl_binary: str, tmp_path: Path
) -> None:
    config = running.write_kubeconfig(tmp_path / "watch")
    words = ("get", "pods", "-w", "--output-watch-events", f"--kubeconfig={config}")
    process = await asyncio.create_subprocess_exec(
        kubectl_binary, *words, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        await kubectl("create", "-f", "-", text=POD)
        header = (await asyncio.wait_for(process.stdout.readline(), 30)).split()
        row = (await asyncio.wait_for(process.stdout.readline(), 30)).split()
    finally:
        process.terminate()
        await process.wait()
    assert header[:2] == [b"EVENT", b"NAME"]
    assert row[:2] == [b"ADDED", b"web"]


async def test_small_kinds_can_be_created_by_name(
    running: cluster.Cluster, kubectl: Kubectl
) -> None:
    """These commands send protobuf, which the server reads for a few kinds only."""
    assert await kubectl("create", "namespace", "team") == "namespace/team created\n"
    await kubectl("create", "configmap", "cm", "-n", "team", "--from-literal=a=b")
    assert (running.store.get("configmaps", "team", "cm") or {})["data"] == {"a": "b"}
    await kubectl("create", "serviceaccount", "sa", "-n", "team")
    await kubectl("create", "priorityclass", "high", "--value=1000", "--description=d")
    found: Any = running.store.get("priorityclasses.scheduling.k8s.io", "", "high")
    assert (found["value"], found["description"]) == (1000, "d")
    assert await kubectl("auth", "can-i", "create", "pods") == "yes\n"
    await kubectl("delete", "namespace", "team", "--timeout=30s")
    assert running.store.get("namespaces", "", "team") is None


async def test_a_node_is_drained(running: cluster.Cluster, kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", text=json.dumps(nodes.make_plain_node("n1")))
    bound = POD.replace("spec:\n", "spec:\n  nodeName: n1\n", 1)
    await kubectl("create", "-f", "-", text=bound)
    await kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=30s")
    printed = await kubectl("drain", "n1", "--force", "--timeout=30s")
    assert "pod/web evicted" in printed
    assert running.store.get("pods", "default", "web") is None
