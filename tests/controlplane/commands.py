"""What each program of the control plane is told on its command line, and why."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# The controllers that complete what a scheduler's tests create. The node lifecycle controller is
# left out: it would find that no kubelet reports and taint every node that is not real.
CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "persistentvolume-binder-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "serviceaccount-controller",
    "statefulset-controller",
)


# Pods bound to nodes start at once, and end.
STAGES = Path(__file__).with_name("kwok-stages.yaml")


def etcd(program: Path, folder: Path, *, port: int, peer_port: int) -> list[str | Path]:
    """A store of one member; it may forget on a power cut, for which it writes much faster."""
    client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
    return [
        program,
        "--name=evenkeel",
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=evenkeel={peer}",
        f"--quota-backend-bytes={8 << 30}",
        "--log-level=warn",
        "--unsafe-no-fsync",
    ]


def kube_apiserver(
    program: Path, folder: Path, *, port: int, etcd_port: int, tokens: Path, extra: Sequence[str]
) -> list[str | Path]:
    """An API server that makes its own certificate and signs service accounts with its key.

    It writes the pair into --cert-dir before it reads the keys for service accounts, so that one
    file serves both and nothing else has to make keys. Without kubelets nothing ever clears the
    taint that TaintNodesByCondition gives to new nodes, and no controller makes the account that
    ServiceAccount asks of every pod.
    """
    key = folder / "certificates" / "apiserver.key"
    return [
        program,
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={key.parent}",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.96.0.0/16",
        f"--token-auth-file={tokens}",
        "--authorization-mode=RBAC",
        "--allow-privileged=true",
        "--endpoint-reconciler-type=none",  # it refuses to publish a loopback address
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
        *extra,
    ]


def kube_scheduler(
    program: Path, folder: Path, *, port: int, config: Mapping[str, Any], extra: Sequence[str]
) -> list[str | Path]:
    """kube-scheduler with a configuration file."""
    file = folder / "kube-scheduler.json"
    file.write_text(json.dumps(config, indent=2))
    return [program, f"--config={file}", *_serving(folder, "kube-scheduler", port), *extra]


def scheduler_config(
    kubeconfig: Path, *, qps: float, burst: int, changes: Mapping[str, Any] | None
) -> dict[str, Any]:
    """kube-scheduler's configuration; `changes` replace whole top-level fields."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": qps, "burst": burst},
        "leaderElection": {"leaderElect": False},
        **(changes or {}),
    }


def kube_controller_manager(
    program: Path,
    folder: Path,
    *,
    port: int,
    kubeconfig: Path,
    controllers: Sequence[str],
    extra: Sequence[str],
) -> list[str | Path]:
    """Only the named controllers, in one process, as one user."""
    certificates = folder / "certificates"
    return [
        program,
        f"--kubeconfig={kubeconfig}",
        f"--controllers={','.join(controllers)}",
        f"--service-account-private-key-file={certificates / 'apiserver.key'}",
        f"--root-ca-file={certificates / 'apiserver.crt'}",
        "--leader-elect=false",
        "--kube-api-qps=1000",
        "--kube-api-burst=1000",
        *_serving(folder, "kube-controller-manager", port),
        *extra,
    ]


def kwok(
    program: Path, *, port: int, kubeconfig: Path, stages: Path, extra: Sequence[str]
) -> list[str | Path]:
    """kwok playing the kubelet of every node, as the stages say."""
    return [
        program,
        f"--kubeconfig={kubeconfig}",
        f"--config={stages}",
        f"--server-address=127.0.0.1:{port}",
        "--manage-all-nodes=true",
        "--node-lease-duration-seconds=0",  # nobody looks for heartbeats here
        *extra,
    ]


def _serving(folder: Path, name: str, port: int) -> list[str]:
    """Let health and metrics be read without asking the API server who is reading."""
    return [
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder / name}",
        "--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics",
    ]
