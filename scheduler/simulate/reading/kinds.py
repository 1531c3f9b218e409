"""Recognizes kinds of objects, and kinds with pod templates whose pods cannot be created here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from scheduler.api.kinds import BY_KIND, BY_NAME, LIMIT_RANGES, OF_KAI, OF_QUEUES, TABLE
from scheduler.api.kinds import WORKLOADS as OF_JOBS

WORKLOADS = frozenset(kind.name for kind in TABLE if kind.makes_pods)
# What administrators say of queues: neither Workloads nor what else holds for pods.
QUEUES = frozenset(kind.name for kind in (*OF_QUEUES, *OF_KAI)) - {OF_JOBS.name, LIMIT_RANGES.name}
# How deep a template may be below an object's spec; a RayCluster has it five levels down.
_DEPTH_MAX = 12


class Illegible(dict[str, Any]):
    """Stands for a document that cannot be read in a list of objects: it holds only the reason."""

    def __init__(self, problem: str) -> None:
        super().__init__()
        self.problem = problem


class ObjectKey(NamedTuple):
    """The key of an object: no two objects of a cluster have the same key."""

    kind: str
    namespace: str
    name: str


def find_kind(body: Mapping[str, Any]) -> str:
    """Find the kind of an object; empty for a kind that is not read.

    Objects may have no API version: those of a typed list have none.
    """
    kind, version = body.get("kind"), body.get("apiVersion")
    read = BY_KIND.get(kind, []) if isinstance(kind, str) else []
    if version is None:
        return read[0].name if len(read) == 1 else ""
    # A Job of Volcano or a Service of Knative is another kind.
    group = str(version).rpartition("/")[0]
    return next((one.name for one in read if one.group == group), "")


def read_key(body: Mapping[str, Any]) -> ObjectKey:
    """Read the key of an object, however odd the object is."""
    metadata = body.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    kind = find_kind(body) or str(body.get("kind"))
    namespace = str(metadata.get("namespace") or "")
    if not namespace and kind in BY_NAME and BY_NAME[kind].is_namespaced:
        namespace = "default"
    return ObjectKey(kind, namespace, str(metadata.get("name") or ""))


def has_pod_template(body: Mapping[str, Any]) -> bool:
    """Whether an object of an unknown kind holds containers below its spec, so that it makes pods."""
    return any("containers" in part for part in _list_parts(body.get("spec"), 0))


def _list_parts(value: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    """List every object within a value that has a list of containers."""
    if depth > _DEPTH_MAX:
        return
    if isinstance(value, Mapping):
        if isinstance(value.get("containers"), list) and value["containers"]:
            yield value
        for inner in value.values():
            yield from _list_parts(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _list_parts(inner, depth + 1)
