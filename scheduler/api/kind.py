"""A kind of API objects: where the API server has its objects, and what they are read for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from scheduler.api import wire


def _get_name(meta: wire.Meta) -> str:
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def get_uid(meta: wire.Meta) -> str:
    """Pods are told apart by uid, because a later pod may have the same name."""
    return meta.uid


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One line of the table.

    Attributes:
        name: the value of ``kind`` in its objects; with the API group behind it where other groups have such a kind.
        group, version, plural: where the API server has them; the group of the core is empty.
        shape: the type to which its JSON is decoded; a dict for a kind that is read as it stands.
        needed_by: what cannot work without the kind. It is empty if no decision needs the kind: then it is not watched,
            and only the simulation of admission and controllers reads it.
        lost: what is unknown of a cluster that does not list the kind; empty where that does not always matter.
        stream: the name of its watch in logs and metrics.
        key: makes the key of an object among its kind; see ``split_key`` for kinds in namespaces.
        is_namespaced: whether its objects are in namespaces.
        makes_pods: whether controllers make pods from its objects.
        is_rare: whether its objects are so few that kopf can watch them; else a stream of its own does.
        absent: what is logged once if the API server does not serve the kind; empty if every server serves it.
        is_of_queues: whether it is read only where Kueue's queues are managed.
        is_of_kai: whether it is read only where KAI's queues are managed.
        older: an older version, in which it is read where the API server does not serve ``version``; empty for none.
    """

    name: str
    group: str = ""
    version: str = "v1"
    plural: str
    shape: Any = dict[str, Any]
    needed_by: str = ""
    lost: str = ""
    stream: str = ""
    key: Callable[[wire.Meta], str] = _get_name
    is_namespaced: bool = True
    makes_pods: bool = False
    is_rare: bool = False
    absent: str = ""
    is_of_queues: bool = False
    is_of_kai: bool = False
    older: str = ""

    @property
    def kind(self) -> str:
        """The value of ``kind`` in its objects."""
        return self.name.partition(".")[0]

    @property
    def api_version(self) -> str:
        """The value of ``apiVersion`` in its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def path(self) -> str:
        """The path at which all objects of the kind are listed and watched."""
        return f"{self._root}/{self.plural}"

    def find_list_path(self, namespace: str) -> str:
        """Find the path of the objects in one namespace."""
        return f"{self._root}/namespaces/{namespace}/{self.plural}"

    def find_path(self, name: str, namespace: str = "") -> str:
        """Find the path of one object; ``namespace`` is empty for an object without one."""
        return f"{self.find_list_path(namespace) if namespace else self.path}/{name}"

    def list_versions(self) -> tuple[Kind, ...]:
        """List the kind in each version in which it is read, the newest first."""
        return (self, replace(self, version=self.older, older="")) if self.older else (self,)

    @property
    def _root(self) -> str:
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"
