"""A control plane that the suite can run against: nodes that kwok plays, the controllers it wants, one scheduler."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.controlplane import access, commands, objects, plane, processes
from tests.operator import installed

SCHEDULERS = ("kube-scheduler", "evenkeel")
_HERE = Path(__file__).parent
_KWOK = plane.User("kwok", ("system:masters",))
_CONTROLLERS = (
    *commands.CONTROLLERS,
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "replicationcontroller-controller",
    "root-ca-certificate-publisher-controller",
    "taint-eviction-controller",
)
_N_NODES = 3
_READY_SECONDS = 120.0


@contextmanager
def start(scheduler: str) -> Iterator[plane.ControlPlane]:
    """A cluster whose default scheduler is that one, ready for a spec.

    Raises:
        RuntimeError: the scheduler did not become ready.
    """
    with plane.start(users={"kwok": _KWOK}) as cp:
        cp.kubectl("apply", "--server-side", "-f", str(_HERE / "kubelet.yaml"))
        asyncio.run(objects.create_many(cp, [_node(number) for number in range(_N_NODES)]))
        cp.start_controller_manager(_CONTROLLERS)
        cp.start_kwok(user="kwok", stages=_HERE / "stages.yaml")
        asyncio.run(objects.create_many(cp, [_system_pod(number) for number in range(_N_NODES)]))
        if scheduler == "evenkeel":
            _start_evenkeel(cp)
        else:
            cp.start_scheduler(config={"leaderElection": {"leaderElect": True}})
        yield cp


def _node(number: int) -> objects.Manifest:
    extended = {"ephemeral-storage": "100Gi"}
    node = objects.node(f"node-{number}", cpu=16, memory="64Gi", extended=extended)
    node["status"]["addresses"] = [{"type": "InternalIP", "address": f"10.0.0.{number + 1}"}]
    return node


def _system_pod(number: int) -> objects.Manifest:
    """What a spec expects to run on every node; it waits for a minute in vain before it goes on without."""
    name = f"kube-proxy.fluentd-elasticsearch.node-problem-detector.{number}"
    return objects.pod(name, "kube-system", nodeName=f"node-{number}")


def _start_evenkeel(cp: plane.ControlPlane) -> None:
    """As the manifests install it in kube-scheduler's place: its arguments, its configuration, its rights."""
    installed.in_place(cp)
    (port,) = processes.free_ports(1)
    given = [
        one for one in installed.deployment_args(cp) if not one.startswith(("--port", "--host"))
    ]
    kubeconfig = cp.kubeconfig(token=installed.token(cp))
    command = [sys.executable, "-m", "scheduler", "run", *given, f"--port={port}"]
    child = cp.spawn("evenkeel", [*command, f"--kubeconfig={kubeconfig}"])
    gives_up_at = time.monotonic() + _READY_SECONDS
    while not access.is_ok(f"http://127.0.0.1:{port}/readyz", cp.token):
        if not child.is_running() or time.monotonic() > gives_up_at:
            raise RuntimeError(f"Evenkeel did not become ready:\n{child.tail()}")
        time.sleep(0.1)
