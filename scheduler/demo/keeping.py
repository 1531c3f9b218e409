"""What is said when the cluster is kept: what to type, where to look, and what it is not."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

from rich.console import Console

from scheduler.demo.operator import Operator

# Tried by a test, one after another, as they are printed.
COMMANDS = (
    "kubectl get pods -o wide",
    "kubectl get nodes",
    "kubectl describe pod {pod}",
    "kubectl get events",
    "kubectl create deployment web --image=nginx --replicas=3",
    "kubectl rollout status deployment web",
    "kubectl scale deployment web --replicas=5",
    "kubectl delete deployment web",
)
_LIMITS = (
    "Deployments, ReplicaSets, StatefulSets, Jobs and kubectl scale work; DaemonSets and CronJobs"
    " are refused. No container runs: pods say that they do. A Job's pod ends after the seconds in"
    " its annotation evenkeel.dev/run-seconds. CEL rules of the CRD are not evaluated here: a"
    " BalancePolicy that breaks one is taken, and its status says what is wrong."
)


async def keep(console: Console, kubeconfig: Path, pod: str, operator: Operator) -> None:
    """Say how to use the cluster, and return when interrupted.

    Args:
        console: where to say it.
        kubeconfig: of the cluster.
        pod: one that is there.
        operator: what places pods on it.
    """
    lines = [
        "\nThe cluster and the pods of the last pattern stay. In another terminal:",
        f"  export KUBECONFIG={shlex.quote(str(kubeconfig))}",
        *(f"  {command.format(pod=pod)}" for command in COMMANDS),
        "The operator, which is started again should it end:",
        f"  process  {operator.process_id}",
        f"  probes   {operator.address}/readyz",
        f"  metrics  {operator.address}/metrics",
        f"  log      {operator.log}",
    ]
    for line in lines:
        # Not broken into lines: it is there to be copied.
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    console.print(_LIMITS, markup=False, highlight=False, style="dim")
    console.print("Ctrl-C ends it.")
    try:
        while True:
            operator.check()
            await asyncio.sleep(1.0)
    except asyncio.CancelledError:
        # An interrupt is how this ends, not a failure.
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        console.print("ending the operator, then the cluster")
