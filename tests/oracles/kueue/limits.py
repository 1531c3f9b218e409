"""What limits of containers and LimitRanges make of a workload, and whether it may run at all (pkg/workload/resources.go)."""

import copy
import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.oracles.kueue.amounts import read_request
from tests.oracles.kueue.selectors import match_selector
from tests.oracles.kueue.workloads import Info, Manifest, sum_pod
from tests.oracles.kueue.world import World

_BELOW = "requests must not exceed its limits"
_MAX = "requests must not be above the limitRange max"
_MIN = "requests must not be below the limitRange min"
MISMATCH = "workload namespace doesn't match ClusterQueue selector"


def adjust_workload(manifest: Manifest, ranges: Iterable[Manifest]) -> Manifest:
    """Fill in what containers leave out: defaults of LimitRanges, then limits as requests."""
    changed: dict[str, Any] = copy.deepcopy(dict(manifest))
    summary = _summarize_ranges(ranges, manifest["metadata"].get("namespace", ""))
    defaults = summary.get("Container", {})
    for pod_set in changed["spec"].get("podSets", []):
        spec = pod_set.get("template", {}).get("spec", {})
        for container in [*spec.get("initContainers", []), *spec.get("containers", [])]:
            resources = container.setdefault("resources", {})
            limits = {**defaults.get("default", {}), **resources.get("limits", {})}
            requests = {**defaults.get("defaultRequest", {}), **resources.get("requests", {})}
            resources["requests"] = {**limits, **requests}
            if limits:
                resources["limits"] = limits
    return changed


def refuse_workload(world: World, info: Info, selector: Manifest | None) -> str:
    """Say why a queue may not take the workload; nothing where it may."""
    manifest = info.manifest
    namespace = manifest["metadata"].get("namespace", "")
    if namespace not in world.namespaces:
        return (
            f'workload namespace "{namespace}" does not exist: namespaces "{namespace}" not found'
        )
    if not match_selector(world.namespaces[namespace], selector):
        return MISMATCH
    if wrong := _check_limits(manifest):
        return f"resources validation failed: {_join_mistakes(wrong)}"
    summary = _summarize_ranges(world.limit_ranges, namespace)
    if wrong := _check_ranges(manifest, summary):
        return f"resources didn't satisfy LimitRange constraints: {_join_mistakes(wrong)}"
    return ""


def _walk_containers(manifest: Manifest) -> Iterable[tuple[str, Mapping[str, Any]]]:
    for i, pod_set in enumerate(manifest["spec"].get("podSets", [])):
        spec = pod_set.get("template", {}).get("spec", {})
        for group in ("initContainers", "containers"):
            for j, container in enumerate(spec.get(group, [])):
                yield (
                    f"spec.podSets[{i}].template.spec.{group}[{j}]",
                    container.get("resources", {}),
                )


def _check_limits(manifest: Manifest) -> list[str]:
    wrong = []
    for path, resources in _walk_containers(manifest):
        over = _find_over(resources.get("requests", {}), resources.get("limits", {}))
        wrong += _tell_mistake(path, over, _BELOW)
    return wrong


def _check_ranges(manifest: Manifest, summary: Mapping[str, Any]) -> list[str]:
    wrong = []
    if "Container" in summary:
        one = summary["Container"]
        for path, resources in _walk_containers(manifest):
            limits, requests = resources.get("limits", {}), resources.get("requests", {})
            highest = _merge_lists(requests, limits, most=True)
            lowest = _merge_lists(requests, limits, most=False)
            wrong += _tell_mistake(path, _find_over(highest, one.get("max", {})), _MAX)
            wrong += _tell_mistake(path, _find_over(one.get("min", {}), lowest), _MIN)
    if "Pod" in summary:
        one = summary["Pod"]
        for i, pod_set in enumerate(manifest["spec"].get("podSets", [])):
            path = f"spec.podSets[{i}].template.spec"
            total = {
                name: f"{value}m" if name == "cpu" else str(value)
                for name, value in sum_pod(pod_set.get("template", {}).get("spec", {})).items()
            }
            wrong += _tell_mistake(path, _find_over(total, one.get("max", {})), _MAX)
            wrong += _tell_mistake(path, _find_over(one.get("min", {}), total), _MIN)
    return wrong


def _find_over(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    return sorted(
        name
        for name in a
        if name in b and read_request(name, a[name]) > read_request(name, b[name])
    )


def _tell_mistake(path: str, names: list[str], what: str) -> list[str]:
    return (
        [f"{path}: Invalid value: {json.dumps(names, separators=(',', ':'))}: {what}"]
        if names
        else []
    )


def _join_mistakes(wrong: list[str]) -> str:
    return wrong[0] if len(wrong) == 1 else f"[{', '.join(dict.fromkeys(wrong))}]"


def _merge_lists(a: Mapping[str, Any], b: Mapping[str, Any], *, most: bool) -> dict[str, Any]:
    merged = dict(a)
    for name, text in b.items():
        if name not in merged or most == (
            read_request(name, text) > read_request(name, merged[name])
        ):
            merged[name] = text
    return merged


def _summarize_ranges(ranges: Iterable[Manifest], namespace: str) -> dict[str, dict[str, Any]]:
    """Summarize the ranges of a namespace: the lowest maximum, the highest minimum, and the first default."""
    summary: dict[str, dict[str, Any]] = {}
    for one in ranges:
        if one["metadata"].get("namespace", "") != namespace:
            continue
        for limit in one["spec"].get("limits", []):
            own = summary.setdefault(limit["type"], {})
            own["max"] = _merge_lists(own.get("max", {}), limit.get("max", {}), most=False)
            own["min"] = _merge_lists(own.get("min", {}), limit.get("min", {}), most=True)
            for name in ("default", "defaultRequest"):
                own[name] = {**limit.get(name, {}), **own.get(name, {})}
    return summary
