"""kube-scheduler itself, on a real API server that holds one world at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
import msgspec

from tests.controlplane import objects, plane
from tests.differential import allocations
from tests.differential.answers import Answer
from tests.differential.features import profiles
from tests.differential.scheduler_log import Log
from tests.differential.worlds import NAMESPACES, OVERHEADS, SCHEDULER, World, classes

Json = dict[str, Any]
# Kinds whose status is patched in after they are made.
_TOLD = frozenset({
    "Pod", "PodDisruptionBudget", "PersistentVolume", "PersistentVolumeClaim", "ResourceClaim",
})  # fmt: skip
_CLAIMS = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims"
# Kinds of which worlds have some; those of a namespace are emptied namespace by namespace.
_SPACED = (
    "/api/v1/namespaces/{}/pods",
    "/api/v1/namespaces/{}/services",
    "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "/api/v1/namespaces/{}/replicationcontrollers",
    "/apis/apps/v1/namespaces/{}/replicasets",
    "/apis/apps/v1/namespaces/{}/statefulsets",
    "/api/v1/namespaces/{}/persistentvolumeclaims",
    "/apis/storage.k8s.io/v1/namespaces/{}/csistoragecapacities",
    _CLAIMS,
)
_WIDE = (
    "/api/v1/persistentvolumes",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/volumeattachments",
    "/apis/resource.k8s.io/v1/resourceslices",
    "/apis/resource.k8s.io/v1/deviceclasses",
    "/apis/resource.k8s.io/v1/devicetaintrules",
    "/api/v1/nodes",
)
# Protected claims and volumes would wait for a controller before they go.
_ADMISSION = (
    "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection"
)
# The default would leave some with a finalizer that only a controller takes away.
_AT_ONCE = {"gracePeriodSeconds": "0", "propagationPolicy": "Background"}
# Services and the like are seen by kube-scheduler in streams of their own, of which it logs nothing.
_SETTLE_SECONDS = 0.03
_NOBODY = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "nobody", "namespace": "blue"},
    "spec": {"schedulerName": SCHEDULER, "containers": [{"name": "c", "image": "none"}]},
}


class Asked(NamedTuple):
    """A question and what came of it.

    Attributes:
        pod: as the API server had it when kube-scheduler saw it.
        answer: what kube-scheduler said.
        bound: as the API server has it with its node, None without.
        claims: the ResourceClaims that were made for it, before they got any devices.
    """

    pod: Json
    answer: Answer
    bound: Json | None
    claims: tuple[Json, ...] = ()


class Oracle:
    """A running kube-scheduler; ``start`` makes one."""

    # The collections of one namespace that ``load`` empties.
    spaced: tuple[str, ...] = _SPACED

    def __init__(
        self,
        log: Log,
        session: aiohttp.ClientSession,
        put_into_store: Callable[[str, object], None] | None = None,
    ) -> None:
        self._log, self._session, self._put_into_store = log, session, put_into_store
        self._nodes: set[str] = set()
        self._claims: Mapping[str, list[Json]] = {}

    async def load(self, world: World, *, patiently: bool = False) -> list[Json]:
        """Put a world in the place of the last one; return it as the API server has it.

        Args:
            world: what is to be there.
            patiently: give kube-scheduler ten times as long to see it all.
        """
        await self._clear()
        await self.create(world.others)
        await self.create(world.nodes)
        await self.create(world.pods)
        await asyncio.gather(
            *(
                self.call("DELETE", f"{_path(one)}")
                for one in (*world.pods, *world.others)
                if _is_deleted(one)
            )
        )
        self._claims = world.claims
        self._nodes = {one["metadata"]["name"] for one in world.nodes}
        found = await self.found(world)
        self._log.wait_for_nodes("Add event for node", self._nodes)
        await asyncio.sleep(_SETTLE_SECONDS * (10 if patiently else 1))
        return found

    async def ask(self, pod: Json) -> Asked:
        """What kube-scheduler does with a pod; gone afterwards are its victims, and it too if it got no node."""
        meta = pod["metadata"]
        claims: tuple[Json, ...] = ()
        if pod.get("status", {}).get("resourceClaimStatuses"):
            admitted, claims = await self._create_with_claims(pod)
        else:
            admitted = await self.call("POST", objects.collection(pod), pod)
        answer = self._log.answer(f"{meta['namespace']}/{meta['name']}")
        if answer.node is None or answer.is_binding:
            await self.call("DELETE", _path(pod), params=_AT_ONCE)
            for victim in answer.victims:
                space, _, name = victim.partition("/")
                path = f"/api/v1/namespaces/{space}/pods/{name}"
                await self.call("DELETE", path, params=_AT_ONCE)
            if answer.is_binding:
                self._log.wait_for_failure(f"{meta['namespace']}/{meta['name']}")
                await asyncio.sleep(_SETTLE_SECONDS)
            await asyncio.gather(*(self.call("DELETE", _path(one)) for one in claims))
            return Asked(admitted, answer, None, claims)
        bound = await self.call("GET", _path(pod))
        if bound["spec"].get("resourceClaims"):
            answer = answer._replace(allocations=await self._find_allocations(bound))
        return Asked(admitted, answer, bound, claims)

    async def _create_with_claims(self, pod: Json) -> tuple[Json, tuple[Json, ...]]:
        """Create a pod that knows from its first moment which claims were made for it; these are there before it."""
        assert self._put_into_store is not None
        dry = {"dryRun": "All"}
        admitted = await self.call("POST", objects.collection(pod), pod, params=dry)
        meta = admitted["metadata"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        made = [
            one
            | {"metadata": one["metadata"] | {"ownerReferences": [owner | {"controller": True}]}}
            for one in self._claims.get(meta["name"], ())
        ]
        claims = await asyncio.gather(
            *(self.call("POST", objects.collection(one), one) for one in made)
        )
        await asyncio.sleep(_SETTLE_SECONDS)
        status = {"resourceClaimStatuses": pod["status"]["resourceClaimStatuses"]}
        admitted["status"] = admitted.get("status", {}) | status
        key = f"/registry/pods/{meta['namespace']}/{meta['name']}"
        await asyncio.to_thread(self._put_into_store, key, admitted)
        return admitted, tuple(claims)

    async def _find_allocations(self, pod: Json) -> dict[str, Json]:
        """What the claims have of a pod that has them."""
        space = pod["metadata"]["namespace"]
        made = pod.get("status", {}).get("resourceClaimStatuses") or ()
        names = [one["resourceClaimName"] for one in made if "resourceClaimName" in one]
        names += [
            one["resourceClaimName"]
            for one in pod["spec"]["resourceClaims"]
            if "resourceClaimName" in one
        ]
        claims = await asyncio.gather(
            *(self.call("GET", f"{_CLAIMS.format(space)}/{name}") for name in names)
        )
        return {
            one["metadata"]["name"]: allocations.normal(one["status"]["allocation"])
            for one in claims
        }

    async def create(self, manifests: Iterable[Json]) -> None:
        async def one(manifest: Json) -> None:
            await self.call("POST", objects.collection(manifest), manifest)
            if "status" in manifest and manifest["kind"] in _TOLD:
                status = {"status": manifest["status"]}
                await self.call("PATCH", f"{_path(manifest)}/status", status)

        await asyncio.gather(*map(one, manifests))

    async def found(self, world: World) -> list[Json]:
        """All that is there."""
        paths = [
            "/api/v1/namespaces",
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            "/api/v1/nodes",
        ]
        some = (*world.others, *world.pods, *world.incoming)
        some = (*some, *(one for claims in world.claims.values() for one in claims))
        paths += sorted({objects.collection(one) for one in some})
        lists = await asyncio.gather(*(self.call("GET", path) for path in paths))
        return [
            item | {"apiVersion": found["apiVersion"], "kind": found["kind"].removesuffix("List")}
            for found in lists
            for item in found["items"]
        ]

    async def _clear(self) -> None:
        await self._release_claims()
        paths = [path.format(space) for path in self.spaced for space in NAMESPACES]
        gone = [self.call("DELETE", path, params=_AT_ONCE) for path in (*paths, *_WIDE)]
        await asyncio.gather(*gone)
        self._log.wait_for_nodes("Delete event for node", self._nodes)
        self._nodes = set()
        # Which claims are in use it counts from one pod to the next, wrongly where nodes go before their pods and
        # others of their names come; a pod without any node makes it begin anew.
        await asyncio.sleep(_SETTLE_SECONDS)
        await self.ask(_NOBODY)

    async def _release_claims(self) -> None:
        """Take away what keeps claims from being deleted, as their controller and others would."""
        lists = await asyncio.gather(
            *(self.call("GET", _CLAIMS.format(space)) for space in NAMESPACES)
        )
        freed: Json = {"metadata": {"finalizers": None}}
        await asyncio.gather(
            *(
                self.call("PATCH", f"{_CLAIMS.format(meta['namespace'])}/{meta['name']}", freed)
                for found in lists
                for meta in (one["metadata"] for one in found["items"])
                if meta.get("finalizers")
            )
        )

    async def call(
        self, method: str, path: str, body: object = None, params: dict[str, str] | None = None
    ) -> Json:
        answer = await objects.call(self._session, method, path, body, params=params)
        return dict(msgspec.json.decode(answer))


@asynccontextmanager
async def start(seed: int) -> AsyncIterator[Oracle]:
    """A control plane of its own with kube-scheduler as a run's profiles have it."""
    with plane.start(extra_apiserver_flags=[_ADMISSION]) as running:
        running.start_scheduler(config=profiles.file(seed), extra_flags=["-v=10"])
        log = Log(running.folder / "kube-scheduler.log")
        async with objects.connect(running) as session:
            oracle = Oracle(log, session, running.put_into_store)
            fixed = [objects.namespace(name, labels=of) for name, of in NAMESPACES.items()]
            fixed += [*(_runtime_class(name) for name in OVERHEADS), *classes()]
            await oracle.create(fixed)
            yield oracle
        log.close()


def _runtime_class(name: str) -> Json:
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": name,
        "overhead": {"podFixed": dict(OVERHEADS[name])},
    }


def _path(manifest: Json) -> str:
    return f"{objects.collection(manifest)}/{manifest['metadata']['name']}"


def _is_deleted(manifest: Json) -> bool:
    return "deletionTimestamp" in manifest["metadata"]
