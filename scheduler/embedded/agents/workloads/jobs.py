"""Jobs: pods that run to their end, so many at a time, until enough have succeeded."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from scheduler.embedded.agents.workloads import naming, plans

Json = dict[str, Any]

_INDEX = "batch.kubernetes.io/job-completion-index"
_TOO_OFTEN = "Job has reached the specified backoff limit"


@dataclass(slots=True)
class Ended:
    """Pods of one Job that ended, by uid, whether or not they are still there."""

    succeeded: dict[str, str] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def count(self, pods: Sequence[Json]) -> None:
        """Take in what the pods' phases say."""
        for pod in pods:
            uid = pod["metadata"]["uid"]
            if plans.phase(pod) == "Succeeded":
                self.succeeded[uid] = _index(pod)
            elif plans.phase(pod) == "Failed":
                self.failed.add(uid)


def plan(
    owner: Json,
    pods: Sequence[Json],
    now: str,
    ended: Ended,
    failed: Sequence[plans.Note] = (),
) -> plans.Plan:
    """Return the pods to start or end; ``failed`` says why the last ones could not be made."""
    spec, old = owner["spec"], owner.get("status") or {}
    if any(one["type"] in {"Complete", "Failed"} for one in old.get("conditions") or ()):
        return plans.Plan(status=old)
    ended.count(pods)
    completions = spec.get("completions")
    parallelism = plans.number(spec.get("parallelism"), 1)
    live = [pod for pod in pods if not plans.going(pod) and not plans.ended(pod)]
    indexed = spec.get("completionMode") == "Indexed"
    done = len(set(ended.succeeded.values())) if indexed else len(ended.succeeded)
    complete = (
        done >= plans.number(completions, 1) if completions is not None else bool(done) and not live
    )
    broken = len(ended.failed) > plans.number(spec.get("backoffLimit"), 6)
    # Without a number to reach, the first success ends the starting of pods; those that run go on.
    without = len(live) if done else parallelism
    left = without if completions is None else completions - done
    wanted, notes = plans.capped("Job", min(parallelism, max(0, left)))
    if complete or broken or spec.get("suspend") or plans.going(owner):
        wanted = 0
    create = _pods(owner, live, ended, wanted - len(live))
    surplus = plans.first_to_go(live)[: max(0, len(live) - wanted)]
    if complete:
        notes = [plans.Note("Completed", "Job completed")]
    elif broken:
        notes = [plans.Note("BackoffLimitExceeded", _TOO_OFTEN, "Warning")]
    said = _said(spec, complete=complete, broken=broken)
    said += plans.failure([*failed, *(note for note in notes if note.reason == "FailedCreate")])
    active = 0 if complete or broken else len(live)
    status: Json = {
        "active": active,
        "ready": sum(plans.ready(pod) for pod in live) if active else 0,
        "succeeded": done,
        "failed": len(ended.failed),
        "startTime": old.get("startTime", now),
        "conditions": plans.conditions(old, said, now),
    }
    if indexed:
        reached = (int(index) for index in ended.succeeded.values() if index.isdecimal())
        status["completedIndexes"] = intervals(reached)
    if complete:
        status["completionTime"] = now
    return plans.Plan(create=create, delete=surplus, status=status, notes=notes)


def _said(spec: Json, *, complete: bool, broken: bool) -> list[plans.Said]:
    """Return the conditions of a Job; an API server wants the end and what led to it together."""
    kinds: tuple[str, ...] = ()
    if complete:
        kinds, reason = ("SuccessCriteriaMet", "Complete"), "CompletionsReached"
        text = "Reached expected number of succeeded pods"
    elif broken:
        kinds, reason, text = ("FailureTarget", "Failed"), "BackoffLimitExceeded", _TOO_OFTEN
    elif spec.get("suspend"):
        kinds, reason, text = ("Suspended",), "JobSuspended", "Job suspended"
    return [plans.Said(kind, status=True, reason=reason, message=text) for kind in kinds]


def intervals(numbers: Iterable[int]) -> str:
    """Write numbers as a Job's status does: ``1,3-5``."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][-1] == number - 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)


def _index(pod: Json) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(_INDEX, ""))


def _pods(owner: Json, live: Sequence[Json], ended: Ended, missing: int) -> list[Json]:
    if missing <= 0:
        return []
    meta, spec = owner["metadata"], owner["spec"]
    reference = naming.owner_reference("batch/v1", "Job", owner)
    labels = {
        prefix + name: value
        for prefix in ("", "batch.kubernetes.io/")
        for name, value in (("controller-uid", meta["uid"]), ("job-name", meta["name"]))
    }
    if spec.get("completionMode") != "Indexed":
        return [
            naming.pod_of(spec["template"], reference, namespace=meta["namespace"], labels=labels)
            for _ in range(missing)
        ]
    taken = {*ended.succeeded.values(), *map(_index, live)}
    completions = plans.number(spec.get("completions"), 1)
    # No more than what is asked and what is taken need be looked at to find enough that are free.
    looked_at = range(min(completions, missing + len(taken)))
    free = [number for number in looked_at if str(number) not in taken][:missing]
    pods = []
    for number in free:
        pod = naming.pod_of(
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
