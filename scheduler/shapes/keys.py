"""The key that like pods share, made of everything that decides placement; or the mistake to correct first."""

from __future__ import annotations

from scheduler.errors import Mistake
from scheduler.shapes.boards import Key
from scheduler.shapes.caches import TemplateSizes
from scheduler.shapes.policies import PolicyBook
from scheduler.shapes.views import Views
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord


class Keys:
    """The keys of the pods of one cluster, without what is promised to others.

    Attributes:
        views: what rules about other pods, and about claims, need of a pod.
    """

    def __init__(self, cluster: Cluster, policies: PolicyBook, sizes: TemplateSizes) -> None:
        self._policies = policies
        self.views = Views(cluster, sizes)

    def make_key(self, pod: PodRecord) -> Key | None:
        """The key of a pod; None where something must be mended first."""
        if pod.problem or pod.template.unsupported:
            return None
        resolved = self._policies.resolve(pod)
        if resolved.problem:
            return None
        return Key(pod.template, resolved.placement, self.views.make_view(pod, resolved.placement))

    def problem_of(self, pod: PodRecord) -> Mistake | None:
        """What must be mended on a pod, None when nothing."""
        if pod.problem:
            return pod.problem
        if pod.template.unsupported:
            return Mistake(pod.template.unsupported[0], "not supported by this version of Evenkeel")
        return self._policies.resolve(pod).problem
