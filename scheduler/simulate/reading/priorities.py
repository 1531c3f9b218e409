"""PriorityClasses: they give a priority to pods that have none yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.api import values
from scheduler.api.jobs.workloads import Importance
from scheduler.errors import BadInput

_SYSTEM = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_MIN, _MAX, _CLASS_MAX = -(2**31), 2**31 - 1, 10**9


class Priorities:
    """The PriorityClasses that exist.

    Attributes:
        unknown: the classes that pods name and that do not exist, in the order found.
    """

    def __init__(self, *, strict: bool) -> None:
        """With ``strict``, a pod that names a class that does not exist is refused; else its priority is 0."""
        self._strict = strict
        self._values = dict(_SYSTEM)
        self._policies: dict[str, str] = {}
        # The lowest value of the default classes, as in a cluster; without a default class, the priority is 0.
        self._default: int | None = None
        self._named_default = ""
        self.unknown: dict[str, None] = {}

    @property
    def by_name(self) -> Mapping[str, int]:
        """The values of the classes, by name."""
        return self._values

    @property
    def default(self) -> Importance:
        """How important pods are that name no class."""
        return Importance(self._default or 0, self._named_default)

    def see(self, body: Mapping[str, Any]) -> None:
        """Add a PriorityClass.

        Raises:
            BadInput: it has no name, or its value is not what Kubernetes allows.
        """
        name = values.read_mapping(body.get("metadata"), "metadata").get("name")
        if not name:
            raise BadInput("metadata.name", "is missing")
        system = str(name) in _SYSTEM
        # The mistake of the class is reported once, not again for each pod that names the class.
        self._values.setdefault(str(name), 0)
        value = values.read_integer(
            body.get("value"), "value", _MIN, _MAX if system else _CLASS_MAX
        )
        self._values[str(name)] = value
        self._policies[str(name)] = str(body.get("preemptionPolicy") or "")
        is_lowest = self._default is None or value < self._default
        if body.get("globalDefault") is True and is_lowest:
            self._default, self._named_default = value, str(name)

    def resolve_priority(self, spec: Mapping[str, Any]) -> int:
        """Resolve the priority of pods with a spec: their own, that of their class, or the default.

        Raises:
            BadInput: the priority is out of bounds; or, if strict, the class does not exist.
        """
        own, named = spec.get("priority"), spec.get("priorityClassName")
        if own is not None:
            if not _MIN <= own <= _MAX:
                raise BadInput("spec.priority", f"{own} is not within {_MIN}..{_MAX}")
            return int(own)
        if not named:
            return self._default or 0
        if str(named) in self._values:
            return self._values[str(named)]
        if self._strict:
            raise BadInput(
                "spec.priorityClassName", f'no PriorityClass "{named}" is among the objects'
            )
        self.unknown[str(named)] = None
        return 0

    def find_policy(self, spec: Mapping[str, Any]) -> str:
        """Find the preemption policy that the class of a spec sets; empty: pods may preempt others."""
        return self._policies.get(str(spec.get("priorityClassName") or self._named_default), "")
