"""What the webhook adds to jobs and pods with a queue while they are created: operations of JSON patches.

Source: Kueue (2026-08), ``pkg/controller/jobframework/defaults.go`` and ``pkg/controller/jobs/pod/pod_webhook.go``.
"""

from __future__ import annotations

from scheduler.api import names
from scheduler.api.jobs import changes, plain_pods, services, table, workloads
from scheduler.api.jobs.parts import Json, get_in, read_list, read_object
from scheduler.api.jobs.templates import write_changes
from scheduler.kube.webhook import serving
from scheduler.kube.webhook.known import Known, Request, find_owner, read_names, read_texts


def default_job(request: Request, known: Known) -> list[Json]:
    """Suspend a job that has a queue, or gets the default one; a job that another job with a queue has made needs none.

    Raises:
        BadInput: a field that is read is not as the API server has it.
    """
    row = table.BY_NAME[request.kind.name]
    _, owner = find_owner(request)
    if request.before is not None or known.is_managed(owner):
        return []
    made: list[Json] = []
    if owner is None:
        request, made = _add_default_queue(request, known)
    job = request.found
    if (
        workloads.find_queue(job)
        and not row.is_elsewhere(job)
        and get_in(job, row.suspend) is not True
    ):
        made.append(changes.write_suspend(row, job, is_on=True))
    return made


def default_serving(request: Request, known: Known) -> list[Json]:
    """Give what serves its queue, and its pod templates what follows from that.

    Raises:
        BadInput: a field that is read is not as the API server has it.
    """
    has_owner, _ = find_owner(request)
    made: list[Json] = []
    if request.before is None and not has_owner:
        request, made = _add_default_queue(request, known)
    return made + serving.default_templates(request)


def _add_default_queue(request: Request, known: Known) -> tuple[Request, list[Json]]:
    """Return a request with the default queue, if its object names none and its namespace has that one, and the patch."""
    if workloads.find_queue(request.found) or not known.has_default_queue(request.namespace):
        return request, []
    labels = read_texts(request.found, "metadata", "labels")
    labels[names.KUEUE_QUEUE] = names.KUEUE_DEFAULT_QUEUE
    meta = {**read_object(request.found, "metadata"), "labels": labels}
    made = write_changes(request.found, (), {"metadata.labels": labels})
    return request._replace(found={**request.found, "metadata": meta}), made


def default_pod(request: Request, known: Known) -> list[Json]:
    """Have a pod with a queue wait: it gets Kueue's gate, its label, its role and, in a group, its finalizer.

    A pod without an owner may get the default queue. Others get it from their owners' templates: what was there before
    the queue stays as it is.

    Raises:
        BadInput: a field that is read is not as the API server has it.
    """
    pod = request.found
    has_owner, owner = find_owner(request)
    if request.before is not None or known.is_managed(owner):
        return []
    labels = read_texts(pod, "metadata", "labels")
    if not labels.get(names.KUEUE_QUEUE):
        if has_owner or not known.has_default_queue(request.namespace):
            return []
        labels[names.KUEUE_QUEUE] = names.KUEUE_DEFAULT_QUEUE
    labels[names.KUEUE_MANAGED] = "true"
    texts = read_texts(pod, "metadata", "annotations")
    of_replica = services.list_texts_of_replica(labels, texts)
    labels |= of_replica[0]
    texts |= of_replica[1]
    # Whatever a user has written there: pods of a role share the quota of one of them.
    texts[names.KUEUE_ROLE] = plain_pods.make_role(read_object(pod, "spec"))
    found = [str(one.get("name", "")) for one in read_list(pod, "spec", "schedulingGates")]
    gates = [{"name": one} for one in dict.fromkeys((*found, names.KUEUE_GATE))]
    fields = {
        "metadata.labels": labels,
        "metadata.annotations": texts,
        "metadata.finalizers": _list_finalizers(pod, labels, texts),
        "spec.schedulingGates": gates,
    }
    return write_changes(pod, (), fields)


def _list_finalizers(pod: Json, labels: dict[str, str], texts: dict[str, str]) -> list[str]:
    """List the finalizers of a pod: one of a group that ends is kept until the group has ended."""
    found = read_names(pod, "metadata", "finalizers")
    ends = labels.get(names.KUEUE_GROUP) and texts.get(names.KUEUE_SERVES) != "true"
    if ends and names.KUEUE_MANAGED not in found:
        found.append(names.KUEUE_MANAGED)
    return found
