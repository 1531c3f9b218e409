"""Kinds of objects, and the kinds with pod templates whose pods cannot be created here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from scheduler.api.kinds import BY_NAME, TABLE

WORKLOADS = frozenset(kind.name for kind in TABLE if kind.makes_pods)
# How deep a template may stand below an object's spec; a RayCluster has it five levels down.
_DEPTH_MAX = 12


class Illegible(dict[str, Any]):
    """A document that cannot be read, in a list of objects: it holds only the reason."""

    def __init__(self, problem: str) -> None:
        super().__init__()
        self.problem = problem


class ObjectKey(NamedTuple):
    """The key of an object: no two objects of a cluster have the same."""

    kind: str
    namespace: str
    name: str


def known(body: Mapping[str, Any]) -> str:
    """The kind of an object that is read, empty for one that is passed over.

    Objects need not say their API version, as those of a typed list do not.
    """
    kind, version = body.get("kind"), body.get("apiVersion")
    read = BY_NAME.get(kind) if isinstance(kind, str) else None
    if read is None:
        return ""
    # A Job of Volcano and a Service of Knative are other kinds.
    return read.name if version is None or str(version).rpartition("/")[0] == read.group else ""


def key(body: Mapping[str, Any]) -> ObjectKey:
    """The key of an object, however odd the object is."""
    metadata = body.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    kind = str(body.get("kind"))
    namespace = str(metadata.get("namespace") or "")
    if not namespace and kind in BY_NAME and BY_NAME[kind].is_namespaced:
        namespace = "default"
    return ObjectKey(kind, namespace, str(metadata.get("name") or ""))


def has_pod_template(body: Mapping[str, Any]) -> bool:
    """Whether an object of a kind that is not known holds containers below its spec: it makes pods."""
    return any("containers" in part for part in _parts(body.get("spec"), 0))


def _parts(value: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    """Every object within a value that has a list of containers."""
    if depth > _DEPTH_MAX:
        return
    if isinstance(value, Mapping):
        if isinstance(value.get("containers"), list) and value["containers"]:
            yield value
        for inner in value.values():
            yield from _parts(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _parts(inner, depth + 1)
