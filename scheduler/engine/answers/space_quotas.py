"""Answers about quotas of devices by namespace."""

from __future__ import annotations

from scheduler.api.space_quotas import list_scopes
from scheduler.engine.answers.inside import Inside
from scheduler.engine.questions import space_quotas as ask
from scheduler.errors import BadInput
from scheduler.state.space_quotas import Taker


def list_states(inside: Inside, question: ask.SpaceQuotaStates) -> tuple[ask.SpaceQuotaState, ...]:
    """The quotas, and what is used of them."""
    return tuple(
        ask.SpaceQuotaState(
            quota, tuple(ask.LimitState(one.resource, one.used, one.hard) for one in limits)
        )
        for quota, limits in inside.spaces.list_states(question.namespace)
    )


def find_excess(inside: Inside, question: ask.SpaceQuotaExcess) -> str:
    """The first limit that a pod exceeds."""
    pod, spaces = question.pod, inside.spaces
    if not spaces.has_quotas(pod.metadata.namespace):
        return ""
    try:
        asks = inside.cluster.nodes.devices.read_requests(pod)
    except BadInput:
        # It is held for that, and takes nothing.
        return ""
    spec = pod.spec
    taker = Taker(pod.metadata.namespace, asks, list_scopes(spec), spec.priority_class_name)
    excess = spaces.find_excess(taker, spaces.find_least(taker))
    return "" if excess is None else str(excess)
