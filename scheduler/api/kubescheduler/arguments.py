"""The arguments of kube-scheduler's plugins, ``pluginConfig`` of a profile.

Source: kube-scheduler's types_pluginargs.go, defaults.go and validation_pluginargs.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from scheduler.api import placement, selectors, values
from scheduler.api.kube_plugins import FitScore, Preemption, Strategy, VolumeBinding
from scheduler.api.kubescheduler import constraints
from scheduler.api.kubescheduler.points import PLUGINS
from scheduler.errors import BadInput

VERSION = "kubescheduler.config.k8s.io/v1"
_INT32_MAX, _INT64_MAX = 2**31 - 1, 2**63 - 1
_RESOURCE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_./]{0,315}[A-Za-z0-9])?")
Args = Mapping[str, Any]
Changes = dict[str, Any]


def read_arguments(raw: Any, field: str) -> Changes:
    """Read the fields of ``KubePlugins`` that ``pluginConfig`` sets.

    Raises:
        BadInput: a plugin has no such arguments, or the value of one is not allowed; the error names the field.
    """
    changes: Changes = {}
    seen = set()
    for i, one in enumerate(values.read_items(raw, field, dict)):
        where = f"{field}[{i}]"
        values.refuse_unknown(one, where, ("name", "args"))
        name = str(one.get("name"))
        if name not in _READERS:
            why = "takes no arguments" if name in PLUGINS else "is not a plugin that Evenkeel has"
            raise BadInput(f"{where}.name", f"{name!r} {why}; allowed are {', '.join(_READERS)}")
        if name in seen:
            raise BadInput(f"{where}.name", f"{name} appears twice")
        seen.add(name)
        changes |= _READERS[name](
            _check_type(one.get("args"), f"{where}.args", name), f"{where}.args"
        )
    return changes


def _check_type(raw: Any, field: str, name: str) -> Args:
    """Check ``apiVersion`` and ``kind``, if the arguments have them, and return the rest."""
    args = dict(values.read_mapping(raw, field))
    for key, wanted in (("apiVersion", VERSION), ("kind", f"{name}Args")):
        said = args.pop(key, wanted)
        if said != wanted:
            raise BadInput(f"{field}.{key}", f"{said!r} is not {wanted}")
    return args


def _read_fit(args: Args, field: str) -> Changes:
    values.refuse_unknown(
        args, field, ("ignoredResources", "ignoredResourceGroups", "scoringStrategy")
    )
    changes: Changes = {}
    for key, attribute in (
        ("ignoredResources", "ignored"),
        ("ignoredResourceGroups", "ignored_groups"),
    ):
        listed = values.read_items(args.get(key), f"{field}.{key}", str)
        for i, one in enumerate(listed):
            if attribute == "ignored_groups" and "/" in one:
                raise BadInput(f"{field}.{key}[{i}]", f"{one!r} has a '/': a group is a domain")
            selectors.check_name(one, f"{field}.{key}[{i}]")
        changes[attribute] = frozenset(listed)
    if args.get("scoringStrategy") is not None:
        changes["fit"] = _read_strategy(args["scoringStrategy"], f"{field}.scoringStrategy")
    return changes


def _read_strategy(raw: Any, field: str) -> FitScore:
    given = values.read_mapping(raw, field)
    values.refuse_unknown(given, field, ("type", "resources", "requestedToCapacityRatio"))
    kind, words = given.get("type"), tuple(Strategy)
    if kind not in words:
        raise BadInput(f"{field}.type", f"{kind!r} is not one of {', '.join(words)}")
    found = FitScore(Strategy(kind))
    resources = _read_resources(given.get("resources"), f"{field}.resources", 100)
    if resources:
        found = found._replace(resources=resources)
    where, ratio = f"{field}.requestedToCapacityRatio", given.get("requestedToCapacityRatio")
    if (kind == Strategy.RATIO) != (ratio is not None):
        raise BadInput(where, f"must be set for type {Strategy.RATIO}, and for no other type")
    if ratio is not None:
        values.refuse_unknown(values.read_mapping(ratio, where), where, ("shape",))
        found = found._replace(shape=placement.read_curve(ratio.get("shape"), f"{where}.shape"))
    return found


def _read_balanced(args: Args, field: str) -> Changes:
    values.refuse_unknown(args, field, ("resources",))
    names = [name for name, _ in _read_resources(args.get("resources"), f"{field}.resources", 1)]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise BadInput(f"{field}.resources[{i}].name", f"{name} appears twice")
    return {"balanced": tuple(names)} if names else {}


def _read_resources(raw: Any, field: str, most: int) -> tuple[tuple[str, int], ...]:
    """Read names and weights; a weight that is absent or 0 counts as 1."""
    found = []
    for i, one in enumerate(values.read_items(raw, field, dict)):
        where, name = f"{field}[{i}]", one.get("name")
        values.refuse_unknown(one, where, ("name", "weight"))
        if not isinstance(name, str) or not _RESOURCE.fullmatch(name):
            raise BadInput(f"{where}.name", f"{name!r} is not the name of a resource")
        weight = one.get("weight")
        found.append((name, values.read_integer(weight or 1, f"{where}.weight", 1, most)))
    return tuple(found)


def _read_pod_affinity(args: Args, field: str) -> Changes:
    weight, ignore = "hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"
    values.refuse_unknown(args, field, (weight, ignore))
    changes: Changes = {}
    if args.get(weight) is not None:
        changes["required_weight"] = values.read_integer(args[weight], f"{field}.{weight}", 0, 100)
    if args.get(ignore) is not None:
        changes["only_own_preferences"] = values.read_flag(args[ignore], f"{field}.{ignore}")
    return changes


def _read_node_affinity(args: Args, field: str) -> Changes:
    values.refuse_unknown(args, field, ("addedAffinity",))
    added = args.get("addedAffinity")
    where = f"{field}.addedAffinity"
    return (
        {} if added is None else {"added_affinity": constraints.read_added_affinity(added, where)}
    )


def _read_spread(args: Args, field: str) -> Changes:
    values.refuse_unknown(args, field, ("defaultConstraints", "defaultingType"))
    kind, where = args.get("defaultingType") or "System", f"{field}.defaultConstraints"
    if kind not in {"System", "List"}:
        raise BadInput(f"{field}.defaultingType", f"{kind!r} is not one of System, List")
    given = values.read_items(args.get("defaultConstraints"), where, dict)
    if kind == "System":
        if given:
            raise BadInput(f"{field}.defaultingType", "must be List when defaultConstraints is set")
        return {}
    return {"spread": constraints.read_spread(given, where)}


def _read_volume_binding(args: Args, field: str) -> Changes:
    values.refuse_unknown(args, field, ("bindTimeoutSeconds", "shape"))
    found = VolumeBinding()
    if args.get("bindTimeoutSeconds") is not None:
        seconds = values.read_integer(
            args["bindTimeoutSeconds"], f"{field}.bindTimeoutSeconds", 0, _INT64_MAX
        )
        found = found._replace(timeout_seconds=seconds)
    if args.get("shape"):
        found = found._replace(shape=placement.read_curve(args["shape"], f"{field}.shape"))
    return {"volume_binding": found}


def _read_preemption(args: Args, field: str) -> Changes:
    percent, least = "minCandidateNodesPercentage", "minCandidateNodesAbsolute"
    values.refuse_unknown(args, field, (percent, least))
    found = Preemption()
    if args.get(percent) is not None:
        figure = values.read_integer(args[percent], f"{field}.{percent}", 0, 100)
        found = found._replace(candidates_percent=figure)
    if args.get(least) is not None:
        figure = values.read_integer(args[least], f"{field}.{least}", 0, _INT32_MAX)
        found = found._replace(candidates_least=figure)
    if not (found.candidates_percent or found.candidates_least):
        raise BadInput(f"{field}.{percent}", f"must not be 0 when {least} is 0")
    return {"preemption": found}


_READERS: Mapping[str, Callable[[Args, str], Changes]] = {
    "NodeResourcesFit": _read_fit,
    "NodeResourcesBalancedAllocation": _read_balanced,
    "PodTopologySpread": _read_spread,
    "InterPodAffinity": _read_pod_affinity,
    "NodeAffinity": _read_node_affinity,
    "VolumeBinding": _read_volume_binding,
    "DefaultPreemption": _read_preemption,
}
