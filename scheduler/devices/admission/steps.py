"""Whether a pod is admitted, and what it gets: the decisions in the order in which HAMi's webhook takes them.

Whatever a tenant has written, there is an answer.

Source: HAMi (v2.10), ``pkg/scheduler/webhook.go``. Unlike HAMi, pods that name certain other schedulers can be taken over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from scheduler.api import names
from scheduler.api.admission.settings import AdmissionSettings
from scheduler.devices.admission import nvidia, shares, vendors
from scheduler.devices.admission.drafts import Json, PodDraft
from scheduler.errors import BadInput, make_visible

FindQuotaExcess = Callable[[PodDraft], str | None]


class ClusterFacts(NamedTuple):
    """What is known of the cluster.

    Attributes:
        find_quota_excess: says which quota of its namespace a pod exceeds, as it is after its changes; None for none.
        list_backends: lists the ways in which nodes share GPUs.
    """

    find_quota_excess: FindQuotaExcess = lambda _: None
    list_backends: shares.ListBackends = lambda _cards, _pod: ()


class Allowed(NamedTuple):
    """The pod may be, once it is patched; ``patch``: operations of RFC 6902, none for a pod that stays as it is."""

    patch: list[Json]


class Denied(NamedTuple):
    """The pod may not be."""

    message: str


class Error(NamedTuple):
    """The pod says what cannot be read, or cannot be.

    Attributes:
        message: what is wrong.
        is_unreadable: whether it is not even a pod.
    """

    message: str
    is_unreadable: bool = False


Verdict = Allowed | Denied | Error


def review_pod(
    raw: bytes | msgspec.Raw,
    namespace: str,
    settings: AdmissionSettings,
    facts: ClusterFacts,
) -> Verdict:
    """Decide about a pod that is to be created.

    Args:
        raw: the pod, as JSON.
        namespace: where it is to be.
        settings: by what it is admitted.
        facts: what is known of the cluster.
    """
    try:
        pod = PodDraft(raw, namespace)
    except BadInput as error:
        return Error(str(error), is_unreadable=True)
    return change_pod(pod, settings, facts) or Allowed(pod.list_operations())


def change_pod(
    pod: PodDraft, settings: AdmissionSettings, facts: ClusterFacts
) -> Denied | Error | None:
    """Give a pod that is to be created what it lacks; return why it may not be, None if it may."""
    if not pod.containers:
        return Denied("pod has no containers")
    if not _may_change(pod, settings):
        return None
    asks = _change_containers(pod, settings, facts)
    if not isinstance(asks, bool):
        return asks
    denial = _find_denial(pod) if asks else ""
    if denial:
        return Denied(make_visible(denial))
    has_ours = pod.scheduler_name in settings.scheduler_names
    if not has_ours and (asks or pod.scheduler_name in settings.taken_over):
        pod.scheduler_name = settings.scheduler_names[0]
    excess = facts.find_quota_excess(pod)
    if excess is not None:
        return Denied(make_visible(f"exceeding resource quota: {excess}"))
    return None


def _may_change(pod: PodDraft, settings: AdmissionSettings) -> bool:
    """Whether a pod is ours or may become ours; of another scheduler's pod nothing is changed or refused."""
    name = pod.scheduler_name
    if name == names.DEFAULT_SCHEDULER and settings.overwrites_default:
        return True
    return not name or name in settings.scheduler_names or name in settings.taken_over


def _change_containers(
    pod: PodDraft, settings: AdmissionSettings, facts: ClusterFacts
) -> bool | Denied | Error:
    """Translate requests for shares, and let each vendor change each container; return whether one requests devices."""
    try:
        is_shared = shares.translate(pod, settings, facts.list_backends)
    except BadInput as error:
        return Denied(make_visible(str(error)))
    try:
        return _mutate_containers(pod, settings) or is_shared
    except BadInput as error:
        return Error(str(error))


def _mutate_containers(pod: PodDraft, settings: AdmissionSettings) -> bool:
    """Let each vendor change each container; return whether one of them requests devices.

    Raises:
        BadInput: a container says what cannot be.
    """
    asks = False
    others = vendors.list_mutations(settings.devices).values()
    for container in pod.list_all_containers():
        # Each gives the container what it lacks, and says whether it requests devices.
        for mutate in (nvidia.mutate_container, *others):
            asks = mutate(container, pod, settings) or asks
    return asks


def _find_denial(pod: PodDraft) -> str:
    """Say why a pod may not have devices; empty if it may."""
    for container in pod.list_all_containers():
        if container.is_privileged:
            return f"container {container.name} is privileged"
    return "pod has node assigned" if pod.node_name else ""
