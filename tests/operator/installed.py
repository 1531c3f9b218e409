"""Evenkeel installed on a control plane as users install it: rendered, then applied."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane import build, plane

Json = dict[str, Any]

ROOT = Path(__file__).parents[2]
NAMESPACE = "evenkeel-system"
BASE = str(ROOT / "manifests" / "base")
QUEUES = str(ROOT / "manifests" / "queues")
KAI_QUEUES = str(ROOT / "manifests" / "kai-queues")
WEBHOOK = str(ROOT / "manifests" / "queues-webhook")
REBALANCE = str(ROOT / "manifests" / "rebalance")
SURGE = str(ROOT / "manifests" / "rebalance-surge")
IN_PLACE = str(ROOT / "manifests" / "in-place")
CHART = str(ROOT / "manifests" / "chart")
_CRDS = tuple(
    f"crd/{name}.scheduling.evenkeel.dev" for name in ("balancepolicies", "rebalancepolicies")
)


def by_kustomize(cp: plane.ControlPlane) -> None:
    """The two commands of docs/install.md."""
    crds(cp)
    base(cp)


def by_helm(cp: plane.ControlPlane) -> None:
    """The chart with its default values, by a real helm."""
    helm(cp, "install", "evenkeel", CHART, "--create-namespace")
    wait_for_crd(cp)


def crds(cp: plane.ControlPlane) -> None:
    """The first of the two commands: the CRD."""
    cp.kubectl("apply", "--server-side", "-k", str(ROOT / "crds"))
    wait_for_crd(cp)


def base(cp: plane.ControlPlane) -> None:
    """The second command: the scheduler."""
    cp.kubectl("apply", "--server-side", "-k", BASE)


def with_queues(cp: plane.ControlPlane) -> None:
    """The two commands of docs/install.md, for an Evenkeel that manages queues."""
    crds(cp)
    cp.kubectl("apply", "--server-side", "-k", QUEUES)


def with_kai_queues(cp: plane.ControlPlane) -> None:
    """The two commands of docs/install.md, for an Evenkeel that manages KAI's queues."""
    crds(cp)
    cp.kubectl("apply", "--server-side", "-k", KAI_QUEUES)


def with_webhook(cp: plane.ControlPlane) -> None:
    """The two commands of docs/install.md, for an Evenkeel that manages queues and serves a webhook."""
    crds(cp)
    cp.kubectl("apply", "--server-side", "-k", WEBHOOK)


def with_rebalance(cp: plane.ControlPlane) -> None:
    """The two commands of docs/install.md, for an Evenkeel with a process that moves pods."""
    crds(cp)
    cp.kubectl("apply", "--server-side", "-k", REBALANCE)


def with_surge(cp: plane.ControlPlane) -> None:
    """The same, for a process whose policies may have a successor ready before its pod goes."""
    crds(cp)
    cp.kubectl("apply", "--server-side", "-k", SURGE)


def in_place(cp: plane.ControlPlane) -> None:
    """The two commands of docs/migrate.md that put it in kube-scheduler's place."""
    crds(cp)
    cp.kubectl("apply", "--server-side", "-k", IN_PLACE)


def wait_for_crd(cp: plane.ControlPlane) -> None:
    """Until the API server serves the kinds. On a busy machine a CRD has no conditions at first, which kubectl refuses."""
    cp.kubectl("wait", "--for=jsonpath={.status.conditions}", *_CRDS)
    cp.kubectl("wait", "--for=condition=Established", *_CRDS)


def token(cp: plane.ControlPlane, account: str = "evenkeel") -> str:
    """A token of Evenkeel's own ServiceAccount, signed by the API server as for a pod."""
    return cp.kubectl("create", "token", account, "-n", NAMESPACE, "--duration=8h").strip()


def helm(cp: plane.ControlPlane, *arguments: str, check: bool = True) -> str:
    """Run helm as the admin in Evenkeel's namespace; return what it printed.

    Raises:
        RuntimeError: it failed. With `check=False` its complaint is part of the answer.
    """
    where = (f"--kubeconfig={cp.kubeconfig()}", f"--namespace={NAMESPACE}")
    return _run_helm(*arguments, *where, folder=cp.folder, check=check)


def rendered_chart(folder: Path, *arguments: str, check: bool = True) -> str:
    """What `helm template` makes of the chart."""
    where = ("--namespace", NAMESPACE, *arguments)
    return _run_helm("template", "evenkeel", CHART, *where, folder=folder, check=check)


def objects(text: str) -> list[Json]:
    """The objects of a rendering."""
    return [one for one in yaml.safe_load_all(text) if one]


def _run_helm(*arguments: str, folder: Path, check: bool) -> str:
    done = subprocess.run(
        [build.ensure("helm")["helm"], *arguments],
        env={"HOME": str(folder)},  # where it keeps what it learns of the API server
        capture_output=True,
        text=True,
        check=False,
    )
    if check and done.returncode:
        raise RuntimeError(f"helm {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout if check else done.stdout + done.stderr


def deployment_args(cp: plane.ControlPlane) -> list[str]:
    """What the installed Deployment gives `evenkeel`, with its configuration as a file here and any port."""
    read = ("get", "-n", NAMESPACE, "-o", "json")
    deployment = json.loads(cp.kubectl(*read, "deployment/evenkeel"))
    pod = deployment["spec"]["template"]["spec"]
    (name,) = (volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume)
    config = cp.folder / "config.yaml"
    config.write_text(json.loads(cp.kubectl(*read, f"configmap/{name}"))["data"]["config.yaml"])
    given: list[str]
    command, *given = pod["containers"][0]["args"]
    assert command == "run"
    given = [one.replace("$(POD_NAMESPACE)", NAMESPACE) for one in given]
    here = {
        "/etc/evenkeel/config.yaml": str(config),
        "--port=8080": "--port=0",
    }
    for there, replacement in here.items():
        assert any(there in one for one in given)
        given = [one.replace(there, replacement) for one in given]
    return given


def lint(folder: Path) -> str:
    """What `helm lint` says of the chart; a warning is an error."""
    return _run_helm("lint", "--strict", CHART, folder=folder, check=True)
