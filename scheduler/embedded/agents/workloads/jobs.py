"""Jobs: pods that run to their end, a number of them at a time, until enough have succeeded."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from scheduler.embedded.agents.workloads import naming, plans

Json = dict[str, Any]

_INDEX = "batch.kubernetes.io/job-completion-index"
_TOO_OFTEN = "Job has reached the specified backoff limit"


@dataclass(slots=True)
class Ended:
    """The pods of a Job that ended, by uid, whether or not they still exist."""

    succeeded: dict[str, str] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def count(self, pods: Sequence[Json]) -> None:
        """Count the pods that have ended by their phases."""
        for pod in pods:
            uid = pod["metadata"]["uid"]
            if plans.read_phase(pod) == "Succeeded":
                self.succeeded[uid] = _read_index(pod)
            elif plans.read_phase(pod) == "Failed":
                self.failed.add(uid)


def make_plan(
    owner: Json,
    pods: Sequence[Json],
    now: str,
    ended: Ended,
    failed: Sequence[plans.Note] = (),
) -> plans.Plan:
    """Return the pods to start or end; ``failed`` says why the last pods could not be made."""
    spec, old = owner["spec"], owner.get("status") or {}
    if any(one["type"] in {"Complete", "Failed"} for one in old.get("conditions") or ()):
        return plans.Plan(status=old)
    ended.count(pods)
    completions = spec.get("completions")
    parallelism = plans.read_number(spec.get("parallelism"), 1)
    live = [pod for pod in pods if not plans.is_going(pod) and not plans.has_ended(pod)]
    indexed = spec.get("completionMode") == "Indexed"
    done = len(set(ended.succeeded.values())) if indexed else len(ended.succeeded)
    complete = (
        done >= plans.read_number(completions, 1)
        if completions is not None
        else bool(done) and not live
    )
    broken = len(ended.failed) > plans.read_number(spec.get("backoffLimit"), 6)
    # Without a number to reach, no pod is started after the first success; running pods go on.
    without = len(live) if done else parallelism
    left = without if completions is None else completions - done
    wanted, notes = plans.cap_pods("Job", min(parallelism, max(0, left)))
    if complete or broken or spec.get("suspend") or plans.is_going(owner):
        wanted = 0
    create = _make_pods(owner, live, ended, wanted - len(live))
    surplus = plans.sort_by_deletion(live)[: max(0, len(live) - wanted)]
    if complete:
        notes = [plans.Note("Completed", "Job completed")]
    elif broken:
        notes = [plans.Note("BackoffLimitExceeded", _TOO_OFTEN, "Warning")]
    said = _list_conditions(spec, complete=complete, broken=broken)
    said += plans.make_failure(
        [*failed, *(note for note in notes if note.reason == "FailedCreate")]
    )
    active = 0 if complete or broken else len(live)
    status: Json = {
        "active": active,
        "ready": sum(plans.is_ready(pod) for pod in live) if active else 0,
        "succeeded": done,
        "failed": len(ended.failed),
        "startTime": old.get("startTime", now),
        "conditions": plans.make_conditions(old, said, now),
    }
    if indexed:
        reached = (int(index) for index in ended.succeeded.values() if index.isdecimal())
        status["completedIndexes"] = join_intervals(reached)
    if complete:
        status["completionTime"] = now
    return plans.Plan(create=create, delete=surplus, status=status, notes=notes)


def _list_conditions(spec: Json, *, complete: bool, broken: bool) -> list[plans.Said]:
    """Return the conditions of a Job; an API server requires the end and its cause together."""
    kinds: tuple[str, ...] = ()
    if complete:
        kinds, reason = ("SuccessCriteriaMet", "Complete"), "CompletionsReached"
        text = "Reached expected number of succeeded pods"
    elif broken:
        kinds, reason, text = ("FailureTarget", "Failed"), "BackoffLimitExceeded", _TOO_OFTEN
    elif spec.get("suspend"):
        kinds, reason, text = ("Suspended",), "JobSuspended", "Job suspended"
    return [plans.Said(kind, status=True, reason=reason, message=text) for kind in kinds]


def join_intervals(numbers: Iterable[int]) -> str:
    """Write numbers as a Job's status does: ``1,3-5``."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][-1] == number - 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)


def _read_index(pod: Json) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(_INDEX, ""))


def _make_pods(owner: Json, live: Sequence[Json], ended: Ended, missing: int) -> list[Json]:
    if missing <= 0:
        return []
    meta, spec = owner["metadata"], owner["spec"]
    reference = naming.make_owner_reference("batch/v1", "Job", owner)
    labels = {
        prefix + name: value
        for prefix in ("", "batch.kubernetes.io/")
        for name, value in (("controller-uid", meta["uid"]), ("job-name", meta["name"]))
    }
    if spec.get("completionMode") != "Indexed":
        return [
            naming.make_pod(spec["template"], reference, namespace=meta["namespace"], labels=labels)
            for _ in range(missing)
        ]
    taken = {*ended.succeeded.values(), *map(_read_index, live)}
    completions = plans.read_number(spec.get("completions"), 1)
    # Among so many indexes there are enough free ones.
    looked_at = range(min(completions, missing + len(taken)))
    free = [number for number in looked_at if str(number) not in taken][:missing]
    pods = []
    for number in free:
        pod = naming.make_pod(
            spec["template"],
            reference,
            namespace=meta["namespace"],
            labels={**labels, _INDEX: str(number)},
            annotations={_INDEX: str(number)},
        )
        pod["metadata"]["generateName"] = f"{meta['name']}-{number}-"
        pod["spec"]["hostname"] = f"{meta['name']}-{number}"
        pods.append(pod)
    return pods
