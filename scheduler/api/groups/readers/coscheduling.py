"""The groups of scheduler-plugins and Koordinator: a label with a PodGroup, or annotations of the pods alone.

How long members wait for each other, and whether one that does not fit frees the nodes of the others (Koordinator's modes), is not
read: no member holds a node while it waits.
"""

from __future__ import annotations

from typing import Any

from scheduler.api import names, values, wire
from scheduler.api.groups.definitions import (
    Constraint,
    Definition,
    GroupKey,
    Level,
    Match,
    Membership,
    Part,
    Rule,
    Slice,
    Topology,
)
from scheduler.api.groups.objects import ClusterNetworkTopology, SigsPodGroup, XPodGroup
from scheduler.api.groups.readers import reading
from scheduler.api.groups.readers.reading import Notes, Texts
from scheduler.errors import BadInput

KIND = "PodGroup.scheduling.sigs.k8s.io"
# Of scheduler-plugins since its API group was renamed; Koordinator keeps the old one.
X_KIND = "PodGroup.scheduling.x-k8s.io"
LEVELS_MAX = 16
# So many groups may name each other: with each change of one of them all are formed anew.
_TOGETHER_MAX = 16
_MUST, _PREFER = "MustGather", "PreferGather"
# The layers that every ClusterNetworkTopology has: the cluster, which has no label, and the node.
_CLUSTER, _NODE = "ClusterTopologyLayer", "NodeTopologyLayer"


def find_key(pod: wire.Pod, labels: Texts, annotations: Texts) -> GroupKey | None:
    """Find the group that a pod names."""
    namespace = pod.metadata.namespace
    if name := labels.get(names.X_GROUP):
        return GroupKey(X_KIND, namespace, name)
    name = labels.get(names.COSCHEDULING_GROUP) or annotations.get(names.GANG_NAME)
    return GroupKey(KIND, namespace, name) if name else None


def read_member(pod: wire.Pod, key: GroupKey) -> Membership:
    """Read what a pod says: its index, and all of its group if only annotations name the group."""
    labels, notes = pod.metadata.labels or {}, Notes(pod.metadata.annotations or {})
    label, annotation = labels.get(names.COSCHEDULING_GROUP), notes.texts.get(names.GANG_NAME)
    if key.kind == X_KIND:
        if label or annotation:
            text = f"{values.quote(label or annotation)} is another group than {values.quote(key.name)} of the label {names.X_GROUP}"
            field = (
                reading.name_label(names.COSCHEDULING_GROUP)
                if label
                else notes.name(names.GANG_NAME)
            )
            raise BadInput(field, text)
        return Membership(key)
    if label and annotation and label != annotation:
        raise BadInput(
            notes.name(names.GANG_NAME),
            f"{values.quote(annotation)} is another group than {values.quote(label)} of the label {names.COSCHEDULING_GROUP}",
        )
    index = notes.texts.get(names.GANG_INDEX)
    rank = -1 if index is None else reading.parse_count(index, notes.name(names.GANG_INDEX), 0)
    company = notes.texts.get(names.GANG_COMPANY, "")
    if len(company) > reading.NAME_MAX:
        text = f"has more than {reading.NAME_MAX} characters, the maximum"
        raise BadInput(notes.name(names.GANG_COMPANY), text)
    definition = None if label else _read_pod(notes, key)
    return Membership(key, index=rank, definition=definition, company=company)


def _read_pod(notes: Notes, key: GroupKey) -> Definition:
    field = notes.name(names.GANG_MINIMUM)
    if names.GANG_MINIMUM not in notes.texts:
        raise BadInput(field, "is missing; it says how many pods must have a node at once")
    return _define(notes, key, reading.parse_count(notes.texts[names.GANG_MINIMUM], field))


def name_difference(one: Definition, other: Definition) -> str:
    """Name the annotation in which two pods of a group say different things of it."""
    parts = {
        names.GANG_MINIMUM: one.root.minimum != other.root.minimum,
        names.GANG_TOTAL: one.root.total != other.root.total,
        names.GANG_TOPOLOGY: one.root.constraint != other.root.constraint,
        names.GANG_GROUPS: one.together != other.together,
    }
    return next((name for name, differs in parts.items() if differs), names.GANG_MATCH)


def read_group(found: SigsPodGroup) -> Definition:
    """Read a PodGroup, with Koordinator's annotations."""
    key = GroupKey(KIND, found.metadata.namespace, found.metadata.name)
    return _define(Notes(found.metadata.annotations or {}), key, _read_minimum(found))


def read_x_group(found: XPodGroup) -> Definition:
    """Read a PodGroup of scheduler-plugins; pods that run count towards its minimum."""
    key = GroupKey(X_KIND, found.metadata.namespace, found.metadata.name)
    minimum = _read_minimum(found)
    return Definition(key, Part("", minimum, minimum), match=Match.WAITING_AND_RUNNING)


def _read_minimum(found: SigsPodGroup | XPodGroup) -> int:
    spec = values.read_mapping(found.spec, "spec")
    return reading.read_count(spec.get("minMember"), "spec.minMember", 1)


def _define(notes: Notes, key: GroupKey, minimum: int) -> Definition:
    total = minimum
    if notes.texts.get(names.GANG_TOTAL):
        # Koordinator raises a total below the minimum to it.
        said = reading.parse_count(notes.texts[names.GANG_TOTAL], notes.name(names.GANG_TOTAL), 0)
        total = max(said, minimum)
    constraint = _read_constraint(notes)
    if constraint and total != minimum:
        raise BadInput(
            notes.name(names.GANG_TOPOLOGY),
            f"needs all pods at once, but the minimum is {minimum} of {total}",
        )
    return Definition(
        key,
        Part("", minimum, total, constraint),
        together=_read_together(notes, key),
        match=_read_match(notes),
        stays_placed=True,
    )


def _read_match(notes: Notes) -> Match:
    for key in (names.GANG_MATCH, names.COSCHEDULING_MATCH):
        if text := notes.texts.get(key):
            try:
                return Match(text)
            except ValueError:
                allowed = f"{values.quote(text)} is not one of {', '.join(Match)}"
                raise BadInput(notes.name(key), allowed) from None
    return Match.ONCE


def _read_together(notes: Notes, key: GroupKey) -> tuple[GroupKey, ...]:
    """Read the groups that are placed with a group, itself among them; none if there are no others."""
    text, field = notes.texts.get(names.GANG_GROUPS), notes.name(names.GANG_GROUPS)
    if not text:
        return ()
    together = {key}
    listed = reading.read_few(reading.parse_json(text, field), field, str, _TOGETHER_MAX)
    for i, one in enumerate(listed):
        namespace, slash, name = one.partition("/")
        if not (namespace and slash and name) or "/" in name or len(one) > 2 * reading.NAME_MAX:
            raise BadInput(f"{field}[{i}]", f"{values.quote(one)} is not namespace/name of a group")
        together.add(GroupKey(KIND, namespace, name))
    return tuple(sorted(together)) if len(together) > 1 else ()


def _read_constraint(notes: Notes) -> Constraint | None:
    """Read the layers in which pods are gathered; they may be written in any order."""
    text, field = notes.texts.get(names.GANG_TOPOLOGY), notes.name(names.GANG_TOPOLOGY)
    if not text:
        return None
    spec, under = (
        values.read_mapping(reading.parse_json(text, field), field),
        f"{field}.gatherStrategy",
    )
    gathers: dict[str, str] = {}
    multiples: list[Slice] = []
    for i, rule in enumerate(reading.read_few(spec.get("gatherStrategy"), under, dict, LEVELS_MAX)):
        at = f"{under}[{i}]"
        layer = reading.read_name(rule.get("layer"), f"{at}.layer")
        if layer in gathers:
            raise BadInput(f"{at}.layer", f"{values.quote(layer)} is there twice")
        strategy = rule.get("strategy")
        if strategy not in (_MUST, _PREFER):
            allowed = f"{values.quote(strategy)} is not one of {_MUST}, {_PREFER}"
            raise BadInput(f"{at}.strategy", allowed)
        gathers[layer] = strategy
        size = reading.read_optional_count(rule, "podCountMultiple", at) or 1
        if size > 1 and layer == _CLUSTER:
            raise BadInput(f"{at}.podCountMultiple", f"is not supported for {_CLUSTER}")
        if size > 1:
            multiples.append(Slice(layer, size))
    # All pods are in the cluster anyway.
    gathers.pop(_CLUSTER, None)
    must = [layer for layer, strategy in gathers.items() if strategy == _MUST]
    if not (gathers or multiples):
        return None
    return Constraint(
        Rule.KOORDINATOR,
        required=must[0] if must else "",
        also_required=tuple(must[1:]),
        preferred=tuple(layer for layer, strategy in gathers.items() if strategy == _PREFER),
        slices=tuple(multiples),
    )


def read_topology(found: ClusterNetworkTopology) -> Topology:
    """Read the layers of the network: each names its parent, and they must be one line."""
    field = "spec.networkTopologySpec"
    spec = values.read_mapping(found.spec, "spec")
    below: dict[str, tuple[str, Any]] = {}
    for i, layer in enumerate(
        reading.read_few(spec.get("networkTopologySpec"), field, dict, LEVELS_MAX)
    ):
        name = reading.read_name(layer.get("topologyLayer"), f"{field}[{i}].topologyLayer")
        if name == _CLUSTER:
            continue
        parent = reading.read_optional_name(layer, "parentTopologyLayer", f"{field}[{i}]")
        if (parent or _CLUSTER) in below:
            other = below[parent or _CLUSTER][0]
            text = f"{other} and {name} lie in one layer; only one of them can"
            raise BadInput(f"{field}[{i}].parentTopologyLayer", text)
        below[parent or _CLUSTER] = name, _read_label(layer, name, f"{field}[{i}]")
    levels, at = list[Level](), _CLUSTER
    while at in below:
        at, label = below.pop(at)
        levels.append(Level(at, label))
    if below:
        lost = ", ".join(name for name, _ in below.values())
        raise BadInput(field, f"{lost}: no line of parents leads from here to the cluster")
    if not levels or levels[-1].name != _NODE:
        raise BadInput(field, f"has no layer {_NODE}, which must be the finest")
    return Topology(Rule.KOORDINATOR, found.metadata.name, tuple(levels))


def _read_label(layer: dict[str, Any], name: str, field: str) -> str:
    if name == _NODE:
        # Each node is a domain, whatever labels it has.
        return names.HOSTNAME
    keys = reading.read_few(layer.get("labelKey"), f"{field}.labelKey", str)
    if len(keys) != 1:
        raise BadInput(f"{field}.labelKey", f"has {len(keys)} labels; exactly 1 is supported")
    return reading.read_name(keys[0], f"{field}.labelKey[0]", "a label")
