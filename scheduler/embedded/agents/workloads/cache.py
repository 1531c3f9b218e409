"""What the controllers know of the cluster: objects by uid, and who owns whom."""

import asyncio
from collections import defaultdict
from typing import Any

from scheduler.embedded.agents.apiclient import Client
from scheduler.embedded.agents.workloads import naming

Json = dict[str, Any]

# Kind to API version and plural, of everything that owns or is owned.
KINDS = {
    "Deployment": ("apps/v1", "deployments"),
    "ReplicaSet": ("apps/v1", "replicasets"),
    "StatefulSet": ("apps/v1", "statefulsets"),
    "Job": ("batch/v1", "jobs"),
    "Pod": ("v1", "pods"),
}
_SEEN_SECONDS = 5.0


def collection(kind: str, namespace: str = "") -> str:
    """Return the path of all objects of a kind, in all namespaces or in one."""
    version, plural = KINDS[kind]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


def path(kind: str, item: Json) -> str:
    """Return the path of one object."""
    meta = item["metadata"]
    return f"{collection(kind, meta['namespace'])}/{meta['name']}"


class Cache:
    """Objects as the watches tell of them; ``changed`` holds the owners that something happened to."""

    def __init__(self, client: Client) -> None:
        self.changed: set[str] = set()
        self.news = asyncio.Event()
        self._client = client
        self._items: dict[str, tuple[str, Json]] = {}
        self._owned: defaultdict[str, set[str]] = defaultdict(set)
        self._versions = dict.fromkeys(KINDS, 0)

    def find(self, uid: str) -> tuple[str, Json] | None:
        """Return kind and object."""
        return self._items.get(uid)

    def owned_by(self, uid: str) -> list[tuple[str, Json]]:
        """Return kind and object of all that a controller made, by name."""
        found = [self._items[one] for one in self._owned.get(uid, ())]
        return sorted(found, key=lambda pair: str(pair[1]["metadata"]["name"]))

    async def prime(self) -> None:
        """Take in all that is there, so that nothing is made which only has not been seen yet."""
        for kind in KINDS:
            for item in (await self._client.get(collection(kind)))["items"]:
                self._put(kind, item)

    async def follow(self, kind: str) -> None:
        """Keep one kind up to date, for ever."""
        async for event, item in self._client.follow(collection(kind)):
            if event == "DELETED":
                self._drop(kind, item)
            else:
                self._put(kind, item)

    async def until_seen(self, kind: str, version: int) -> None:
        """Wait until the watch has told of a write, or give up: the next look sees it."""
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
        if owner := naming.controller_of(item).get("uid", ""):
            self._owned[owner].add(uid)
        self._tell(kind, item, uid, owner, before)

    def _drop(self, kind: str, item: Json) -> None:
        uid = item["metadata"]["uid"]
        owner = self._leave(uid)
        self._tell(kind, item, uid, owner)

    def _leave(self, uid: str) -> str:
        """Forget an object as it was, also as one that is owned; return the uid of its owner."""
        if uid not in self._items:
            return ""
        _, item = self._items.pop(uid)
        owner = str(naming.controller_of(item).get("uid", ""))
        owned = self._owned.get(owner, set())
        owned.discard(uid)
        if not owned:
            self._owned.pop(owner, None)
        return owner

    def _tell(self, kind: str, item: Json, *uids: str) -> None:
        self._versions[kind] = max(self._versions[kind], int(item["metadata"]["resourceVersion"]))
        self.changed.update(uid for uid in uids if uid)
        self.news.set()
