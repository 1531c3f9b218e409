"""The parts that Evenkeel reads of objects that are about the pods of others.

They say which pods belong together, how many of them may go, and which policy places them.
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
        """As other objects have it."""
        return None if self.spec.selector is None else LabelSelector(self.spec.selector)


class Service(_SelectsByLabels):
    """A Service: which pods it selects."""


class ReplicationController(_SelectsByLabels):
    """A ReplicationController, likewise."""


class SetSpec(_Part):
    """``spec`` of a ReplicaSet or a StatefulSet."""

    selector: LabelSelector | None = None


class _SelectsBySelector(Object):
    spec: SetSpec = msgspec.field(default_factory=SetSpec)

    @property
    def selector(self) -> LabelSelector | None:
        """Of its pods."""
        return self.spec.selector


class ReplicaSet(_SelectsBySelector):
    """A ReplicaSet, likewise."""


class StatefulSet(_SelectsBySelector):
    """A StatefulSet, likewise."""


Group = Service | ReplicationController | ReplicaSet | StatefulSet


class BudgetStatus(_Part):
    """``status`` of a PodDisruptionBudget."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, Any] | None = None


class PodDisruptionBudget(Object):
    """Which pods it covers, and how many more of them may go.

    ``disrupted_pods`` of its status are those that were let go and may not have gone yet.
    """

    spec: SetSpec = msgspec.field(default_factory=SetSpec)
    status: BudgetStatus = msgspec.field(default_factory=BudgetStatus)


class Namespace(Object):
    """A namespace: its labels choose policies."""


class BalancePolicy(Object):
    """A BalancePolicy; what is in its spec is read by whoever knows the settings."""

    spec: Any = None
