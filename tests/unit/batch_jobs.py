"""A Job that waits, its workload, and the flavor in which it gets quota."""

from __future__ import annotations

from typing import Any

from scheduler.api import names
from scheduler.api.jobs import table, workloads
from scheduler.api.jobs.parts import MAIN

Json = dict[str, Any]
ROW = table.BY_NAME["Job"]
SPOT: Json = {
    "nodeLabels": {"pool": "spot"},
    "tolerations": [{"key": "spot", "operator": "Exists"}],
}


def make_job(**spec: Any) -> Json:
    template = {
        "metadata": {"labels": {"mine": "1"}},
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
            "nodeSelector": {"disk": "fast"},
        },
    }
    meta = {
        "name": "train", "namespace": "team", "uid": "u1", "generation": 3, "resourceVersion": "7",
        "labels": {names.KUEUE_QUEUE: "q"}, "annotations": {},
    }  # fmt: skip
    return {"metadata": meta, "spec": {"template": template, "suspend": True, **spec}}


def make_admitted(workload: Json, n: int = 1, **more: Any) -> Json:
    """The workload with quota in the flavor "spot"."""
    assigned = {"name": MAIN, "flavors": {"cpu": "spot"}, "count": n}
    status = {
        "admission": {"clusterQueue": "all", "podSetAssignments": [assigned]},
        "conditions": [{"type": "Admitted", "status": "True"}],
        **more,
    }
    return workload | {"status": status}


def make_workload(job: Json) -> Json:
    return workloads.make_workload(ROW.kind, job, ROW.list_parts(job))
