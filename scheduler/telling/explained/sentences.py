"""Advice in words: one sentence for each advice, which is the same in every form of the answer."""

from __future__ import annotations

from typing import Any

from scheduler.errors import make_visible
from scheduler.plugins import container_requests, words
from scheduler.state.pods import PodRecord
from scheduler.telling.advice.advise import Advice, Drop, Leaving, Step, Tolerate
from scheduler.telling.advice.asking import Asking
from scheduler.telling.advice.back import Back
from scheduler.telling.advice.claims import Release, Revise
from scheduler.telling.advice.ending import Ending
from scheduler.telling.advice.less import Less

Json = dict[str, Any]
_NAMES = 20
_PlainStep = Less | Drop | Tolerate | Back | Leaving | Ending


def write_advice(asking: Asking, one: Advice) -> Json:
    """Write an advice as plain values, with its sentence."""
    names = asking.list_names(one.rows[:_NAMES])
    told = [_tell_step(asking, step) for step in one.steps]
    said = " and ".join(text for text, _ in told)
    more = one.rows.size - 1
    where = f"it fits on {names[0]}" + (
        f" and {words.count_nouns(more, 'more node')}" if more else ""
    )
    return {
        "steps": [described for _, described in told],
        "nodes": int(one.rows.size),
        "names": names,
        "text": f"{said}: {where}",
    }


def write_taint(one: Json) -> str:
    """Write a taint as kubectl writes it."""
    return f"{one['key']}{'=' + one['value'] if one['value'] else ''}:{one['effect']}"


def _tell_step(asking: Asking, step: Step) -> tuple[str, Json]:
    """Write and describe a step."""
    if isinstance(step, Revise | Release):
        return _tell_of_claims(step)
    return _write_step(asking, step), _describe_step(asking, step)


def _describe_step(asking: Asking, step: _PlainStep) -> Json:
    match step:
        case Less(ask, most, names, _):
            return {
                "do": "requestLess",
                "resource": ask.resource,
                "requested": ask.asked,
                "atMost": most,
                "perContainer": ask.of_each,
                "containers": list(names),
            }
        case Drop(wish):
            return {"do": "drop", "field": wish.field, "value": wish.said}
        case Tolerate((key, value, effect)):
            return {"do": "tolerate", "taint": {"key": key, "value": value, "effect": effect}}
        case Back(row, why):
            return {
                "do": "bringBack",
                "node": asking.cluster.nodes.find_name(row),
                "because": list(why),
            }
        case Leaving(pods):
            return {"do": "wait", "pods": [describe_pod(one) for one in pods]}
        case Ending(row, pods):
            node = asking.cluster.nodes.find_name(row)
            return {"do": "end", "node": node, "pods": [describe_pod(one) for one in pods]}


def describe_pod(pod: PodRecord) -> Json:
    """Describe a pod that would have to end."""
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "node": pod.node,
        "priority": pod.priority,
    }


def _write_step(asking: Asking, step: _PlainStep) -> str:
    match step:
        case Less(ask, most, names, is_unlike):
            asked, left = (words.write_amount(ask.resource, one) for one in (ask.asked, most))
            where = " in each container" if ask.of_each else ""
            if names:
                where = f" in {container_requests.name_containers(names)}"
            up_to = "up to " if is_unlike else ""
            return f"request at most {left} {ask.resource}{where} instead of {up_to}{asked}"
        case Drop(wish):
            return f"drop {wish.field} {wish.said}"
        case Tolerate((key, value, effect)):
            return f"tolerate taint {write_taint({'key': key, 'value': value, 'effect': effect})}"
        case Back(row, why):
            name = asking.cluster.nodes.find_name(row)
            return f"bring back node {name} ({', '.join(why)})"
        case Leaving(pods):
            verb = "ends" if len(pods) == 1 else "end"
            return f"wait until {_write_pods(pods)} {verb}, which {verb} already"
        case Ending(_, pods):
            return f"end {_write_pods(pods)}"


def _tell_of_claims(step: Revise | Release) -> tuple[str, Json]:
    """Write and describe a step that is about claims."""
    found: Json = {"do": "changeClaim", "claim": "/".join(step.claim.path_key)}
    if isinstance(step, Revise):
        return make_visible(step.said), found | {
            "request": step.request or None,
            "change": step.what,
        }
    name, pods = make_visible(found["claim"]), step.pods
    if pods:
        said = f"end {_write_pods(pods)}, all that have claim {name}"
    else:
        said = f"take its devices from claim {name}, which no pod on a node has"
    return said, found | {"do": "freeClaim", "pods": [describe_pod(one) for one in pods]}


def _write_pods(pods: tuple[PodRecord, ...]) -> str:
    # All pods are named, because a reader who follows the advice needs every name.
    named = ", ".join(make_visible(pod.key) for pod in pods)
    what = "pod" if len(pods) == 1 else "pods"
    most = max(pod.priority for pod in pods)
    return f"{what} {named} (priority {most}{' at most' if len(pods) > 1 else ''})"
