"""What is read of a pod's Deployment: itself, its ReplicaSets, and the pods of the one that has made the pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from scheduler.api import kinds
from scheduler.kube.client import ApiClient
from scheduler.kube.evict import successors

Json = Mapping[str, Any]


class Place(NamedTuple):
    """A Deployment by its name, and the uid of its ReplicaSet of which a pod is moved."""

    namespace: str
    name: str
    set_uid: str


class Workload(NamedTuple):
    """A Deployment, its ReplicaSets, and the pods of one of these, all as they are now; no Deployment if it is gone."""

    deployment: Json | None
    sets: list[Json]
    pods: list[Json]

    @property
    def alive(self) -> list[Json]:
        """The pods that have not ended and are not about to."""
        return [one for one in self.pods if not successors.is_ending(one)]

    @property
    def replicas(self) -> int:
        """How many pods the Deployment wants."""
        return 0 if self.deployment is None else int(self.deployment["spec"].get("replicas", 1))

    @property
    def is_settled(self) -> bool:
        """Whether the controllers have done what the Deployment says: as many pods are there as are wanted."""
        body = self.deployment
        if body is None:
            return True
        wanted = sum(int(one["spec"].get("replicas", 1)) for one in self.sets)
        return (
            _is_seen(body)
            and wanted == self.replicas
            and all(
                _is_seen(one) and _count(one, "replicas") == one["spec"].get("replicas", 1)
                for one in self.sets
            )
        )

    @property
    def is_ready(self) -> bool:
        """Whether it is settled, and all pods are ready and available in the eyes of the controllers too."""
        return self.is_settled and all(
            _count(one, key) == one["spec"].get("replicas", 1)
            for one in self.sets
            for key in ("readyReplicas", "availableReplicas")
        )


async def find_place(api: ApiClient, namespace: str, set_uid: str) -> Place | None:
    """Find the Deployment of a ReplicaSet by the uid of this one; None if it has none.

    Raises:
        ApiError: the API server refused, or did not answer.
    """
    listed = await api.get(kinds.REPLICA_SETS.find_list_path(namespace))
    for one in listed["items"]:
        of = successors.find_controller(one)
        is_ours = of.get("kind") == kinds.DEPLOYMENTS.kind and str(of.get("apiVersion")).startswith(
            f"{kinds.DEPLOYMENTS.group}/"
        )
        if one["metadata"]["uid"] == set_uid and is_ours:
            return Place(namespace, str(of["name"]), set_uid)
    return None


async def read_deployment(api: ApiClient, namespace: str, name: str) -> Json | None:
    """Read a Deployment; None if it is gone. It is read by a list, for which a planner has the right.

    Raises:
        ApiError: the API server refused, or did not answer.
    """
    path = kinds.DEPLOYMENTS.find_list_path(namespace)
    listed = await api.get(path, {"fieldSelector": f"metadata.name={name}"})
    return next(iter(listed["items"]), None)


async def read_workload(api: ApiClient, place: Place) -> Workload:
    """Read a workload as it is now.

    Raises:
        ApiError: the API server refused, or did not answer.
    """
    deployment = await read_deployment(api, place.namespace, place.name)
    uid = None if deployment is None else deployment["metadata"]["uid"]
    listed = await api.get(kinds.REPLICA_SETS.find_list_path(place.namespace))
    sets = [one for one in listed["items"] if successors.find_controller(one).get("uid") == uid]
    pods = await successors.list_made_by(api, place.namespace, place.set_uid)
    return Workload(deployment, sets, pods)


def _is_seen(body: Json) -> bool:
    return _count(body, "observedGeneration") >= int(body["metadata"].get("generation", 0))


def _count(body: Json, key: str) -> int:
    return int((body.get("status") or {}).get(key) or 0)
