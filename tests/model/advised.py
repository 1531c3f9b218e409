"""What an advice says, done to objects: another reading of the same JSON, so that advice can be held to it."""

import copy
import re
from collections.abc import Iterable
from typing import Any

from scheduler.api import names
from tests import make

Json = dict[str, Any]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_STATES = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


def done(objects: list[Json], pod: Json, steps: Iterable[Json]) -> tuple[list[Json], Json]:
    """The other objects, and the pod, once all steps were taken."""
    objects, pod = copy.deepcopy(objects), copy.deepcopy(pod)
    for step in sorted(steps, key=_last_first, reverse=True):
        objects = _STEPS[step["do"]](objects, pod, step)
    return objects, pod


def _last_first(step: Json) -> str:
    """Items of lists go from the end, so that the places of the others stay."""
    return str(step.get("field", ""))


def _ask_less(objects: list[Json], pod: Json, step: Json) -> list[Json]:
    resource, most = step["resource"], step["atMost"]
    containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())]
    asking = [
        (section, resource)
        for container in containers
        for section in (container.get("resources") or {}).values()
        if resource in section
        and (not step["containers"] or container["name"] in step["containers"])
    ]
    written = f"{most}m" if resource == names.CPU else most
    if step["perContainer"]:
        for section, name in asking:
            section[name] = min(int(section[name]), most)
    else:
        # Of the pods that are tried one container asks it.
        ((section, name),) = asking
        section[name] = written
    return objects


def _drop(objects: list[Json], pod: Json, step: Json) -> list[Json]:
    field, value, spec = step["field"], step["value"], pod["spec"]
    index = int(found[1]) if (found := re.search(r"\[(\d+)\]$", field)) else 0
    if field == "spec.nodeSelector":
        del spec["nodeSelector"][value.partition("=")[0]]
    elif field == "metadata.annotations":
        del pod["metadata"]["annotations"][value.partition("=")[0]]
    elif field.startswith("spec.volumes"):
        del spec["volumes"][index]
    elif field.startswith("spec.topologySpreadConstraints"):
        del spec["topologySpreadConstraints"][index]
    elif "nodeAffinity" in field:
        terms = spec["affinity"]["nodeAffinity"][_REQUIRED]["nodeSelectorTerms"]
        term = terms[index]
        term["matchExpressions"] = [
            one
            for one in term["matchExpressions"]
            if value != f"{one['key']} {one['operator']} {', '.join(one['values'])}"
        ]
        if not term["matchExpressions"]:
            del spec["affinity"]["nodeAffinity"]
    elif "odAffinity" in field or "AntiAffinity" in field:
        kind = "podAntiAffinity" if "AntiAffinity" in field else "podAffinity"
        del spec["affinity"][kind][_REQUIRED][index]
    elif field.endswith("hostPort"):
        for container in spec["containers"]:
            ports = container.get("ports", ())
            container["ports"] = [p for p in ports if value != f"{p['hostPort']}/{p['protocol']}"]
    else:
        raise AssertionError(field)
    return objects


def _tolerate(objects: list[Json], pod: Json, step: Json) -> list[Json]:
    taint = step["taint"]
    pod["spec"].setdefault("tolerations", []).append({"operator": "Equal", **taint})
    return objects


def _bring_back(objects: list[Json], _: Json, step: Json) -> list[Json]:
    for one in objects:
        if one["kind"] == "Node" and one["metadata"]["name"] == step["node"]:
            one["spec"]["unschedulable"] = False
            taints = one["spec"].get("taints") or ()
            one["spec"]["taints"] = [t for t in taints if not t["key"].startswith(_STATES)]
            (one["metadata"].get("annotations") or {}).pop(names.HAMI_CORDON, None)
    return objects


def _end(objects: list[Json], _: Json, step: Json) -> list[Json]:
    gone = {(pod["namespace"], pod["name"]) for pod in step["pods"]}
    return [
        one
        for one in objects
        if one["kind"] != "Pod"
        or (one["metadata"]["namespace"], one["metadata"]["name"]) not in gone
    ]


_STEPS = {
    "requestLess": _ask_less,
    "drop": _drop,
    "tolerate": _tolerate,
    "bringBack": _bring_back,
    "wait": _end,
    "end": _end,
}


def cheaper(step: Json) -> list[Json]:
    """The same step, cheaper by as little as can be: none where it cannot be had in parts."""
    if step["do"] == "requestLess":
        unit = 1 << 20 if step["resource"] == names.MEMORY and step["requested"] > 1 << 20 else 1
        return [step | {"atMost": step["atMost"] + unit}]
    if step["do"] in {"end", "wait"}:
        pods = step["pods"]
        return [step | {"pods": [p for p in pods if p is not one]} for one in pods if len(pods) > 1]
    return []


def as_object(kind: str, body: Json) -> Json:
    """A body with its kind, for those who read objects."""
    return {"apiVersion": "v1", "kind": kind, **body}


def raw(things: Iterable[Any], kind: str) -> list[Json]:
    """Built nodes or pods as objects."""
    return [as_object(kind, make.raw(one)) for one in things]
