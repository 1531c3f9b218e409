"""The parts that Evenkeel reads of objects that are about pods.

These objects say which pods belong together, how many of them may go, and which policy places them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from scheduler.api.wire import LabelSelector, Object


class _Part(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    """A part of an object."""


class ServiceSpec(_Part):
    """``spec`` of a Service or a ReplicationController."""

    selector: dict[str, str] | None = None


class _SelectsByLabels(Object):
    spec: ServiceSpec = msgspec.field(default_factory=ServiceSpec)

    @property
    def selector(self) -> LabelSelector | None:
        """The selector in the form that other objects have."""
        return None if self.spec.selector is None else LabelSelector(self.spec.selector)


class Service(_SelectsByLabels):
    """A Service: the pods that it selects."""


class ReplicationController(_SelectsByLabels):
    """A ReplicationController, likewise."""


class SetSpec(_Part):
    """``spec`` of a ReplicaSet or a StatefulSet."""

    selector: LabelSelector | None = None


class _SelectsBySelector(Object):
    spec: SetSpec = msgspec.field(default_factory=SetSpec)

    @property
    def selector(self) -> LabelSelector | None:
        """The selector of its pods."""
        return self.spec.selector


class ReplicaSet(_SelectsBySelector):
    """A ReplicaSet, likewise."""


class StatefulSetSpec(SetSpec):
    """``spec`` of a StatefulSet: also how many pods it makes, and whether all at once; both as they are written."""

    replicas: Any = None
    pod_management_policy: Any = None


class StatefulSet(_SelectsBySelector):
    """A StatefulSet, likewise."""

    spec: StatefulSetSpec = msgspec.field(default_factory=StatefulSetSpec)


PeerObject = Service | ReplicationController | ReplicaSet | StatefulSet


class BudgetStatus(_Part):
    """``status`` of a PodDisruptionBudget."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, Any] | None = None


class PodDisruptionBudget(Object):
    """A disruption budget: the pods that it covers, and how many more of them may go.

    ``disrupted_pods`` of its status are the pods that were let go and may still be there.
    """

    spec: SetSpec = msgspec.field(default_factory=SetSpec)
    status: BudgetStatus = msgspec.field(default_factory=BudgetStatus)


class Namespace(Object):
    """A namespace: its labels choose policies."""


class ConfigMap(Object):
    """A ConfigMap: texts by key. What else it has under ``data`` is told where it is read."""

    data: Any = None


class ResourceQuota(Object):
    """A ResourceQuota; its spec is read where devices are known."""

    spec: Any = None
    status: Any = None


class BalancePolicy(Object):
    """A BalancePolicy; its spec is read where the settings are known."""

    spec: Any = None


class RebalancePolicy(Object):
    """A RebalancePolicy; ``rebalancing`` reads its spec, and the status is Evenkeel's own."""

    spec: Any = None
    status: Any = None
