"""Makes the pods that a job would have, from the templates of its workload and the flavors that it gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from scheduler.api import kueue, names, wire
from scheduler.api.groups import table
from scheduler.api.groups.definitions import Constraint
from scheduler.api.groups.readers import kueue as words
from scheduler.api.groups.readers.reading import Notes
from scheduler.api.pods import requests
from scheduler.api.queues.definitions import Flavor
from scheduler.api.queues.workloads import PodSet, WorkloadDefinition

# The annotations that say the same as the fields of a topology request.
_FIELDS = {
    "required": names.KUEUE_REQUIRED,
    "preferred": names.KUEUE_PREFERRED,
    "podSetSliceRequiredTopology": names.KUEUE_SLICE_LEVEL,
    "podSetGroupName": names.KUEUE_TOGETHER,
}
_LAYERS = "podsetSliceRequiredTopologyConstraints"


def make_pods(
    defined: WorkloadDefinition,
    pod_set: PodSet,
    numbers: Iterable[int],
    flavors: Sequence[Flavor],
    selectors: Sequence[Mapping[str, str]] = (),
    levels: Sequence[str] = (),
) -> list[wire.Pod]:
    """Make the pods with some numbers of a pod set, as they would be started.

    Args:
        defined: their workload.
        pod_set: the pod set; it must have a mold.
        numbers: of the pods.
        flavors: that the pod set gets.
        selectors: more labels that the node of each pod must have, by its number; none for no more.
        levels: labels that each node of their topology has; none for no topology.
    """
    mold = pod_set.mold or kueue.PodTemplate()
    spec = _add_levels(_add_flavors(requests.fill_requests(mold.spec), flavors), levels)
    spec = msgspec.structs.replace(
        spec, scheduling_gates=None, scheduling_group=None, priority=defined.priority
    )
    namespace, _, name = defined.key.partition("/")
    # Stand-ins are placed with their workload, whatever groups their templates name.
    labels = table.drop_group_labels(mold.metadata.labels or {})
    annotations = table.drop_group_annotations(mold.metadata.annotations or {})
    return [
        wire.Pod(
            metadata=wire.Meta(
                name=f"{name}-{pod_set.name}-{i}",
                namespace=namespace,
                uid=f"{defined.uid}/{pod_set.name}/{i}",
                labels=labels,
                annotations=annotations,
            ),
            spec=_add_selector(spec, selectors[i]) if selectors else spec,
        )
        for i in numbers
    ]


def _add_flavors(spec: wire.PodSpec, flavors: Sequence[Flavor]) -> wire.PodSpec:
    """Add what flavors add to the pods of a job that is started: labels of nodes, and tolerations."""
    selector = dict(spec.node_selector or {})
    tolerations = list(spec.tolerations or ())
    for flavor in flavors:
        selector |= flavor.labels
        tolerations += [
            wire.Toleration(key=key, operator=operator, value=value, effect=effect)
            for key, operator, value, effect in flavor.tolerations
        ]
    return msgspec.structs.replace(
        spec, node_selector=selector or None, tolerations=tolerations or None
    )


def _add_levels(spec: wire.PodSpec, levels: Sequence[str]) -> wire.PodSpec:
    """Add that the node has some labels: a node without them is in no domain of the topology."""
    if not levels:
        return spec
    has_all = [wire.Expression(key=label, operator="Exists") for label in levels]
    affinity = spec.affinity or wire.Affinity()
    of_node = affinity.node_affinity or wire.NodeAffinity()
    said = of_node.required_during_scheduling_ignored_during_execution
    if said is None:
        terms = [wire.NodeTerm(match_expressions=has_all)]
    else:
        terms = [_add_expressions(one, has_all) for one in said.node_selector_terms or ()]
    required = wire.NodeTerms(node_selector_terms=terms)
    of_node = msgspec.structs.replace(
        of_node, required_during_scheduling_ignored_during_execution=required
    )
    affinity = msgspec.structs.replace(affinity, node_affinity=of_node)
    return msgspec.structs.replace(spec, affinity=affinity)


def _add_expressions(term: wire.NodeTerm, more: Sequence[wire.Expression]) -> wire.NodeTerm:
    if not term.match_expressions and not term.match_fields:
        # It suits no node, and would suit some with these.
        return term
    found = [*(term.match_expressions or ()), *more]
    return msgspec.structs.replace(term, match_expressions=found)


def _add_selector(spec: wire.PodSpec, labels: Mapping[str, str]) -> wire.PodSpec:
    selector = {**(spec.node_selector or {}), **labels}
    return msgspec.structs.replace(spec, node_selector=selector)


def read_constraint(asked: Mapping[str, Any] | None, topology: str) -> Constraint | None:
    """Read where a topology request says that pods go, within a topology; None if it does not say it.

    Raises:
        BadInput: the request contradicts itself.
    """
    if asked is None:
        return None
    texts = {key: str(asked[field]) for field, key in _FIELDS.items() if asked.get(field)}
    if asked.get("unconstrained"):
        texts[names.KUEUE_UNCONSTRAINED] = "true"
    if asked.get("podSetSliceSize") is not None:
        texts[names.KUEUE_SLICE_SIZE] = str(asked["podSetSliceSize"])
    if asked.get(_LAYERS):
        texts[names.KUEUE_SLICES] = msgspec.json.encode(asked[_LAYERS]).decode()
    found = words.read_constraint(Notes(texts, "spec.podSets[].topologyRequest"))
    return None if found is None else msgspec.structs.replace(found, topology=topology)
