"""Owners of pods: what the object says of the group, of its parts and of their minima.

All pods that exist at once must have a node at once, if the owner does not ask for less. Pods that a controller makes
only when others run have no minimum: waiting for them would have no end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from scheduler.api import names, steering, values, wire
from scheduler.api.groups import objects
from scheduler.api.groups.definitions import Constraint, Definition, GroupKey, Part, Rule
from scheduler.api.groups.readers import kai, kueue, owners, reading, segments
from scheduler.api.groups.readers.reading import Notes
from scheduler.api.groups.readers.shares import Plan, Share, list_least, list_progress
from scheduler.errors import BadInput


def _plan_job(spec: Mapping[str, Any], found: objects.Raw) -> Plan:
    status = values.read_mapping(found.status, "status")
    made = _count_job(spec, "spec")
    completions = reading.read_optional_count(spec, "completions", "spec")
    done = reading.read_optional_count(status, "succeeded", "status") or 0
    left = made if completions is None else max(0, min(made, completions - done))
    share = Share(
        "",
        left,
        spec.get("template"),
        "spec.template",
        made=made,
        spare=(completions or made) - made,
        succeeded=done,
    )
    deadline = spec.get("activeDeadlineSeconds"), "spec.activeDeadlineSeconds"
    return Plan((share,), None, deadline)


def _count_job(spec: Mapping[str, Any], under: str) -> int:
    """Count the pods that a Job runs at once."""
    at_once = reading.read_optional_count(spec, "parallelism", under)
    completions = reading.read_optional_count(spec, "completions", under)
    at_once = 1 if at_once is None else at_once
    return at_once if completions is None else min(at_once, completions)


def _plan_job_set(spec: Mapping[str, Any], found: objects.Raw) -> Plan:
    field = "spec.replicatedJobs"
    order = values.read_mapping(spec.get("startupPolicy"), "spec.startupPolicy")
    in_order = order.get("startupPolicyOrder") == "InOrder"
    succeeded = _count_jobs_that_succeeded(found)
    shares = []
    for i, one in enumerate(reading.read_few(spec.get("replicatedJobs"), field, dict)):
        at = f"{field}[{i}]"
        replicas = reading.read_optional_count(one, "replicas", at)
        job_field = f"{at}.template.spec"
        template = values.read_mapping(one.get("template"), f"{at}.template")
        job = values.read_mapping(template.get("spec"), job_field)
        replicas = 1 if replicas is None else replicas
        name = reading.read_name(one.get("name"), f"{at}.name")
        each = _count_job(job, job_field)
        completions = reading.read_optional_count(job, "completions", job_field) or each
        at_once = 0 if one.get("dependsOn") or (in_order and i > 0) else None
        if at_once is None and _is_exclusive(found, template, f"{at}.template"):
            # The others of each Job are made when its first pod has a node, and are bound to its domain.
            at_once = replicas
        shares.append(
            Share(
                name,
                each * replicas,
                job.get("template"),
                f"{job_field}.template",
                at_once,
                spare=(completions - each) * replicas,
                # The status counts Jobs, and each that has succeeded has as many pods that have.
                succeeded=succeeded.get(name, 0) * completions,
            )
        )
    return Plan(tuple(shares))


def _count_jobs_that_succeeded(found: objects.Raw) -> dict[str, int]:
    """Count the Jobs that have succeeded, by the name of their part."""
    field = "status.replicatedJobsStatus"
    status = values.read_mapping(found.status, "status")
    counts = {}
    for i, one in enumerate(reading.read_few(status.get("replicatedJobsStatus"), field, dict)):
        at = f"{field}[{i}]"
        name = reading.read_name(one.get("name"), f"{at}.name")
        counts[name] = reading.read_optional_count(one, "succeeded", at) or 0
    return counts


def _is_exclusive(found: objects.Raw, template: Mapping[str, Any], at: str) -> bool:
    """Whether each Job of a template has a domain of its own, to which the JobSet's controller binds its pods."""
    meta = values.read_mapping(template.get("metadata"), f"{at}.metadata")
    inner = values.read_mapping(meta.get("annotations"), f"{at}.metadata.annotations")
    return any(
        names.JOBSET_EXCLUSIVE in texts and names.JOBSET_BY_SELECTOR not in texts
        for texts in (found.metadata.annotations or {}, inner)
    )


def _plan_leader_worker_set(spec: Mapping[str, Any], found: objects.Raw) -> Plan:
    field = "spec.leaderWorkerTemplate"
    if spec.get("startupPolicy") == "LeaderReady":
        text = "LeaderReady makes the workers only when the leader runs, so they cannot be a group; write LeaderCreated"
        raise BadInput("spec.startupPolicy", text)
    pair = values.read_mapping(spec.get("leaderWorkerTemplate"), field)
    size = reading.read_optional_count(pair, "size", field, 1) or 1
    leader, leader_field = pair.get("leaderTemplate"), f"{field}.leaderTemplate"
    worker, worker_field = pair.get("workerTemplate"), f"{field}.workerTemplate"
    if leader is None:
        leader, leader_field = worker, worker_field
    is_exclusive = names.LWS_EXCLUSIVE in (found.metadata.annotations or {})
    shares = (
        Share(owners.LEADER, 1, leader, leader_field),
        # In exclusive domains workers are made when the leader has a node, and are bound to its domain.
        Share(owners.WORKERS, size - 1, worker, worker_field, 0 if is_exclusive else None),
    )
    return Plan(shares)


def _plan_training(spec: Mapping[str, Any], found: objects.Raw, key: str, first: str) -> Plan:
    """Plan a job of Kubeflow. The part that leads comes first."""
    field = f"spec.{key}"
    replicas = reading.read_map(spec.get(key), field)
    status = values.read_mapping(found.status, "status")
    counts = values.read_mapping(status.get("replicaStatuses"), "status.replicaStatuses")
    late = spec.get("launcherCreationPolicy") == "WaitForWorkersReady"
    shares = []
    for name in sorted(replicas, key=lambda name: (name != first, name)):
        at = f"{field}.{name}"
        one = values.read_mapping(replicas[name], at)
        total = reading.read_optional_count(one, "replicas", at)
        at_once = 0 if late and name == first else None
        template = one.get("template")
        total = 1 if total is None else total
        share = Share(name.lower(), total, template, f"{at}.template", at_once)
        at = f"status.replicaStatuses.{name}"
        count = values.read_mapping(counts.get(name), at)
        succeeded = reading.read_optional_count(count, "succeeded", at) or 0
        shares.append(share._replace(succeeded=succeeded))
    # MPIJob v1 and PyTorchJob say these in runPolicy too.
    run = values.read_mapping(spec.get("runPolicy"), "spec.runPolicy")
    under = "spec.runPolicy.schedulingPolicy"
    policy = values.read_mapping(run.get("schedulingPolicy"), under)
    return Plan(
        tuple(shares),
        reading.read_optional_count(policy, "minAvailable", under, 1),
        (run.get("activeDeadlineSeconds"), "spec.runPolicy.activeDeadlineSeconds"),
    )


def _plan_mpi_job(spec: Mapping[str, Any], found: objects.Raw) -> Plan:
    return _plan_training(spec, found, "mpiReplicaSpecs", "Launcher")


def _plan_elastic_job(spec: Mapping[str, Any], found: objects.Raw, key: str) -> Plan:
    """Plan a job of which some workers may be enough."""
    plan = _plan_training(spec, found, key, "Master")
    field = "spec.elasticPolicy"
    elastic = values.read_mapping(spec.get("elasticPolicy"), field)
    least = reading.read_optional_count(elastic, "minReplicas", field, 1)
    return plan if plan.minimum is not None else plan._replace(minimum=least)


def _plan_ray_cluster(spec: Mapping[str, Any], _found: objects.Raw) -> Plan:
    head = values.read_mapping(spec.get("headGroupSpec"), "spec.headGroupSpec")
    shares = [Share(names.RAY_HEAD, 1, head.get("template"), "spec.headGroupSpec.template")]
    field = "spec.workerGroupSpecs"
    for i, one in enumerate(reading.read_few(spec.get("workerGroupSpecs"), field, dict)):
        at = f"{field}[{i}]"
        name = reading.read_name(one.get("groupName"), f"{at}.groupName")
        shares.append(Share(name, count_ray_pods(one, at), one.get("template"), f"{at}.template"))
    return Plan(tuple(shares))


def count_ray_pods(group: Mapping[str, Any], at: str) -> int:
    """Count the pods of a worker group, as KubeRay does."""
    if group.get("suspend") is True:
        return 0
    least = reading.read_optional_count(group, "minReplicas", at) or 0
    most = reading.read_optional_count(group, "maxReplicas", at)
    replicas = reading.read_optional_count(group, "replicas", at)
    replicas = max(least, replicas or 0)
    hosts = reading.read_optional_count(group, "numOfHosts", at, 1) or 1
    return (replicas if most is None else min(replicas, most)) * hosts


_PLANS: dict[type[wire.Object], Callable[[Mapping[str, Any], objects.Raw], Plan]] = {
    objects.Job: _plan_job,
    objects.JobSet: _plan_job_set,
    objects.LeaderWorkerSet: _plan_leader_worker_set,
    objects.MPIJob: _plan_mpi_job,
    objects.PyTorchJob: partial(_plan_elastic_job, key="pytorchReplicaSpecs"),
    objects.TFJob: partial(_plan_training, key="tfReplicaSpecs", first="Chief"),
    objects.XGBoostJob: partial(_plan_training, key="xgbReplicaSpecs", first="Master"),
    objects.PaddleJob: partial(_plan_elastic_job, key="paddleReplicaSpecs"),
    objects.JAXJob: partial(_plan_training, key="jaxReplicaSpecs", first="Worker"),
    objects.RayCluster: _plan_ray_cluster,
}


def _plan_stateful_set(found: steering.StatefulSet) -> Plan:
    if found.spec.pod_management_policy != "Parallel":
        text = "makes one pod after the other, so they cannot be a group; write Parallel"
        raise BadInput("spec.podManagementPolicy", text)
    replicas = found.spec.replicas
    return Plan(
        (Share("", 1 if replicas is None else reading.read_count(replicas, "spec.replicas")),)
    )


def read_group(
    found: objects.Raw | steering.StatefulSet, key: GroupKey, asker: Notes
) -> Definition:
    """Read what an owner says of its group.

    Args:
        found: the owner.
        key: the key of the group.
        asker: the annotations of the object that asks for the group: of the owner, or of the owner of it.
    """
    if isinstance(found, steering.StatefulSet):
        plan = _plan_stateful_set(found)
    else:
        spec = values.read_mapping(found.spec, "spec")
        plan = _PLANS[type(found)](spec, found)
    _check_shares(plan)
    labels = found.metadata.labels or {}
    own = Notes(found.metadata.annotations or {})
    minimum = _find_minimum(plan, asker)
    return Definition(
        key,
        _make_root(found, plan, minimum),
        run_seconds=_find_run_seconds(plan, own, labels),
        restarts=_read_restart((own, asker), [one.notes for one in plan.shares]),
        progress=list_progress(plan, minimum),
    )


def _read_restart(owners: Iterable[Notes], templates: Iterable[Notes]) -> bool | None:
    """Read whether the group starts anew as a whole: the first owner that says it counts, else any template."""
    for notes in owners:
        if (said := reading.read_restart(notes)) is not None:
            return said
    found = {reading.read_restart(notes) for notes in templates} - {None}
    return any(found) if found else None


def _check_shares(plan: Plan) -> None:
    given: set[str] = set()
    for one in plan.shares:
        if one.name in given:
            raise BadInput(one.field, f"there is another part {values.quote(one.name)}")
        given.add(one.name)
    total = sum(one.total for one in plan.shares)
    if total > reading.INT32_MAX:
        raise BadInput("spec", f"makes {total} pods; at most {reading.INT32_MAX} are allowed")


def parse_gang(text: str, field: str) -> int | None:
    """Read how many pods of a group must have a node at once; None for all."""
    if text == names.GANG_ALL:
        return None
    try:
        return reading.parse_count(text, field)
    except BadInput:
        wrong = f'{values.quote(text)} is neither "{names.GANG_ALL}" nor a number of pods from 1'
        raise BadInput(field, wrong) from None


def _find_minimum(plan: Plan, asker: Notes) -> int | None:
    """Find how many pods must have a node at once; None for all that there are."""
    said: dict[str, str] = {}
    for notes in (asker, *(one.notes for one in plan.shares)):
        if names.GANG in notes.texts:
            said.setdefault(notes.texts[names.GANG], notes.name(names.GANG))
    if len(said) > 1:
        (first, _), (second, field) = list(said.items())[:2]
        text = f"{values.quote(second)} is not {values.quote(first)}, which stands elsewhere"
        raise BadInput(field, text)
    minimum = plan.minimum
    for text, field in said.items():
        minimum = parse_gang(text, field)
        total = sum(one.most for one in plan.shares)
        if minimum is not None and minimum > total:
            raise BadInput(
                field, f"{minimum} pods are to have a node at once, but there are only {total}"
            )
    return minimum


def _make_root(found: objects.Raw | steering.StatefulSet, plan: Plan, minimum: int | None) -> Part:
    parts = [
        Part(one.name, least, one.total, read_placement(one.notes))
        for one, least in zip(plan.shares, list_least(plan, minimum), strict=True)
    ]
    own = Notes(found.metadata.annotations or {})
    whole = kai.read_constraint(own)
    if whole and any(one.constraint and one.constraint.rule != Rule.KAI for one in parts):
        text = "a template has Kueue's annotations about places; give those of one system"
        raise BadInput(f"metadata.annotations[{names.KAI_TOPOLOGY}]", text)
    if len(parts) == 1 and not parts[0].name:
        constraint = whole or parts[0].constraint
        return Part("", parts[0].minimum, parts[0].total, constraint)
    if isinstance(found, objects.LeaderWorkerSet) and len({one.field for one in plan.shares}) == 1:
        # Leader and workers are alike, and have one place in a topology.
        whole = whole or parts[0].constraint
        parts = [Part(one.name, one.minimum, one.total) for one in parts]
    parts = _cut_parts(found, plan, _join_parts(plan, parts), own)
    root = Part("", len(parts), constraint=whole, parts=tuple(parts))
    leaves = [leaf.name for leaf in root.list_leaves()]
    if len(set(leaves)) < len(leaves):
        raise BadInput("spec", "a segment of one part has the name of another part")
    return root


def _cut_parts(
    found: objects.Raw | steering.StatefulSet, plan: Plan, parts: list[Part], own: Notes
) -> list[Part]:
    """Cut parts into segments where KAI's annotations, or the subgroups of a LeaderWorkerSet, say so."""
    if isinstance(found, objects.PyTorchJob):
        cuts = {one.name: segments.read_cut(one.notes, own) for one in plan.shares if one.name == "worker"}  # fmt: skip
        return [segments.cut_part(one, cut) if (cut := cuts.get(one.name)) and not one.parts else one for one in parts]  # fmt: skip
    if not isinstance(found, objects.LeaderWorkerSet):
        return parts
    spec = values.read_mapping(found.spec, "spec")
    pair = values.read_mapping(spec.get("leaderWorkerTemplate"), "spec.leaderWorkerTemplate")
    size = sum(one.total for one in plan.shares)
    read = segments.read_pair_cut(pair, size, own, plan.shares[1].notes)
    if read is None:
        return parts
    if any(one.constraint for one in parts):
        text = "a template says where its pods go; segments cannot go elsewhere"
        raise BadInput("spec.leaderWorkerTemplate", text)
    minimum = sum(one.minimum for one in parts)
    return list(segments.cut_pair(read[0], size, minimum, without_leader=read[1]))


def read_placement(notes: Notes) -> Constraint | None:
    """Read where the annotations of a template, or of a pod of it, say that its pods go."""
    by_kueue, by_kai = kueue.read_constraint(notes), kai.read_constraint(notes)
    if by_kueue and by_kai:
        text = "may not stand beside Kueue's annotations; give those of one system"
        raise BadInput(notes.name(names.KAI_TOPOLOGY), text)
    return by_kueue or by_kai


def _join_parts(plan: Plan, parts: list[Part]) -> list[Part]:
    """Put two parts that share a domain by Kueue's annotation into one part."""
    named: dict[str, list[Part]] = {}
    for one, part in zip(plan.shares, parts, strict=True):
        name = one.notes.texts.get(names.KUEUE_TOGETHER)
        named.setdefault(f"{names.KUEUE_TOGETHER}={name}" if name else f"={one.name}", []).append(
            part
        )
    joined: list[Part] = []
    for name, group in named.items():
        if name.startswith("="):
            joined += group
            continue
        if len(group) != 2 or all(one.total != 1 for one in group):
            text = (
                f"{name}: exactly two templates can share a domain, and one of them makes one pod"
            )
            raise BadInput("spec", text)
        if group[0].constraint != group[1].constraint:
            raise BadInput("spec", f"{name}: both templates must name the same level")
        alone = tuple(Part(one.name, one.minimum, one.total) for one in group)
        joined.append(Part(name, 2, constraint=group[0].constraint, parts=alone))
    return joined


def _find_run_seconds(plan: Plan, own: Notes, labels: Mapping[str, str]) -> float | None:
    """Find when the group has ended: when its object ends, or when all its pods have ended."""
    by_object = reading.find_run_seconds(own, labels, *plan.deadline)
    by_pods = [one.find_run_seconds() for one in plan.shares if one.total]
    said = [] if by_object is None else [by_object]
    if by_pods and None not in by_pods:
        said.append(max(one for one in by_pods if one is not None))
    return min(said, default=None)
