"""An API server with one Deployment, and its controllers, a scheduler and a kubelet, which work between any two requests.

The controller of the ReplicaSet looks at a copy of the pods that may be old, as Kubernetes' own does, and chooses who goes in
Kubernetes' order: a pod without a node, one that is not ready, the lowest deletion cost, the one that was ready last.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from scheduler.errors import ApiError

Json = dict[str, Any]
COST, LABEL = "controller.kubernetes.io/pod-deletion-cost", "evenkeel.dev/surge"


class Killed(BaseException):
    """The process ends at once."""


class Replicas:
    """The API server as a client.

    Attributes:
        calls: how many writes were made.
        killed_at: after which of them the process ends; 0 for never.
        target: the node to which new pods are bound; empty for none.
        starts: whether new pods become ready.
        least_ready: the fewest pods that were ready at any time.
        lost: the names of the pods that the controller has ended.
        refusals: by a part of a path: the error with which a call is answered.
        unanswered: whether the next write of the replicas is carried out, and not answered.
        between: called between any two requests.
    """

    def __init__(self, n: int, random: Random | None = None) -> None:
        self._random = random
        self.calls = self.killed_at = self._clock = self._n_made = 0
        self.target, self.starts = "b", True
        self.lost: list[str] = []
        self.refusals: dict[str, ApiError] = {}
        self.refuses_pods, self.unanswered = "", False
        self.between: Callable[[], None] = lambda: None
        self.autoscalers: list[Json] = []
        self.claims: list[Json] = []
        self.deployment: Json = {
            "metadata": {
                "name": "web", "namespace": "default", "uid": "web", "generation": 1, "resourceVersion": "1",
                "managedFields": [{"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:replicas": {}}}}],
            },
            "spec": {"replicas": n, "strategy": {"type": "RollingUpdate"}, "template": {"spec": {}}},
            "status": {},
        }  # fmt: skip
        self.set: Json = {
            "metadata": {"name": "web-1", "namespace": "default", "uid": "set", "generation": 1, "ownerReferences": [_own("Deployment", "web")]},
            "spec": {"replicas": n},
            "status": {},
        }  # fmt: skip
        self.pods: list[Json] = []
        self._cache: list[Json] = []
        self._made: set[str] = set()
        self._ended: set[str] = set()
        for _ in range(n):
            self._make_pod()
        target, self.target = self.target, "a"
        self.settle()
        self.target = target
        self.least_ready = n

    # Requests.

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Json:
        self._work()
        self._refuse(path)
        plural = path.rpartition("/")[2]
        if (params or {}).get("labelSelector") == LABEL:
            found = [one for one in self.pods if LABEL in one["metadata"].get("labels", {})]
            return {"items": copy.deepcopy(found)}
        items = {
            "deployments": [self.deployment], "replicasets": [self.set], "pods": self.pods,
            "horizontalpodautoscalers": self.autoscalers, "persistentvolumeclaims": self.claims,
        }[plural]  # fmt: skip
        return {"items": copy.deepcopy(items)}

    async def send(self, method: str, path: str, body: Json, *, content_type: str = "", params: Mapping[str, str] | None = None) -> bytes:  # fmt: skip
        del content_type
        self._work()
        self._refuse(path)
        *_, name, subresource = path.split("/")
        if subresource == "eviction":
            if params != {"dryRun": "All"}:
                self._find(name)["metadata"]["deletionTimestamp"] = "now"
            return b""
        assert method == "PATCH"
        if subresource == "scale":
            meta = self.deployment["metadata"]
            if body["metadata"]["resourceVersion"] != meta["resourceVersion"]:
                raise ApiError(409, "Conflict", "somebody has written it")
            self.scale(body["spec"]["replicas"], (params or {})["fieldManager"])
            if self.unanswered:
                self.unanswered = False
                raise ApiError(0, "Timeout", "no answer")
        else:
            meta = self._find(name)["metadata"]
            assert meta["uid"] == body["metadata"]["uid"]
            for key in ("labels", "annotations"):
                merged = meta.get(key, {}) | body["metadata"][key]
                meta[key] = {k: v for k, v in merged.items() if v is not None}
        self.calls += 1
        if self.calls == self.killed_at:
            raise Killed
        return b""

    def _refuse(self, path: str) -> None:
        for part, error in self.refusals.items():
            if part in path:
                raise error

    def _find(self, name: str) -> Json:
        found = [one for one in self.pods if one["metadata"]["name"] == name]
        if not found:
            raise ApiError(404, "NotFound", name)
        return found[0]

    # What somebody else may do.

    def scale(self, replicas: int, manager: str) -> None:
        """Set the replicas; who sets another number is who has set it."""
        if replicas != self.deployment["spec"]["replicas"]:
            entry = {"manager": manager, "operation": "Update", "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}}  # fmt: skip
            self.deployment["metadata"]["managedFields"] = [entry]
            self.deployment["spec"]["replicas"] = replicas
            self.deployment["metadata"]["generation"] += 1
        self._touch()

    def change(self) -> None:
        """Change the Deployment otherwise."""
        self.deployment["metadata"]["generation"] += 1
        self._touch()

    def _touch(self) -> None:
        meta = self.deployment["metadata"]
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)

    def break_pod(self, name: str) -> None:
        """Let a pod be not ready, and nothing mend that."""
        self._find(name)["status"]["conditions"] = []
        self._find(name)["metadata"]["isBroken"] = True

    # The controllers.

    def settle(self) -> None:
        """Let all of them work until nothing is left to do."""
        for _ in range(12):
            for step in self._list_steps():
                step()

    def _work(self) -> None:
        self.between()
        for step in self._list_steps():
            if self._random is None or self._random.random() < 0.5:
                step()
        if hasattr(self, "least_ready"):
            self.least_ready = min(self.least_ready, self.count_ready())

    def _list_steps(self) -> tuple[Callable[[], None], ...]:
        return self._sync_deployment, self._sync_cache, self._sync_set, self._bind, self._start, self._end  # fmt: skip

    def _sync_deployment(self) -> None:
        body = self.deployment
        if self.set["spec"]["replicas"] != body["spec"]["replicas"]:
            self.set["spec"]["replicas"] = body["spec"]["replicas"]
            self.set["metadata"]["generation"] += 1
        if body["status"].get("observedGeneration") != body["metadata"]["generation"]:
            body["status"] = {"observedGeneration": body["metadata"]["generation"]}
            self._touch()

    def _sync_cache(self) -> None:
        self._cache = copy.deepcopy(self.pods)

    def _sync_set(self) -> None:
        seen = {one["metadata"]["uid"] for one in self._cache if not _is_ending(one)}
        alive = [one for one in self._cache if not _is_ending(one)]
        conditions = []
        if self._made <= {one["metadata"]["uid"] for one in self._cache} and not (
            self._ended & seen
        ):
            n_more = self.set["spec"]["replicas"] - len(alive)
            if n_more > 0 and self.refuses_pods:
                conditions = [{"type": "ReplicaFailure", "status": "True", "message": self.refuses_pods}]  # fmt: skip
            else:
                for _ in range(n_more):
                    self._made.add(self._make_pod())
            for one in sorted(alive, key=_rank)[: max(0, -n_more)]:
                uid = one["metadata"]["uid"]
                self._ended.add(uid)
                for pod in self.pods:
                    if pod["metadata"]["uid"] == uid:
                        pod["metadata"]["deletionTimestamp"] = "now"
                        self.lost.append(pod["metadata"]["name"])
        n_ready = sum(map(is_ready, alive))
        self.set["status"] = {
            "observedGeneration": self.set["metadata"]["generation"], "replicas": len(alive),
            "readyReplicas": n_ready, "availableReplicas": n_ready, "conditions": conditions,
        }  # fmt: skip
        self._made &= {one["metadata"]["uid"] for one in self.pods}
        self._made -= {one["metadata"]["uid"] for one in self._cache}

    def _make_pod(self) -> str:
        self._n_made += 1
        name = f"web-1-{self._n_made}"
        meta = {"name": name, "namespace": "default", "uid": name, "labels": {}, "annotations": {}, "ownerReferences": [_own("ReplicaSet", "set")]}  # fmt: skip
        self.pods.append({"metadata": meta, "spec": {}, "status": {"phase": "Pending"}})
        return name

    def _bind(self) -> None:
        for one in self.pods:
            if self.target:
                one["spec"].setdefault("nodeName", self.target)

    def _start(self) -> None:
        for one in self.pods:
            if self.starts and one["spec"].get("nodeName") and "isBroken" not in one["metadata"] and not is_ready(one):  # fmt: skip
                self._clock += 1
                one["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "at": self._clock}]}  # fmt: skip

    def _end(self) -> None:
        self.pods = [one for one in self.pods if not _is_ending(one)]

    # What there is.

    def count_ready(self) -> int:
        """Count the pods that are ready and do not end."""
        return sum(is_ready(one) and not _is_ending(one) for one in self.pods)

    def list_marked(self) -> list[str]:
        """List the pods that have a mark or a deletion cost."""
        return [
            one["metadata"]["name"] for one in self.pods
            if LABEL in one["metadata"].get("labels", {}) or COST in one["metadata"].get("annotations", {})
        ]  # fmt: skip

    def list_nodes(self) -> dict[str, str]:
        """List the pods with their nodes."""
        return {one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in self.pods}


def _own(kind: str, uid: str) -> Json:
    return {"apiVersion": "apps/v1", "kind": kind, "name": uid, "uid": uid, "controller": True}


def _is_ending(pod: Json) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def is_ready(pod: Json) -> bool:
    """Whether a pod is ready."""
    return bool(pod["status"].get("conditions"))


def _rank(pod: Json) -> tuple[Any, ...]:
    """The first goes first."""
    cost = int(pod["metadata"].get("annotations", {}).get(COST, 0))
    at = pod["status"]["conditions"][0]["at"] if is_ready(pod) else 0
    return bool(pod["spec"].get("nodeName")), pod["status"]["phase"] == "Running", is_ready(pod), cost, -at  # fmt: skip
