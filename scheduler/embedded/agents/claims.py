"""The controller of ResourceClaims: ``async with claims.run(url):`` makes claims from templates, and frees those that nobody uses.

A pod whose template says so gets a claim of its own; the pods of a PodGroup get one together if the group has an equal
entry. A claim loses the pods that have ended or are gone, and groups that are gone; with the last of them it loses its
devices, and then the finalizer that kept it. The claim of a pod that has ended, or of a group that is gone, is deleted.

Simpler than kube-controller-manager: nothing is reserved for pods that were bound by hand.

Source: Kubernetes 1.37.1, pkg/controller/resourceclaim/controller.go.
"""

import asyncio
import ssl as tls
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from scheduler.embedded.agents.apiclient import STRATEGIC, CallError, Client
from scheduler.embedded.agents.tasks import keep_running
from scheduler.embedded.agents.workloads import naming

Json = dict[str, Any]

API = "/apis/resource.k8s.io/v1"
FINALIZER = "resource.kubernetes.io/delete-protection"
# The entry of the pod for which a claim was made.
ENTRY = "resource.kubernetes.io/pod-claim-name"
GROUPS = "/apis/scheduling.k8s.io/v1beta1"
_OVER = frozenset({"Succeeded", "Failed"})
_RETRY_SECONDS = 0.5
# News of one pod and its claim arrive almost together.
_GATHER_SECONDS = 0.02


@asynccontextmanager
async def run(
    url: str, *, token: str | None = None, ssl: tls.SSLContext | None = None
) -> AsyncIterator[None]:
    """Run the controller against an API server.

    Raises:
        Exception: at the end: the error that ended one of its tasks.
    """
    client = Client(url, token, ssl)
    controller = _Controller(client)
    try:
        await controller.prime()
        work = [
            controller.follow_pods(),
            controller.follow_claims(),
            controller.follow_groups(),
            controller.work(),
        ]
        async with keep_running(work):
            yield
    finally:
        await client.close()


def make_path(claim: Json) -> str:
    """Return the path of a claim."""
    meta = claim["metadata"]
    return f"{API}/namespaces/{meta['namespace']}/resourceclaims/{meta['name']}"


def list_entries(pod: Json) -> list[tuple[Json, str | None]]:
    """List the claims of a pod as its spec has them, each with the name of the claim; None while it is not made.

    The last one stands for its extended resources, if its scheduler has made such a claim.
    """
    status = pod.get("status") or {}
    made = {
        one["name"]: one.get("resourceClaimName", "")
        for one in status.get("resourceClaimStatuses") or ()
    }
    entries = pod["spec"].get("resourceClaims") or ()
    found = [(one, one.get("resourceClaimName") or made.get(one["name"])) for one in entries]
    if told := status.get("extendedResourceClaimStatus"):
        found.append(({"name": "extended resources"}, told["resourceClaimName"]))
    return found


def find_group(pod: Json) -> tuple[str, str] | None:
    """Find namespace and name of the PodGroup of a pod; None for none."""
    name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    return (pod["metadata"]["namespace"], name) if name else None


class _Controller:
    """What the watches report, and one worker that looks at each pod and claim that has changed."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._pods: dict[str, Json] = {}
        self._claims: dict[str, Json] = {}
        # By namespace and name.
        self._groups: dict[tuple[str, str], Json] = {}
        # Where no pod with claims is in a group, none are followed: the API server need not serve them.
        self._has_groups = asyncio.Event()
        # The claims that name a pod or a group, by its uid: as a user, or as their owner.
        self._of_pod: defaultdict[str, set[str]] = defaultdict(set)
        self._changed: set[str] = set()
        self._news = asyncio.Event()

    async def prime(self) -> None:
        """Read all objects, so that no claim is made that exists and was only not seen yet."""
        for pod in (await self._client.get("/api/v1/pods"))["items"]:
            self._see_pod(pod, is_gone=False)
        for claim in (await self._client.get(f"{API}/resourceclaims"))["items"]:
            self._see_claim(claim, is_gone=False)

    async def follow_pods(self) -> None:
        """Keep the pods up to date, for ever."""
        async for event, pod in self._client.follow("/api/v1/pods"):
            self._see_pod(pod, is_gone=event == "DELETED")

    async def follow_claims(self) -> None:
        """Keep the claims up to date, for ever."""
        async for event, claim in self._client.follow(f"{API}/resourceclaims"):
            self._see_claim(claim, is_gone=event == "DELETED")

    async def follow_groups(self) -> None:
        """Keep the PodGroups up to date, for ever."""
        await self._has_groups.wait()
        async for event, group in self._client.follow(f"{GROUPS}/podgroups"):
            meta = group["metadata"]
            key = meta["namespace"], meta["name"]
            if event == "DELETED":
                self._groups.pop(key, None)
            else:
                self._groups[key] = group
            pods = [uid for uid, pod in self._pods.items() if find_group(pod) == key]
            self._tell([*pods, *self._of_pod.get(meta["uid"], ())])

    async def work(self) -> None:
        """Look at what has changed, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            while not self._changed:
                self._news.clear()
                await self._news.wait()
            await asyncio.sleep(_GATHER_SECONDS)
            changed, self._changed = self._changed, set()
            for uid in sorted(changed):
                try:
                    await self._look(uid)
                except (CallError, aiohttp.ClientError):
                    # Another client was faster, or a template is not there yet.
                    loop.call_later(_RETRY_SECONDS, self._tell, [uid])

    def _tell(self, uids: Iterable[str]) -> None:
        self._changed.update(uids)
        self._news.set()

    def _see_pod(self, pod: Json, *, is_gone: bool) -> None:
        uid = pod["metadata"]["uid"]
        if is_gone:
            self._pods.pop(uid, None)
        else:
            self._pods[uid] = pod
            if find_group(pod) and list_entries(pod):
                self._has_groups.set()
        self._tell([uid, *self._of_pod.get(uid, ())])

    def _see_claim(self, claim: Json, *, is_gone: bool) -> None:
        uid = claim["metadata"]["uid"]
        before = self._claims.pop(uid, None)
        for pod in _list_pods(before) if before else ():
            self._of_pod[pod].discard(uid)
        if not is_gone:
            self._claims[uid] = claim
            for pod in _list_pods(claim):
                self._of_pod[pod].add(uid)
        self._tell([uid])

    async def _look(self, uid: str) -> None:
        if (pod := self._pods.get(uid)) is not None:
            await self._make_claims(pod)
        elif (claim := self._claims.get(uid)) is not None:
            await self._free(claim)

    async def _make_claims(self, pod: Json) -> None:
        """Make the claims of a pod that its templates want, and say in its status which they are."""
        if _is_over(pod) or "deletionTimestamp" in pod["metadata"]:
            return
        group = await self._find_group(pod)
        made = []
        for one, name in list_entries(pod):
            if name is None:
                is_shared = group is not None and one in (group["spec"].get("resourceClaims") or ())
                owner = group if is_shared and group is not None else pod
                made.append(
                    {"name": one["name"], "resourceClaimName": await self._make_claim(owner, one)}
                )
        if made:
            meta = pod["metadata"]
            path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
            body = {"metadata": {"uid": meta["uid"]}, "status": {"resourceClaimStatuses": made}}
            await self._client.patch(path, body, STRATEGIC)

    async def _find_group(self, pod: Json) -> Json | None:
        """Find the PodGroup of a pod, by the API server if need be; None for no group, and for one that is gone."""
        key = find_group(pod)
        if key is None or key in self._groups:
            return self._groups.get(key) if key else None
        return await self._read_group(*key)

    async def _read_group(self, namespace: str, name: str) -> Json | None:
        try:
            return await self._client.get(f"{GROUPS}/namespaces/{namespace}/podgroups/{name}")
        except CallError as error:
            if error.code != 404:
                raise
            return None

    async def _make_claim(self, owner: Json, entry: Json) -> str:
        """Return the name of the claim for an entry of a pod or of a group; make the claim if it is not there."""
        meta = owner["metadata"]
        for uid in self._of_pod.get(meta["uid"], ()):
            known = self._claims[uid]["metadata"]
            is_of_entry = (known.get("annotations") or {}).get(ENTRY) == entry["name"]
            if (
                is_of_entry
                and naming.find_controller({"metadata": known}).get("uid") == meta["uid"]
            ):
                return str(known["name"])
        base = f"{API}/namespaces/{meta['namespace']}"
        name = entry["resourceClaimTemplateName"]
        template = (await self._client.get(f"{base}/resourceclaimtemplates/{name}"))["spec"]
        given = template.get("metadata") or {}
        claim = {
            "metadata": {
                "generateName": f"{meta['name']}-{entry['name']}-",
                "labels": given.get("labels") or {},
                "annotations": {**(given.get("annotations") or {}), ENTRY: entry["name"]},
                "ownerReferences": [_make_reference(owner)],
            },
            "spec": template["spec"],
        }
        made = await self._client.post(f"{base}/resourceclaims", claim)
        self._see_claim(made, is_gone=False)
        if _is_group(owner):
            told = [{"name": entry["name"], "resourceClaimName": made["metadata"]["name"]}]
            status = owner.get("status") or {}
            told = [*(status.get("resourceClaimStatuses") or ()), *told]
            path = f"{GROUPS}/namespaces/{meta['namespace']}/podgroups/{meta['name']}/status"
            await self._client.patch(path, {"status": {"resourceClaimStatuses": told}})
        return str(made["metadata"]["name"])

    async def _free(self, claim: Json) -> None:
        """Take the pods from a claim that have ended; with the last of them, its devices and what keeps it."""
        meta, status, path = claim["metadata"], claim.get("status") or {}, make_path(claim)
        users = status.get("reservedFor") or []
        left = [one for one in users if not await self._is_over(one["uid"], one, meta)]
        version = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
        is_kept = FINALIZER in (meta.get("finalizers") or ())
        # A claim that nobody ever used stays as its scheduler wants it.
        is_free = is_kept and not left and (bool(users) or "deletionTimestamp" in meta)
        if is_free and status.get("allocation"):
            freed = {"allocation": None, "reservedFor": None, "devices": None}
            claim = await self._client.patch(
                f"{path}/status", {"metadata": version, "status": freed}
            )
        elif len(left) < len(users):
            claim = await self._client.patch(
                f"{path}/status", {"metadata": version, "status": {"reservedFor": left}}
            )
        if is_free:
            rest = [one for one in claim["metadata"]["finalizers"] if one != FINALIZER]
            version["resourceVersion"] = claim["metadata"]["resourceVersion"]
            await self._client.patch(path, {"metadata": {**version, "finalizers": rest}})
        await self._delete_of_gone(claim)

    async def _delete_of_gone(self, claim: Json) -> None:
        """Delete the claim of a pod that has ended, or of a pod or group that is gone."""
        owner, meta = naming.find_controller(claim), claim["metadata"]
        if owner.get("kind") not in {"Pod", "PodGroup"} or "deletionTimestamp" in meta:
            return
        if await self._is_over(owner["uid"], owner, meta):
            body = {"preconditions": {"uid": meta["uid"]}}
            await self._client.delete(make_path(claim), body)

    async def _is_over(self, uid: str, named: Json, meta: Json) -> bool:
        """Whether a pod has ended, or is gone, or a group is gone; whatever else uses a claim is not."""
        if named.get("resource") == "podgroups" or named.get("kind") == "PodGroup":
            group = await self._read_group(meta["namespace"], named["name"])
            return group is None or bool(group["metadata"]["uid"] != uid)
        if named.get("resource", "pods") != "pods":
            return False
        if (pod := self._pods.get(uid)) is not None:
            return _is_over(pod)
        # Pods and claims come by watches of their own.
        try:
            found = await self._client.get(
                f"/api/v1/namespaces/{meta['namespace']}/pods/{named['name']}"
            )
        except CallError as error:
            if error.code != 404:
                raise
            return True
        return bool(found["metadata"]["uid"] != uid) or _is_over(found)


def _is_over(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") in _OVER


def _list_pods(claim: Json) -> set[str]:
    users = (claim.get("status") or {}).get("reservedFor") or ()
    found = {one["uid"] for one in users}
    owner = naming.find_controller(claim)
    return found | {owner["uid"]} if owner.get("kind") in {"Pod", "PodGroup"} else found


def _is_group(owner: Json) -> bool:
    """Whether the owner of a claim is a PodGroup, and no pod."""
    return "containers" not in owner["spec"]


def _make_reference(owner: Json) -> Json:
    version, kind = (
        (f"{GROUPS.removeprefix('/apis/')}", "PodGroup") if _is_group(owner) else ("v1", "Pod")
    )
    return naming.make_owner_reference(version, kind, owner)
