"""Nodes and pods of manifests as they are, for readers that place nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from scheduler.api import requests, wire
from scheduler.errors import BadInput
from scheduler.simulate import objects as manifests
from scheduler.simulate.run import InputProblem, name_of, once, raise_problem
from scheduler.state import facts
from scheduler.state.cluster import Cluster


def read(objects: Sequence[Mapping[str, Any]]) -> tuple[list[wire.Node], list[wire.Pod]]:
    """The Nodes and Pods among Kubernetes objects; PriorityClasses are heeded, other kinds passed over.

    Raises:
        InputProblem: an object is malformed or given twice; names the object, the field and what is allowed.
    """
    priorities: dict[str, int] = {}
    nodes: dict[str, wire.Node] = {}
    pods: dict[str, wire.Pod] = {}
    # For what only the state can tell of a pod: whether its cards can be read.
    reader = Cluster()
    for position, body in enumerate(objects):
        with _named(position, body):
            priorities |= manifests.priority_class(body)
    for position, body in enumerate(objects):
        with _named(position, body):
            match body.get("kind"):
                case "Node":
                    node = _node(body)
                    once(node.metadata.name in nodes)
                    nodes[node.metadata.name] = node
                case "Pod":
                    pod = manifests.pod(body, priorities, position)
                    once(pod.metadata.uid in pods)
                    _check(pod, reader)
                    pods[pod.metadata.uid] = pod
                case _:
                    continue
    return list(nodes.values()), list(pods.values())


@contextmanager
def _named(position: int, body: Mapping[str, Any]) -> Iterator[None]:
    try:
        yield
    except BadInput as error:
        raise InputProblem(position, name_of(body), error) from error


def _node(body: Mapping[str, Any]) -> wire.Node:
    node = manifests.decode(body, wire.Node)
    if not node.metadata.name:
        raise BadInput("metadata.name", "is missing")
    raise_problem(facts.of_node(node).problem)
    return node


def _check(pod: wire.Pod, reader: Cluster) -> None:
    record = reader.see_pod(pod)
    if record is not None:
        requests.of_pod(pod)
        if not record.node:
            raise_problem(record.problem)
