"""The content of manifests: typed, with admission's defaults, each object once. The only reader of files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scheduler.api import kai, kueue, names, selectors, steering, wire
from scheduler.api.claims.objects import KINDS as OF_DEVICES
from scheduler.api.claims.objects import DeviceObject, ResourceClaimTemplate
from scheduler.api.groups import table
from scheduler.api.groups.definitions import GroupKey
from scheduler.api.groups.objects import (
    GROUP_KINDS,
    TOPOLOGY_KINDS,
    GroupObject,
    TopologyObject,
)
from scheduler.api.kinds import (
    BUDGETS,
    BY_NAME,
    CLAIM_TEMPLATES,
    CONFIG_MAPS,
    LIMIT_RANGES,
    NAMESPACES,
    NODES,
    OF_KAI,
    OF_QUEUES,
    PODS,
    POLICIES,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    WORKLOADS,
)
from scheduler.api.pods import requests
from scheduler.api.space_quotas import read_quota
from scheduler.api.storage import KINDS as STORAGE_KINDS
from scheduler.api.storage import StorageObject
from scheduler.devices import settings
from scheduler.devices.table import DEFAULT_DEVICES
from scheduler.errors import BadInput, Mistake, make_visible
from scheduler.shapes import policies
from scheduler.simulate.reading import kinds
from scheduler.simulate.reading import objects as manifests
from scheduler.simulate.reading.priorities import Priorities
from scheduler.state import facts

_JOB = "spec.jobTemplate."
# Characters that `envsubst`, a shell or a template would have replaced.
_UNFILLED = re.compile(r"[${}]")


class InputProblem(BadInput):
    """A BadInput about an object.

    Attributes:
        position: index of the object in the list that was given.
        name: ``Kind namespace/name``; empty for a document that cannot be read.
        others: if everything is refused, all other mistakes, in the order of the objects.
    """

    others: Sequence[InputProblem] = ()

    def __init__(self, position: int, name: str, error: BadInput) -> None:
        super().__init__(error.field, error.problem)
        self.position, self.name = position, make_visible(name)

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.name, self.field, self.problem)))


class Given(NamedTuple):
    """An object, and its place among those that were given."""

    position: int
    body: Mapping[str, Any]


class Unread(NamedTuple):
    """A pod that waits for a node and cannot be read."""

    position: int
    namespace: str
    name: str
    problem: Mistake

    @property
    def uid(self) -> str:
        """A uid for a pod whose uid cannot be read; no other pod has it."""
        return f"{self.namespace}/{self.name} ({self.position})"


@dataclass(frozen=True, slots=True)
class Inventory:
    """The objects by kind, each kind in the order given.

    Attributes:
        objects: all objects that were given, so that an error can name one.
        strict: for a mistake everything is refused, once all mistakes are known; else the object is left out.
        unlisted: kinds that a cluster would not list.
        priorities: the PriorityClasses.
        peers: objects that select pods which belong together, such as Services.
        grouping: objects that say which pods are a group, and topologies.
        storage: volume claims, volumes and other objects of storage.
        claiming: ResourceClaims and their templates, and the objects that say which devices there are.
        policies: BalancePolicies, reduced to known fields.
        config_maps: ConfigMaps that may configure devices, each with its place in ``objects``.
        budgets: PodDisruptionBudgets, as far as their status says.
        space_quotas: ResourceQuotas, which may limit what a namespace has of devices.
        queueing: queues, flavors and the like, and Workloads that wait in queues.
        made_workloads: of the Workloads among them that no file has, by namespace and name, the uids of the pods.
        without_workload: why pods wait whose job gets no Workload because of its mistakes, by uid.
        workloads: objects from which controllers make pods; they are not read any further.
        limit_ranges: namespaces that have a LimitRange.
        positions: by uid of a pod, the place in ``objects`` of the pod or of the workload that it is made from.
        templates: by uid of a pod that is made from a template, the path of the template.
        unread: pods that cannot be read.
        mistakes: the mistakes of all objects, by position and text: a mistake in a template counts once.
        passed_over: how many objects of each kind do not matter.
        unknown: how many there are of each (API version, kind) that makes pods in a way not known here.
    """

    objects: Sequence[Mapping[str, Any]]
    strict: bool
    priorities: Priorities
    unlisted: AbstractSet[str] = frozenset()
    nodes: list[wire.Node] = field(default_factory=list)
    pods: list[wire.Pod] = field(default_factory=list)
    namespaces: list[steering.Namespace] = field(default_factory=list)
    peers: list[steering.PeerObject] = field(default_factory=list)
    grouping: list[GroupObject | TopologyObject] = field(default_factory=list)
    storage: list[StorageObject] = field(default_factory=list)
    claiming: list[DeviceObject | ResourceClaimTemplate] = field(default_factory=list)
    policies: list[steering.BalancePolicy] = field(default_factory=list)
    config_maps: list[tuple[int, steering.ConfigMap]] = field(default_factory=list)
    budgets: list[steering.PodDisruptionBudget] = field(default_factory=list)
    space_quotas: list[steering.ResourceQuota] = field(default_factory=list)
    queueing: list[kueue.QueueObject | kai.Queue] = field(default_factory=list)
    made_workloads: dict[str, tuple[str, ...]] = field(default_factory=dict)
    without_workload: dict[str, str] = field(default_factory=dict)
    workloads: list[Given] = field(default_factory=list)
    limit_ranges: set[str] = field(default_factory=set)
    positions: dict[str, int] = field(default_factory=dict)
    templates: dict[str, str] = field(default_factory=dict)
    unread: list[Unread] = field(default_factory=list)
    mistakes: dict[tuple[int, Mistake], InputProblem] = field(default_factory=dict)
    passed_over: Counter[str] = field(default_factory=Counter)
    unknown: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def waits_for_quota(self) -> bool:
        """Whether jobs with a queue wait for it: there are ClusterQueues, and it is known which Workloads there are."""
        has_queues = any(isinstance(one, kueue.ClusterQueue) for one in self.queueing)
        return has_queues and WORKLOADS.name not in self.unlisted

    def make_problem(self, uid: str, mistake: Mistake) -> InputProblem:
        """Make an error about a pod; for a pod that is made from a template, about the object with the template."""
        at, body = self.positions[uid], self.objects[self.positions[uid]]
        path = self.templates.get(uid, "")
        field = f"{path}{mistake.field}".rstrip(".")
        return InputProblem(at, read_name(body), BadInput(field, mistake.text))

    def keep_group_problems(self, found: Iterable[tuple[str, GroupKey | None, Mistake]]) -> None:
        """Keep mistakes of groups: each with a pod, and with the key of the object that has it; None: the pod has it."""
        given = {kinds.read_key(body): at for at, body in enumerate(self.objects)}
        for uid, key, mistake in found:
            problem = self.make_problem(uid, mistake)
            if key is not None:
                kind = key.kind if key.kind in BY_NAME else key.kind.partition(".")[0]
                at = given.get(kinds.ObjectKey(kind, key.namespace, key.name))
                problem = self._make_object_problem(at, uid, mistake)
            self.keep_problem(problem)

    def _make_object_problem(self, at: int | None, uid: str, mistake: Mistake) -> InputProblem:
        """Make an error about an object; None: about the workload that makes the object and a pod."""
        path = ""
        if at is None:
            at = self.positions[uid]
            # Of the kinds that make other objects, only a CronJob has a template of them.
            path = _JOB if self.templates.get(uid, "").startswith(_JOB) else ""
        error = BadInput(path + mistake.field, mistake.text)
        return InputProblem(at, read_name(self.objects[at]), error)

    def keep_problem(self, problem: InputProblem) -> None:
        """Keep a mistake, once for all pods of one template."""
        self.mistakes.setdefault((problem.position, problem.mistake), problem)

    @contextmanager
    def collect_mistakes(self, given: Given) -> Iterator[None]:
        """Within this context, a BadInput becomes a mistake of the object, which is left out."""
        try:
            yield
        except BadInput as error:
            self.keep_problem(InputProblem(given.position, read_name(given.body), error))

    def refuse_mistakes(self) -> None:
        """Raise all mistakes that are known by now, if the inventory is strict, so that all can be corrected at once.

        Raises:
            InputProblem: strict, and there is a mistake; the first, with the others.
        """
        if self.strict and self.mistakes:
            first, *others = sorted(self.mistakes.values(), key=lambda one: one.position)
            first.others = others
            raise first


def read_inventory(
    objects: Sequence[Mapping[str, Any]],
    *,
    strict: bool = True,
    unlisted: AbstractSet[str] = frozenset(),
) -> Inventory:
    """Read Kubernetes objects. Workloads are only kept; objects of kinds that do not matter are only counted.

    A pod with a node is charged as far as it can be read, as in a cluster, so that one pod does not stop the reading
    of a whole cluster's dump; but its requests must be readable. An object that is malformed or given twice is among
    the mistakes; with ``strict``, ``refuse_mistakes`` raises them. ``unlisted``: kinds that a cluster would not list.
    """
    inventory = Inventory(objects, strict, Priorities(strict=strict), unlisted)
    everything = [Given(position, body) for position, body in enumerate(objects)]
    for given in everything:
        if kinds.find_kind(given.body) == PRIORITY_CLASSES.name:
            with inventory.collect_mistakes(given):
                inventory.priorities.see(given.body)
    seen: set[kinds.ObjectKey] = set()
    for given in everything:
        with inventory.collect_mistakes(given):
            _take_object(inventory, given, seen)
    return inventory


def _take_object(inventory: Inventory, given: Given, seen: set[kinds.ObjectKey]) -> None:
    body = given.body
    _check_form(body)
    kind = kinds.find_kind(body)
    if kind in kinds.WORKLOADS or kind == NODES.name or kind in {*STORAGE_KINDS, *OF_DEVICES}:
        key = kinds.read_key(body)
        if key in seen:
            raise BadInput("metadata.name", "the object is given twice")
        seen.add(key)
    if kind in _GROUPING:
        _take_grouping(inventory, given, kind)
    if kind in _PEERS:
        inventory.peers.append(manifests.read_peer_object(body))
    if kind in kinds.WORKLOADS:
        inventory.workloads.append(given)
    elif kind in _TAKES:
        _TAKES[kind](inventory, given)
    elif (not kind or kind in _GROUPING) and kinds.has_pod_template(body):
        inventory.unknown[str(body.get("apiVersion", "")), str(body.get("kind"))] += 1
    elif not kind:
        inventory.passed_over[str(body.get("kind"))] += 1


def _check_form(body: Mapping[str, Any]) -> None:
    if isinstance(body, kinds.Illegible):
        raise BadInput("", body.problem)
    if not isinstance(body.get("kind"), str):
        raise BadInput("kind", "is missing: every document and every item of a List must name one")
    name = kinds.read_key(body).name
    if kinds.find_kind(body) and _UNFILLED.search(name):
        problem = "is not a name that an API server takes: a variable is not filled in"
        raise BadInput("metadata.name", f"{selectors.quote(name)} {problem}")


def _take_grouping(inventory: Inventory, given: Given, kind: str) -> None:
    """Take an object that says which pods are a group, or a topology; with a mistake it stays, and its pods are held."""
    found = manifests.read_grouping(given.body, kind)
    inventory.grouping.append(found)
    if isinstance(found, TopologyObject):
        table.read_topology(found)
    elif kind not in kinds.WORKLOADS and (problem := table.read_definition(found).problem):
        # What a workload says counts only if its pods are a group.
        raise BadInput(*problem)


def _take_node(inventory: Inventory, given: Given) -> None:
    node = manifests.decode(given.body, wire.Node)
    if problem := facts.read_facts(node, DEFAULT_DEVICES).problem:
        raise BadInput(*problem)
    inventory.nodes.append(node)


def _take_namespace(inventory: Inventory, given: Given) -> None:
    inventory.namespaces.append(manifests.decode(given.body, steering.Namespace))


def _take_limit_range(inventory: Inventory, given: Given) -> None:
    inventory.limit_ranges.add(kinds.read_key(given.body).namespace)
    _take_queueing(inventory, given)


def _take_policy(inventory: Inventory, given: Given) -> None:
    name = policies.parse_policy(given.body).name
    inventory.policies.append(steering.BalancePolicy(wire.Meta(name=name), given.body["spec"]))


def _take_config_map(inventory: Inventory, given: Given) -> None:
    found = manifests.decode(given.body, steering.ConfigMap)
    if not isinstance(found.data, Mapping) or settings.KEYS.isdisjoint(found.data):
        inventory.passed_over[CONFIG_MAPS.name] += 1
        return
    found.metadata.namespace = found.metadata.namespace or "default"
    inventory.config_maps.append((given.position, found))


def _take_budget(inventory: Inventory, given: Given) -> None:
    inventory.budgets.append(manifests.read_budget(given.body))


def _take_space_quota(inventory: Inventory, given: Given) -> None:
    found = manifests.decode(given.body, steering.ResourceQuota)
    found.metadata.namespace = found.metadata.namespace or "default"
    read_quota(found)
    inventory.space_quotas.append(found)


def _take_storage(inventory: Inventory, given: Given) -> None:
    inventory.storage.append(manifests.read_storage(given.body))


def _take_claiming(inventory: Inventory, given: Given) -> None:
    inventory.claiming.append(manifests.read_claiming(given.body))


def _take_queueing(inventory: Inventory, given: Given) -> None:
    kind = kinds.find_kind(given.body)
    inventory.queueing.append(manifests.read_queueing(given.body, kind, given.position))


def _take_pod(inventory: Inventory, given: Given) -> None:
    try:
        pod = manifests.read_pod(given.body, inventory.priorities, given.position)
    except BadInput as error:
        _, namespace, name = kinds.read_key(given.body)
        spec = given.body.get("spec")
        if not (isinstance(spec, Mapping) and spec.get("nodeName")):
            unread = Unread(given.position, namespace, name or "(no name)", error.mistake)
            inventory.unread.append(unread)
            inventory.positions[unread.uid] = given.position
        raise
    uid = pod.metadata.uid
    if uid in inventory.positions:
        raise BadInput("metadata.name", "the object is given twice")
    inventory.positions[uid] = given.position
    inventory.pods.append(pod)
    if pod.spec.node_name:
        requests.read_requests(pod)


_PEERS = frozenset(names.PeerKind)
_GROUPING = frozenset((*GROUP_KINDS, *TOPOLOGY_KINDS))
_TAKES: dict[str, Callable[[Inventory, Given], None]] = {
    NODES.name: _take_node,
    PODS.name: _take_pod,
    NAMESPACES.name: _take_namespace,
    LIMIT_RANGES.name: _take_limit_range,
    POLICIES.name: _take_policy,
    CONFIG_MAPS.name: _take_config_map,
    BUDGETS.name: _take_budget,
    RESOURCE_QUOTAS.name: _take_space_quota,
    **dict.fromkeys(STORAGE_KINDS, _take_storage),
    **dict.fromkeys((*OF_DEVICES, CLAIM_TEMPLATES.name), _take_claiming),
    **dict.fromkeys(
        (kind.name for kind in (*OF_QUEUES, *OF_KAI) if kind != LIMIT_RANGES), _take_queueing
    ),
}


def read_name(body: Mapping[str, Any]) -> str:
    """Read ``Kind namespace/name`` of an object, however odd it is."""
    if isinstance(body, kinds.Illegible):
        return ""
    metadata = body.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    name = metadata.get("name") or metadata.get("generateName") or "(no name)"
    kind, namespace = body.get("kind") or "(no kind)", metadata.get("namespace")
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
