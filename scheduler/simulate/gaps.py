"""Reports in sentences which objects are missing that would matter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any

from scheduler import printing
from scheduler.api import kinds as api_kinds
from scheduler.api import kueue, names, storage, wire
from scheduler.api.queues import reading, remarks
from scheduler.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from scheduler.errors import BadInput
from scheduler.printing import count_nouns
from scheduler.simulate.reading import kinds, objects
from scheduler.simulate.reading.inventory import Inventory

_NAMED_MAX = 5
_GROUP_KINDS = ("ReplicaSet", "StatefulSet", "ReplicationController")
# The admission plugins that read annotations of the namespace.
_OF_NAMESPACES = (
    "scheduler.alpha.kubernetes.io/node-selector",
    "scheduler.alpha.kubernetes.io/defaultTolerations",
)
# The fields in which a workload says how many pods it has.
_COUNTED = ("replicas", "active", "currentNumberScheduled")
_VOLUME, _CLASS = "PersistentVolume", "StorageClass"
_STORAGE_ADDED = {
    _VOLUME: "add `persistentvolumes` to the dump",
    _CLASS: "create it, or add `storageclasses` to the dump",
}


def report_gaps(
    inventory: Inventory,
    unlisted: Mapping[str, str],
    own: AbstractSet[int],
    *,
    is_mode_given: bool,
) -> list[str]:
    """Report everything that is missing, first what one's own pods wait for.

    Args:
        inventory: the objects, with the pods of workloads.
        unlisted: kinds that a cluster would not list, and why.
        own: the positions of one's own objects, if they are beside a baseline.
        is_mode_given: whether a mode replaces that of the configuration.
    """
    mine = [pod for pod in inventory.pods if inventory.positions[pod.metadata.uid] in own]
    return [
        *_report_no_nodes(inventory),
        *report_missing_storage(inventory, mine),
        *report_unlisted_kinds(unlisted),
        *_report_unknown_kinds(inventory),
        *_report_quotas(inventory),
        *_report_priorities(inventory),
        *_report_namespaces(inventory, unlisted),
        *_report_owners(inventory),
        *_report_lost_pods(inventory),
        *_report_storage_of_others(inventory, own),
        *_report_ages(inventory),
        *_report_admission(inventory),
        *(_report_modes(inventory) if is_mode_given else ()),
    ]


def _report_no_nodes(inventory: Inventory) -> Iterator[str]:
    if any(kinds.find_kind(body) == "Node" for body in inventory.objects):
        return
    daemons = any(kinds.find_kind(given.body) == "DaemonSet" for given in inventory.workloads)
    rest = "; without a Node, a DaemonSet has no pods" if daemons else ""
    yield f"no Node is among the objects: add nodes or use --context{rest}"


def report_unlisted_kinds(unlisted: Mapping[str, str]) -> Iterator[str]:
    """Report what is lost with kinds that a cluster would not list, and with objects that it would not show."""
    for key, reason in unlisted.items():
        kind, _, name = key.partition(" ")
        what = f"{key} cannot be read" if name else f"objects of kind {kind} cannot be listed"
        # A missing Namespace or PriorityClass is named with the pods that need it.
        if lost := api_kinds.BY_NAME[kind].lost:
            yield f"{what} ({reason}): {lost}"


def report_budgets(inventory: Inventory, rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Report that no budget was given, if pods of a dump must make room for others; a cluster may have none."""
    if inventory.budgets or not any(row["victims"] for row in rows):
        return []
    add = "add `poddisruptionbudgets` to the dump"
    return [f"no PodDisruptionBudget is among the objects: {api_kinds.BUDGETS.lost}; {add}"]


def _report_unknown_kinds(inventory: Inventory) -> Iterator[str]:
    for (version, kind), count in inventory.unknown.items():
        yield (
            f"{count} {kind} ({version or 'no apiVersion'}): Evenkeel does not know which pods this kind "
            "creates, so these objects are left out; add their pods as Pods or Jobs"
        )


def _report_quotas(inventory: Inventory) -> Iterator[str]:
    """Report what is written of quotas and means nothing; what is wrong with them is a mistake of the object."""
    for one in inventory.queueing:
        with suppress(BadInput):
            match one:
                case kueue.ClusterQueue():
                    found = remarks.list_remarks(reading.read_queue(one))
                case kueue.Cohort():
                    found = remarks.list_remarks(reading.read_cohort(one))
                case kueue.ResourceFlavor():
                    found = remarks.list_remarks(reading.read_flavor(one))
                case _:
                    continue
            yield from (f"{type(one).__name__} {one.metadata.name}: {text}" for text in found)


def _report_priorities(inventory: Inventory) -> Iterator[str]:
    for name in inventory.priorities.unknown:
        yield (
            f'no PriorityClass "{name}" is among the objects: pods that name it and do not set spec.priority '
            "have priority 0"
        )


def _report_namespaces(inventory: Inventory, unlisted: Mapping[str, str]) -> Iterator[str]:
    there = {one.metadata.name for one in inventory.namespaces}
    missing = dict.fromkeys(
        pod.metadata.namespace for pod in inventory.pods if pod.metadata.namespace not in there
    )
    if not missing:
        return
    why = f" (they cannot be listed: {unlisted['Namespace']})" if "Namespace" in unlisted else ""
    by_labels = [
        f"BalancePolicy {policy.metadata.name}"
        for policy in inventory.policies
        if _needs_labels(policy.spec.get("namespaceSelector"))
    ]
    by_labels += [
        f"pod {pod.metadata.namespace}/{pod.metadata.name}"
        for pod in inventory.pods
        if any(_needs_matches(term.namespace_selector) for term in _list_terms(pod))
    ]
    if by_labels:
        yield (
            f"labels of namespace {_join_some(missing)} are not known, because no such Namespace is among "
            f"the objects{why}; selectors of {_join_some(by_labels)} need these labels"
        )


def _needs_labels(selector: object) -> bool:
    if not isinstance(selector, Mapping):
        return False
    keys = list(selector.get("matchLabels") or ())
    keys += [one.get("key") for one in selector.get("matchExpressions") or ()]
    return any(key != names.NAMESPACE_NAME for key in keys)


def _needs_matches(selector: wire.LabelSelector | None) -> bool:
    if selector is None:
        return False
    keys = [*(selector.match_labels or ()), *(one.key for one in selector.match_expressions or ())]
    return any(key != names.NAMESPACE_NAME for key in keys)


def _list_terms(pod: wire.Pod) -> Iterator[wire.PodTerm]:
    affinity = pod.spec.affinity
    for one in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        if one is not None:
            yield from one.required_during_scheduling_ignored_during_execution or ()
            for preferred in one.preferred_during_scheduling_ignored_during_execution or ():
                yield preferred.pod_affinity_term


def _report_owners(inventory: Inventory) -> Iterator[str]:
    """Report which owners are missing: pods without constraints are spread by the selector of their owner."""
    there = {api_kinds.read_kind_name(group) for group in inventory.peers}
    for kind in _GROUP_KINDS:
        count = sum(
            (owner := objects.find_owner(pod)) is not None and owner.kind == kind
            for pod in inventory.pods
            if not pod.spec.node_name and not pod.spec.topology_spread_constraints
        )
        if count and kind not in there:
            pods, their = ("1 pod", "its") if count == 1 else (f"{count} pods", "their")
            yield (
                f"The {kind}s of {pods} are missing, so {their} spread is not simulated. "
                f"Add `{kind.lower()}s` to the dump"
            )


def _report_lost_pods(inventory: Inventory) -> Iterator[str]:
    made = {given.position for given in inventory.workloads}
    if any(position not in made for position in inventory.positions.values()):
        return
    if any(_has_pods(given.body.get("status")) for given in inventory.workloads):
        yield (
            "workloads report that they have pods, but no Pod is among the objects: the "
            "resources of these pods count as free, and all pods of the workloads are placed again"
        )


def report_missing_storage(inventory: Inventory, pods: Iterable[wire.Pod]) -> Iterator[str]:
    """Report which volumes and storage classes that claims name are missing, with the pods that wait for them."""
    for (kind, name), who in _find_missing_storage(inventory, pods).items():
        yield (
            f"{kind} {name} is not among the objects: pods whose claims name it wait: {_join_some(who)}; "
            f"{_STORAGE_ADDED[kind]}"
        )


def _report_storage_of_others(inventory: Inventory, own: AbstractSet[int]) -> Iterator[str]:
    """Report the same for pods that are not one's own; in one sentence, if one's own files are given."""
    others = [pod for pod in inventory.pods if inventory.positions[pod.metadata.uid] not in own]
    if not own:
        yield from report_missing_storage(inventory, others)
    elif waiting := _find_missing_storage(inventory, others):
        each = [
            f"{kind} {name} ({count_nouns(len(who), 'pod')})"
            for (kind, name), who in waiting.items()
        ]
        yield f"in the baseline, pods wait for storage that is not among the objects: {_join_some(each)}"


def _find_missing_storage(
    inventory: Inventory, pods: Iterable[wire.Pod]
) -> dict[tuple[str, str], dict[str, None]]:
    """Find the missing volumes and classes, by kind and name, with the names of the pods that wait for each."""
    wanted = {
        (one.metadata.namespace, one.metadata.name): _find_wanted(one)
        for one in inventory.storage
        if isinstance(one, PersistentVolumeClaim)
    }
    there = {
        (_VOLUME if isinstance(one, PersistentVolume) else _CLASS, one.metadata.name)
        for one in inventory.storage
        if isinstance(one, PersistentVolume | StorageClass)
    }
    waiting: dict[tuple[str, str], dict[str, None]] = {}
    for pod in pods:
        for claim in () if pod.spec.node_name else _list_claims(pod):
            key = wanted.get((pod.metadata.namespace, claim), (_CLASS, ""))
            if key[1] and key not in there:
                waiting.setdefault(key, {})[f"{pod.metadata.namespace}/{pod.metadata.name}"] = None
    return waiting


def _find_wanted(claim: PersistentVolumeClaim) -> tuple[str, str]:
    """Find what a claim names: its volume, or else its class; a claim that names a volume needs no class."""
    if claim.spec.volume_name:
        return _VOLUME, claim.spec.volume_name
    return _CLASS, storage.find_class(claim)


def _list_claims(pod: wire.Pod) -> Iterator[str]:
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield f"{pod.metadata.name}-{volume.name}"


def _report_ages(inventory: Inventory) -> Iterator[str]:
    """Report that ages are missing: the queue goes by age, and a manifest has none."""
    waiting = [
        pod
        for pod in inventory.pods
        if not pod.spec.node_name and pod.metadata.uid not in inventory.templates
    ]
    young = [one for one in waiting if one.metadata.creation_timestamp == objects.NOT_YET]
    if young and len(young) < len(waiting):
        which = "pod has" if len(young) == 1 else "pods have"
        yield (
            f"{len(young)} waiting {which} no creationTimestamp, so among pods of equal priority those that have "
            f"one are decided first: {_join_some(f'{one.metadata.namespace}/{one.metadata.name}' for one in young)}"
        )


def _has_pods(status: object) -> bool:
    return isinstance(status, Mapping) and any(map(status.get, _COUNTED))


def _report_admission(inventory: Inventory) -> Iterator[str]:
    new = [pod for pod in inventory.pods if pod.metadata.creation_timestamp == objects.NOT_YET]
    without = {
        pod.metadata.namespace
        for pod in new
        if pod.metadata.namespace in inventory.limit_ranges
        and any(not _has_all_requests(container) for container in pod.spec.containers)
    }
    if without:
        yield (
            f"LimitRanges of namespace {_join_some(sorted(without))}: their defaults are not filled in: "
            "containers that request no CPU or memory may get a default request in the cluster"
        )
    spaces = {pod.metadata.namespace for pod in new}
    steering = [
        one.metadata.name
        for one in inventory.namespaces
        if one.metadata.name in spaces
        and any(key in (one.metadata.annotations or {}) for key in _OF_NAMESPACES)
    ]
    if steering:
        yield (
            f"annotations of namespace {_join_some(steering)} for a node selector or tolerations are "
            "not applied to pods here; the API server may apply them"
        )


def _has_all_requests(container: wire.Container) -> bool:
    asked = (container.resources and container.resources.requests) or {}
    return names.CPU in asked and names.MEMORY in asked


def _report_modes(inventory: Inventory) -> Iterator[str]:
    own = [
        policy.metadata.name
        for policy in inventory.policies
        if "nodePolicy" in policy.spec or "mode" in (policy.spec.get("scoring") or {})
    ]
    if own:
        yield f"BalancePolicy {_join_some(own)} sets a mode, which wins over --mode for the pods that it selects"


def _join_some(words: Iterable[str]) -> str:
    return printing.list_some(list(dict.fromkeys(words)), _NAMED_MAX)
