"""The key that like pods share: everything that decides where they go; or the mistake that must be corrected first."""

from __future__ import annotations

from scheduler.errors import Mistake
from scheduler.shapes.boards import Key
from scheduler.shapes.caches import TemplateSizes
from scheduler.shapes.policies import PolicyBook
from scheduler.shapes.views import Views
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord


class Keys:
    """Makes the keys of the pods of one cluster, without the room that is promised to other pods.

    Attributes:
        views: what rules about other pods, and about claims, read from a pod.
    """

    def __init__(self, cluster: Cluster, policies: PolicyBook, sizes: TemplateSizes) -> None:
        self._policies = policies
        self.views = Views(cluster, sizes)

    def make_key(self, pod: PodRecord) -> Key | None:
        """Make the key of a pod; None if a mistake on the pod must be corrected first."""
        if pod.problem:
            return None
        resolved = self._policies.resolve(pod)
        if resolved.problem:
            return None
        return Key(pod.template, resolved.placement, self.views.make_view(pod, resolved.placement))

    def find_problem(self, pod: PodRecord) -> Mistake | None:
        """Find the mistake that must be corrected on a pod; None if there is none."""
        if pod.problem:
            return pod.problem
        return self._policies.resolve(pod).problem
