"""A job, its workloads, and all others who do something with them, in a process."""

from __future__ import annotations

import copy
from typing import Any

from scheduler.api import names
from scheduler.api.jobs import changes, table, workloads
from scheduler.api.jobs.parts import has_condition
from scheduler.kube.jobs.deciding import find_deed
from scheduler.kube.jobs.deeds import (
    Deed,
    DropWorkload,
    MakeWorkload,
    SetImportance,
    WriteJob,
    WriteWorkload,
)
from scheduler.kube.jobs.scene import Scene
from scheduler.kube.queues import conditions
from tests.unit.jsonpatch import apply_patch

Json = dict[str, Any]
_SPOT = {"nodeLabels": {"pool": "spot"}}
_DEEDS = 12


def merge(found: Any, patch: Any) -> Any:
    """Apply a merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    made = dict(found) if isinstance(found, dict) else {}
    for key, one in patch.items():
        if one is None:
            made.pop(key, None)
        else:
            made[key] = merge(made.get(key), one)
    return made


def _is_owned(workload: Json) -> bool:
    """Whether the watch shows a workload as one of the job, by kind and name."""
    owner = workloads.find_controller(workload)
    return owner is not None and (owner["kind"], owner["name"]) == ("Job", "j")


class Small:
    """A job, its workloads, and what an API server, the Job's controller and the scheduler do with them."""

    def __init__(self) -> None:
        self.row = table.BY_NAME["Job"]
        template = {"spec": {"containers": [{"name": "main", "image": "a"}]}}
        spec = {"template": template, "parallelism": 3, "completions": 3}
        labels = {names.KUEUE_QUEUE: "q"}
        meta = {"name": "j", "namespace": "n", "uid": "u", "generation": 1, "labels": labels}
        self.job: Json | None = {"metadata": meta, "spec": spec, "status": {}}
        self.workloads: list[Json] = []
        self.watches_pods = False

    def make_scene(self) -> Scene:
        prebuilt = workloads.name_prebuilt(self.job) if self.job is not None else ""
        named = [one for one in self.workloads if one["metadata"]["name"] == prebuilt]
        return Scene(
            row=self.row,
            job=self.job,
            workloads=[one for one in self.workloads if _is_owned(one)],
            prebuilt=named[0] if named else None,
            flavors={"spot": _SPOT},
            now=1e9,
            watches_pods=self.watches_pods,
        )

    def settle(self) -> list[Deed]:
        """Do all there is to do; what was done."""
        done: list[Deed] = []
        while (deed := find_deed(self.make_scene())) is not None:
            done.append(deed)
            assert len(done) < _DEEDS, f"without an end: {done}"
            self.carry_out(deed)
        return done

    def carry_out(self, deed: Deed) -> None:
        match deed:
            case MakeWorkload(body):
                n = len(self.workloads)
                created = f"2026-01-01T00:00:{n:02}Z"
                meta = body["metadata"] | {"uid": f"w{n}", "generation": 1}
                meta["creationTimestamp"] = created
                self.workloads.append(body | {"metadata": meta})
            case WriteWorkload(workload, patch):
                at = self.workloads.index(workload)
                self.workloads[at] = merge(workload, patch)
            case DropWorkload(workload, may_stay):
                at = self.workloads.index(workload)
                meta = workload["metadata"] | {"finalizers": []}
                self.workloads[at] = workload | {"metadata": meta}
                if not may_stay or "deletionTimestamp" in meta:
                    del self.workloads[at]
            case WriteJob(change):
                assert self.job is not None
                self.job = apply_patch(self.job, change.operations)
                self.job["metadata"]["generation"] += not change.is_status
            case SetImportance(workload):
                at = self.workloads.index(workload)
                label = self.job["metadata"]["labels"][names.KUEUE_CLASS]  # type: ignore[index]
                reference = {"kind": "WorkloadPriorityClass", "name": label}
                spec = {"spec": {"priorityClassRef": reference}}
                self.workloads[at] = merge(workload, spec)

    def settle_with_pods(self) -> list[Deed]:
        """Do all there is to do, while the Job's controller follows; what was done."""
        done = []
        for _ in range(4):
            done += self.settle()
            if self.job is not None:
                self.run_pods()
        return done

    # What others do.

    def run_pods(self) -> None:
        """As the Job's controller: pods run as long as the job may run."""
        assert self.job is not None
        status = self.job["status"]
        runs = not self.job["spec"].get("suspend")
        status["active"] = 3 - status.get("succeeded", 0) if runs else 0
        held = {"type": "Suspended", "status": str(not runs)}
        status["conditions"] = [held]
        if runs:
            status.setdefault("startTime", "2026-01-01T00:00:00Z")

    def admit(self, n: int = 3, at: int = 0) -> None:
        """As the scheduler: give the workload at a place quota for n pods, and let it run."""
        workload = self.workloads[at]
        changing = conditions.Conditions((), 1, 1e9)
        for kind in ("QuotaReserved", "Admitted"):
            changing.set(kind, kind, "", is_true=True)
        given = {"name": "main", "count": n, "flavors": {"cpu": "spot"}}
        admission = {"clusterQueue": "all", "podSetAssignments": [given]}
        status = {"admission": admission, "conditions": changing.write()}
        self.workloads[at] = workload | {"status": workload.get("status", {}) | status}

    def evict(self, reason: str = "Preempted", at: int = 0) -> None:
        found = self.workloads[at]["status"]["conditions"]
        found.append({"type": "Evicted", "status": "True", "reason": reason, "message": "go"})

    def is_true(self, kind: str, at: int = 0) -> bool:
        return has_condition(self.workloads[at], kind)

    @property
    def is_suspended(self) -> bool:
        return self.job is not None and changes.is_suspended(table.BY_NAME["Job"], self.job)


def make_running_job(*gates: Json) -> Small:
    """Make a job that runs with quota for its three pods; ``gates``: of its pods."""
    small = Small()
    assert small.job is not None
    if gates:
        small.job["spec"]["template"]["spec"]["schedulingGates"] = list(gates)
    small.job["spec"]["suspend"] = True
    small.settle()
    small.admit()
    small.settle()
    small.run_pods()
    assert not small.is_suspended
    return small
