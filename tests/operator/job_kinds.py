"""The kinds of jobs that other projects have: their CRDs, and a job of each as a user writes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from scheduler.api import names
from tests.controlplane import build
from tests.operator.manifests import container

Json = dict[str, Any]

# Go modules and where they have the CRDs.
_CRDS = {
    "sigs.k8s.io/jobset": ("config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml",),
    "github.com/kubeflow/mpi-operator": ("manifests/base/kubeflow.org_mpijobs.yaml",),
    "github.com/kubeflow/training-operator": tuple(
        f"manifests/base/crds/kubeflow.org_{plural}.yaml"
        for plural in ("jaxjobs", "paddlejobs", "pytorchjobs", "tfjobs", "xgboostjobs")
    ),
    "github.com/kubeflow/trainer/v2": ("manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml",),
    "github.com/ray-project/kuberay/ray-operator": (
        "config/crd/bases/ray.io_rayclusters.yaml",
        "config/crd/bases/ray.io_rayjobs.yaml",
        "config/crd/bases/ray.io_rayservices.yaml",
    ),
}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_crds() -> Iterator[Json]:
    """The CRDs, as the modules have them that Kueue is built from."""
    for module, files in _CRDS.items():
        folder = build.find_sources("kueue", module)
        for file in files:
            yield yaml.load((folder / file).read_text(encoding="utf-8"), Loader=_LOADER)


def make_template(restart: str = "Never") -> Json:
    spec: Json = {
        "schedulerName": names.SCHEDULER,
        "containers": [container(requests={"cpu": "1"})],
        "nodeSelector": {"disk": "fast"},
    }
    return {"spec": spec | ({"restartPolicy": restart} if restart else {})}


def make_jobs(queue: str) -> dict[str, Json]:
    """A job of each kind, with a queue; by the kind."""
    ray = {
        "headGroupSpec": {"rayStartParams": {}, "template": make_template("")},
        "workerGroupSpecs": [
            {
                "groupName": "workers",
                "replicas": 2,
                "minReplicas": 0,
                "maxReplicas": 2,
                "rayStartParams": {},
                "template": make_template(""),
            }
        ],
    }
    replicas = {"restartPolicy": "Never", "template": make_template("")}
    workers = {"Worker": replicas | {"replicas": 2}}

    def make_training(key: str, **first: Json) -> Json:
        return {"runPolicy": {"suspend": True}, key: {**first, **workers}}

    specs: dict[str, Json] = {
        "JobSet": make_job_set_spec(),
        "MPIJob": make_training("mpiReplicaSpecs", Launcher=replicas),
        "PyTorchJob": make_training("pytorchReplicaSpecs", Master=replicas),
        "TFJob": make_training("tfReplicaSpecs", PS=replicas, Chief=replicas),
        "XGBoostJob": make_training("xgbReplicaSpecs", Master=replicas),
        "PaddleJob": make_training("paddleReplicaSpecs", Master=replicas),
        "JAXJob": make_training("jaxReplicaSpecs"),
        "TrainJob": {"suspend": True, "runtimeRef": {"name": "torch"}},
        "RayCluster": {"suspend": True, **ray},
        "RayJob": {
            "suspend": True,
            "entrypoint": "work",
            "submissionMode": "K8sJobMode",
            "shutdownAfterJobFinishes": True,
            "rayClusterSpec": ray,
        },
        "RayService": {"rayClusterConfig": {"suspend": True, **ray}},
    }
    meta = {"labels": {names.KUEUE_QUEUE: queue}, "namespace": "default"}
    return {
        kind: {"metadata": {"name": kind.lower(), **meta}, "spec": spec}
        for kind, spec in specs.items()
    }


def make_job_set_spec() -> Json:
    """A leader, and two Jobs of two workers each."""
    workers = {"parallelism": 2, "completions": 2, "template": make_template()}
    return {
        "suspend": True,
        "replicatedJobs": [
            {"name": "leader", "replicas": 1, "template": {"spec": {"template": make_template()}}},
            {"name": "workers", "replicas": 2, "template": {"spec": workers}},
        ],
    }
