"""Prints the text of ``demo --keep``: which commands to type, where to look, and what does not work."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

from rich.console import Console

from scheduler.demo.operator import Operator

# A test types these commands one after another, as they are printed.
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
    "What works: Deployments, ReplicaSets, StatefulSets, Jobs, kubectl scale, and nodes that you"
    " apply (their kubelet and HAMi's device plugin are simulated). DaemonSets and CronJobs are"
    " refused. No container runs: a pod only reports that it runs, so kubectl logs, exec, attach"
    " and port-forward are refused. A Job's pod ends after the number of seconds in its annotation"
    " evenkeel.dev/run-seconds. The CEL rules of the CRD are not checked: a BalancePolicy that"
    " breaks one is accepted, and its status says what is wrong."
)


async def keep_running(console: Console, kubeconfig: Path, pod: str, operator: Operator) -> None:
    """Print how to use the cluster, and return when interrupted.

    Args:
        console: where to print it.
        kubeconfig: the kubeconfig of the cluster.
        pod: the name of a pod that runs on the cluster.
        operator: the operator that places pods on the cluster.
    """
    lines = [
        "\nThe cluster keeps running, with the pods of the last pattern on it.\nType in another terminal:",
        f"  export KUBECONFIG={shlex.quote(str(kubeconfig))}",
        *(f"  {command.format(pod=pod)}" for command in COMMANDS),
        "The operator (if it ends, it is started again):",
        f"  process  {operator.process_id}",
        f"  probes   {operator.address}/readyz",
        f"  metrics  {operator.address}/metrics",
        f"  log      {operator.log}",
    ]
    for line in lines:
        # Without line breaks, so that a line can be copied.
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    console.print(_LIMITS, markup=False, highlight=False, style="dim")
    console.print("Press Ctrl-C to stop the operator and the cluster.")
    try:
        while True:
            operator.check()
            await asyncio.sleep(1.0)
    except asyncio.CancelledError:
        # The user ends the demo by an interrupt, which is no failure.
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        console.print("stopping the operator, then the cluster")
