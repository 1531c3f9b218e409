"""Finds what a URL is about: kind, namespace, name, subresource."""

from typing import NamedTuple

from scheduler.embedded.store.kinds import Kind, Kinds
from scheduler.embedded.store.statuses import NoSuchPathError


class Target(NamedTuple):
    """The object or collection that a request is about."""

    kind: Kind
    namespace: str
    name: str
    subresource: str


def split_path(path: str) -> tuple[str, str, list[str]]:
    """Split an API path into group, version and the rest; a path of discovery has no rest."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"]:
        return "", parts[1] if len(parts) > 1 else "", parts[2:]
    group = parts[1] if len(parts) > 1 else ""
    return group, parts[2] if len(parts) > 2 else "", parts[3:]


def resolve_target(kinds: Kinds, group: str, version: str, rest: list[str]) -> Target:
    """Find the kind that serves a path, or raise 404."""
    namespace = ""
    # /namespaces/NAME/status is about a namespace, /namespaces/NAME/pods about pods in it.
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in {"status", "finalize"}:
        namespace, rest = rest[1], rest[2:]
    kind = kinds.find(group, version, rest[0])
    if kind is None or len(rest) > 3 or (namespace and not kind.namespaced):
        raise NoSuchPathError
    name = rest[1] if len(rest) > 1 else ""
    if name and kind.namespaced and not namespace:
        raise NoSuchPathError
    return Target(kind, namespace, name, rest[2] if len(rest) > 2 else "")
