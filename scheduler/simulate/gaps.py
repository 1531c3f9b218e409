"""Objects that are missing and would matter, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from scheduler import printing
from scheduler.api import kinds as api_kinds
from scheduler.api import names, storage, wire
from scheduler.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from scheduler.printing import count_nouns
from scheduler.simulate.reading import kinds, objects
from scheduler.simulate.reading.inventory import Inventory

_NAMED_MAX = 5
_GROUP_KINDS = ("ReplicaSet", "StatefulSet", "ReplicationController")
# Of the admission plugins that take them from the namespace's annotations.
_OF_NAMESPACES = (
    "scheduler.alpha.kubernetes.io/node-selector",
    "scheduler.alpha.kubernetes.io/defaultTolerations",
)
# Where a workload says how many pods it has.
_COUNTED = ("replicas", "active", "currentNumberScheduled")
_VOLUME, _CLASS = "PersistentVolume", "StorageClass"
_STORAGE_ADDED = {
    _VOLUME: "add `persistentvolumes` to the dump",
    _CLASS: "create it, or add `storageclasses` to the dump",
}


def tell_gaps(
    inventory: Inventory,
    unlisted: Mapping[str, str],
    own: AbstractSet[int],
    *,
    is_mode_given: bool,
) -> list[str]:
    """Everything that is missing; first what one's own pods wait for.

    Args:
        inventory: what there is, with the pods of workloads.
        unlisted: kinds that a cluster would not list, and why.
        own: the positions of one's own objects, if they are beside a baseline.
        is_mode_given: a mode replaces that of the configuration.
    """
    mine = [pod for pod in inventory.pods if inventory.positions[pod.metadata.uid] in own]
    return [
        *_no_nodes(inventory),
        *missing_storage(inventory, mine),
        *unlisted_kinds(unlisted),
        *_unknown_kinds(inventory),
        *_priorities(inventory),
        *_namespaces(inventory, unlisted),
        *_owners(inventory),
        *_lost_pods(inventory),
        *_others_missing_storage(inventory, own),
        *_ages(inventory),
        *_admission(inventory),
        *(_modes(inventory) if is_mode_given else ()),
    ]


def _no_nodes(inventory: Inventory) -> Iterator[str]:
    if any(kinds.known(body) == "Node" for body in inventory.objects):
        return
    daemons = any(kinds.known(given.body) == "DaemonSet" for given in inventory.workloads)
    rest = "; without a Node, a DaemonSet has no pods" if daemons else ""
    yield f"no Node is among the objects: add nodes or use --context{rest}"


def unlisted_kinds(unlisted: Mapping[str, str]) -> Iterator[str]:
    """What is lost of kinds that a cluster would not list."""
    for kind, reason in unlisted.items():
        # A missing Namespace or PriorityClass is named with the pods that need it.
        if lost := api_kinds.BY_NAME[kind].lost:
            yield f"objects of kind {kind} cannot be listed ({reason}): {lost}"


def budgets(inventory: Inventory, rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """That no budget was given, where pods of a dump must make room for others; a cluster may have none."""
    if inventory.budgets or not any(row["victims"] for row in rows):
        return []
    add = "add `poddisruptionbudgets` to the dump"
    return [f"no PodDisruptionBudget is among the objects: {api_kinds.BUDGETS.lost}; {add}"]


def _unknown_kinds(inventory: Inventory) -> Iterator[str]:
    for (version, kind), count in inventory.unknown.items():
        yield (
            f"{count} {kind} ({version or 'no apiVersion'}): Evenkeel does not know which pods this kind "
            "creates, so these objects are left out; add their pods as Pods or Jobs"
        )


def _priorities(inventory: Inventory) -> Iterator[str]:
    for name in inventory.priorities.unknown:
        yield (
            f'no PriorityClass "{name}" is among the objects: pods that name it and do not set spec.priority '
            "have priority 0"
        )


def _namespaces(inventory: Inventory, unlisted: Mapping[str, str]) -> Iterator[str]:
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
        if any(_selects(term.namespace_selector) for term in _terms(pod))
    ]
    if by_labels:
        yield (
            f"labels of namespace {_some(missing)} are not known, because no such Namespace is among "
            f"the objects{why}; selectors of {_some(by_labels)} need these labels"
        )


def _needs_labels(selector: object) -> bool:
    if not isinstance(selector, Mapping):
        return False
    keys = list(selector.get("matchLabels") or ())
    keys += [one.get("key") for one in selector.get("matchExpressions") or ()]
    return any(key != names.NAMESPACE_NAME for key in keys)


def _selects(selector: wire.LabelSelector | None) -> bool:
    if selector is None:
        return False
    keys = [*(selector.match_labels or ()), *(one.key for one in selector.match_expressions or ())]
    return any(key != names.NAMESPACE_NAME for key in keys)


def _terms(pod: wire.Pod) -> Iterator[wire.PodTerm]:
    affinity = pod.spec.affinity
    for one in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        if one is not None:
            yield from one.required_during_scheduling_ignored_during_execution or ()
            for preferred in one.preferred_during_scheduling_ignored_during_execution or ():
                yield preferred.pod_affinity_term


def _owners(inventory: Inventory) -> Iterator[str]:
    """Pods without constraints of their own are spread with those of what made them."""
    there = {api_kinds.read_kind_name(group) for group in inventory.groups}
    for kind in _GROUP_KINDS:
        count = sum(
            (owner := objects.owner_of(pod)) is not None and owner.kind == kind
            for pod in inventory.pods
            if not pod.spec.node_name and not pod.spec.topology_spread_constraints
        )
        if count and kind not in there:
            pods, their = ("1 pod", "its") if count == 1 else (f"{count} pods", "their")
            yield (
                f"The {kind}s of {pods} are missing, so {their} spread is not simulated. "
                f"Add `{kind.lower()}s` to the dump"
            )


def _lost_pods(inventory: Inventory) -> Iterator[str]:
    made = {given.position for given in inventory.workloads}
    if any(position not in made for position in inventory.positions.values()):
        return
    if any(_has_pods(given.body.get("status")) for given in inventory.workloads):
        yield (
            "workloads report that they have pods, but no Pod is among the objects: the "
            "resources of these pods count as free, and all pods of the workloads are placed again"
        )


def missing_storage(inventory: Inventory, pods: Iterable[wire.Pod]) -> Iterator[str]:
    """The volumes and storage classes that claims name, with the pods that wait for them."""
    for (kind, name), who in _missing_storage(inventory, pods).items():
        yield (
            f"{kind} {name} is not among the objects: pods whose claims name it wait: {_some(who)}; "
            f"{_STORAGE_ADDED[kind]}"
        )


def _others_missing_storage(inventory: Inventory, own: AbstractSet[int]) -> Iterator[str]:
    """The same of pods that are not one's own; beside one's own files in one sentence."""
    others = [pod for pod in inventory.pods if inventory.positions[pod.metadata.uid] not in own]
    if not own:
        yield from missing_storage(inventory, others)
    elif waiting := _missing_storage(inventory, others):
        each = [
            f"{kind} {name} ({count_nouns(len(who), 'pod')})"
            for (kind, name), who in waiting.items()
        ]
        yield f"in the baseline, pods wait for storage that is not among the objects: {_some(each)}"


def _missing_storage(
    inventory: Inventory, pods: Iterable[wire.Pod]
) -> dict[tuple[str, str], dict[str, None]]:
    """The names of the pods that wait for each volume or class, by its kind and name."""
    wanted = {
        (one.metadata.namespace, one.metadata.name): _wanted(one)
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
        for claim in () if pod.spec.node_name else _claims_of(pod):
            key = wanted.get((pod.metadata.namespace, claim), (_CLASS, ""))
            if key[1] and key not in there:
                waiting.setdefault(key, {})[f"{pod.metadata.namespace}/{pod.metadata.name}"] = None
    return waiting


def _wanted(claim: PersistentVolumeClaim) -> tuple[str, str]:
    """The volume of a claim, or its class; a claim that names a volume needs no class."""
    if claim.spec.volume_name:
        return _VOLUME, claim.spec.volume_name
    return _CLASS, storage.find_class(claim)


def _claims_of(pod: wire.Pod) -> Iterator[str]:
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield f"{pod.metadata.name}-{volume.name}"


def _ages(inventory: Inventory) -> Iterator[str]:
    """The queue goes by age, and a manifest has none."""
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
            f"one are decided first: {_some(f'{one.metadata.namespace}/{one.metadata.name}' for one in young)}"
        )


def _has_pods(status: object) -> bool:
    return isinstance(status, Mapping) and any(map(status.get, _COUNTED))


def _admission(inventory: Inventory) -> Iterator[str]:
    new = [pod for pod in inventory.pods if pod.metadata.creation_timestamp == objects.NOT_YET]
    without = {
        pod.metadata.namespace
        for pod in new
        if pod.metadata.namespace in inventory.limit_ranges
        and any(not _asks_all(container) for container in pod.spec.containers)
    }
    if without:
        yield (
            f"LimitRanges of namespace {_some(sorted(without))}: their defaults are not filled in: "
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
            f"annotations of namespace {_some(steering)} for a node selector or tolerations are "
            "not applied to pods here; the API server may apply them"
        )


def _asks_all(container: wire.Container) -> bool:
    asked = (container.resources and container.resources.requests) or {}
    return names.CPU in asked and names.MEMORY in asked


def _modes(inventory: Inventory) -> Iterator[str]:
    own = [
        policy.metadata.name
        for policy in inventory.policies
        if "nodePolicy" in policy.spec or "mode" in (policy.spec.get("scoring") or {})
    ]
    if own:
        yield f"BalancePolicy {_some(own)} sets a mode, which wins over --mode for the pods that it selects"


def _some(words: Iterable[str]) -> str:
    return printing.some(list(dict.fromkeys(words)), _NAMED_MAX)
