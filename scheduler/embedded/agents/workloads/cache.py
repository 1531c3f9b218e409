"""What the controllers know of the cluster: objects by uid, and their owners."""

import asyncio
from collections import defaultdict
from typing import Any

from scheduler.embedded.agents.apiclient import Client
from scheduler.embedded.agents.workloads import naming

Json = dict[str, Any]

# The API version and plural of each kind that owns objects or is owned.
KINDS = {
    "Deployment": ("apps/v1", "deployments"),
    "ReplicaSet": ("apps/v1", "replicasets"),
    "StatefulSet": ("apps/v1", "statefulsets"),
    "Job": ("batch/v1", "jobs"),
    "Pod": ("v1", "pods"),
}
_SEEN_SECONDS = 5.0


def make_list_path(kind: str, namespace: str = "") -> str:
    """Return the path of all objects of a kind, in all namespaces or in one."""
    version, plural = KINDS[kind]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


def make_path(kind: str, item: Json) -> str:
    """Return the path of one object."""
    meta = item["metadata"]
    return f"{make_list_path(kind, meta['namespace'])}/{meta['name']}"


class Cache:
    """Objects as the watches report them; ``changed`` holds the owners whose objects changed."""

    def __init__(self, client: Client) -> None:
        self.changed: set[str] = set()
        self.news = asyncio.Event()
        self._client = client
        self._items: dict[str, tuple[str, Json]] = {}
        self._owned: defaultdict[str, set[str]] = defaultdict(set)
        self._versions = dict.fromkeys(KINDS, 0)

    def find(self, uid: str) -> tuple[str, Json] | None:
        """Return the kind and the object of a uid."""
        return self._items.get(uid)

    def list_owned(self, uid: str) -> list[tuple[str, Json]]:
        """Return kind and object of everything that a controller made, by name."""
        found = [self._items[one] for one in self._owned.get(uid, ())]
        return sorted(found, key=lambda pair: str(pair[1]["metadata"]["name"]))

    async def prime(self) -> None:
        """Read all objects, so that no object is made that exists and was only not seen yet."""
        for kind in KINDS:
            for item in (await self._client.get(make_list_path(kind)))["items"]:
                self._put(kind, item)

    async def follow(self, kind: str) -> None:
        """Keep one kind up to date, for ever."""
        async for event, item in self._client.follow(make_list_path(kind)):
            if event == "DELETED":
                self._drop(kind, item)
            else:
                self._put(kind, item)

    async def wait_until_seen(self, kind: str, version: int) -> None:
        """Wait until the watch has reported a write, or give up: the next look sees the write."""
        try:
            async with asyncio.timeout(_SEEN_SECONDS):
                while self._versions[kind] < version:
                    self.news.clear()
                    await self.news.wait()
        except TimeoutError:
            return

    def _put(self, kind: str, item: Json) -> None:
        uid = item["metadata"]["uid"]
        before = self._leave(uid)
        self._items[uid] = (kind, item)
        if owner := naming.find_controller(item).get("uid", ""):
            self._owned[owner].add(uid)
        self._tell(kind, item, uid, owner, before)

    def _drop(self, kind: str, item: Json) -> None:
        uid = item["metadata"]["uid"]
        owner = self._leave(uid)
        self._tell(kind, item, uid, owner)

    def _leave(self, uid: str) -> str:
        """Forget the former state of an object, and that it was owned; return the uid of its owner."""
        if uid not in self._items:
            return ""
        _, item = self._items.pop(uid)
        owner = str(naming.find_controller(item).get("uid", ""))
        owned = self._owned.get(owner, set())
        owned.discard(uid)
        if not owned:
            self._owned.pop(owner, None)
        return owner

    def _tell(self, kind: str, item: Json, *uids: str) -> None:
        self._versions[kind] = max(self._versions[kind], int(item["metadata"]["resourceVersion"]))
        self.changed.update(uid for uid in uids if uid)
        self.news.set()
