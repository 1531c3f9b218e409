"""The one controller that the cluster needs: it empties and removes namespaces."""

from typing import Any

from scheduler.embedded.api.writing.registry import Registry
from scheduler.embedded.store.builtin import NAMESPACES
from scheduler.embedded.store.kinds import Kinds
from scheduler.embedded.store.store import Change

Json = dict[str, Any]

INITIAL = ("default", "kube-node-lease", "kube-public", "kube-system")


class Namespaces:
    """Deletes the objects in a terminating namespace, and the namespace when it is empty."""

    def __init__(self, registry: Registry, kinds: Kinds) -> None:
        self._registry = registry
        self._kinds = kinds
        self._terminating: set[str] = set()
        for name in INITIAL:
            registry.create(NAMESPACES, "", {"metadata": {"name": name}})
        registry.store.listen(self._follow_change)

    def _follow_change(self, bucket: str, change: Change) -> None:
        if bucket == "namespaces":
            name = change.record.key[1]
            if change.deleted:
                self._terminating.discard(name)
            elif (
                "deletionTimestamp" in change.record.body["metadata"]
                and name not in self._terminating
            ):
                self._terminating.add(name)
                self._empty(name)
                self._finish(name)
        elif self._terminating and change.deleted:
            self._finish(change.record.key[0])

    def _empty(self, name: str) -> None:
        for kind in self._kinds.list_buckets():
            if kind.namespaced:
                objects = self._registry.store.get_bucket(kind.bucket).objects
                for key in [key for key in objects if key[0] == name]:
                    if key in objects:
                        self._registry.delete(kind, key, {})

    def _finish(self, name: str) -> None:
        if name not in self._terminating:
            return
        store = self._registry.store
        for kind in self._kinds.list_buckets():
            if kind.namespaced and any(
                key[0] == name for key in store.get_bucket(kind.bucket).objects
            ):
                return
        self._terminating.discard(name)
        if ("", name) in store.get_bucket("namespaces").objects:
            store.remove("namespaces", ("", name))
