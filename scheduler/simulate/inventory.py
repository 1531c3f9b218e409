"""What is in manifests: typed, with admission's defaults, each object once. The only reader of files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.api.pods import requests
from scheduler.cycle import policies
from scheduler.devices.table import FAMILIES
from scheduler.errors import BadInput, Mistake
from scheduler.simulate import objects as manifests
from scheduler.state import facts
from scheduler.state.cluster import Cluster


class InputProblem(BadInput):
    """A BadInput that knows which object it is about.

    Attributes:
        position: index of the object in the list that was given.
        name: ``Kind namespace/name``.
    """

    def __init__(self, position: int, name: str, error: BadInput) -> None:
        super().__init__(error.field, error.problem)
        self.position, self.name = position, name

    def __str__(self) -> str:
        return f"{self.name}: {self.field}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Inventory:
    """The objects by kind, each kind in the order given.

    Attributes:
        groups: what selects pods that belong together, such as Services.
        policies: BalancePolicies, reduced to what is understood of them.
        objects: all that was given, so that an error can name one.
        positions: the place in ``objects`` of each pod, by uid.
    """

    objects: Sequence[Mapping[str, Any]]
    nodes: list[wire.Node] = field(default_factory=list)
    pods: list[wire.Pod] = field(default_factory=list)
    namespaces: list[wire.Namespace] = field(default_factory=list)
    groups: list[events.GroupSeen] = field(default_factory=list)
    policies: list[dict[str, Any]] = field(default_factory=list)
    positions: dict[str, int] = field(default_factory=dict)

    def problem_with(self, uid: str, mistake: Mistake) -> InputProblem:
        """An error about a pod."""
        at, body = self.positions[uid], self.objects[self.positions[uid]]
        return InputProblem(at, _name_of(body), BadInput(*mistake))


def read(objects: Sequence[Mapping[str, Any]]) -> Inventory:
    """Read Kubernetes objects. PriorityClasses count; kinds that do not matter are passed over.

    What a pod with a node holds is charged as far as it can be read, as in a cluster, so that one pod does
    not stop the reading of a whole cluster's dump. What it asks must be readable.

    Raises:
        InputProblem: an object is malformed or given twice; names the object, the field and what is allowed.
    """
    priorities: dict[str, int] = {}
    for position, body in enumerate(objects):
        with _named(position, body):
            priorities |= manifests.priority_class(body)
    inventory = Inventory(objects)
    seen: set[str] = set()
    for position, body in enumerate(objects):
        with _named(position, body):
            _take(inventory, body, priorities, position, seen)
    return inventory


def refuse_malformed(inventory: Inventory) -> None:
    """For readers that place nothing: what pending pods ask must be readable too.

    Raises:
        InputProblem: a pod without a node asks what nobody can read.
    """
    reader = Cluster()
    for pod in inventory.pods:
        record = reader.see_pod(pod)
        if record is not None and record.problem and not record.node:
            raise inventory.problem_with(record.uid, record.problem)


def _take(
    inventory: Inventory,
    body: Mapping[str, Any],
    priorities: Mapping[str, int],
    position: int,
    seen: set[str],
) -> None:
    match body.get("kind"):
        case "Node":
            node = manifests.decode(body, wire.Node)
            if problem := facts.of_node(node, FAMILIES).problem:
                raise BadInput(*problem)
            _once(node.metadata.name, seen)
            inventory.nodes.append(node)
        case "Pod":
            pod = manifests.pod(body, priorities, position)
            if pod.metadata.uid in inventory.positions:
                raise BadInput("metadata.name", "the object is given twice")
            inventory.positions[pod.metadata.uid] = position
            if pod.spec.node_name:
                requests.of_pod(pod)
            inventory.pods.append(pod)
        case "Namespace":
            inventory.namespaces.append(manifests.decode(body, wire.Namespace))
        case "Service" | "ReplicationController" | "ReplicaSet" | "StatefulSet" as kind:
            inventory.groups.append(manifests.group(body, names.GroupKind(kind)))
        case "BalancePolicy":
            name = policies.parse(body).name
            inventory.policies.append({"metadata": {"name": name}, "spec": body["spec"]})
        case _:
            return


@contextmanager
def _named(position: int, body: Mapping[str, Any]) -> Iterator[None]:
    try:
        yield
    except BadInput as error:
        raise InputProblem(position, _name_of(body), error) from error


def _once(name: str, seen: set[str]) -> None:
    if name in seen:
        raise BadInput("metadata.name", "the object is given twice")
    seen.add(name)


def _name_of(body: Mapping[str, Any]) -> str:
    """``Kind namespace/name`` of an object, however odd."""
    metadata = body.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    name = metadata.get("name") or metadata.get("generateName") or "(no name)"
    namespace = metadata.get("namespace")
    return f"{body.get('kind')} {namespace}/{name}" if namespace else f"{body.get('kind')} {name}"
