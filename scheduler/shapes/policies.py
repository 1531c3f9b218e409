"""BalancePolicy objects: which policy governs a pod, and the placement of the pod.

The pod's own annotations take precedence, then the matching policy with the highest ``spec.priority``
(ties by name), then the profile of the pod's scheduler name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from scheduler.api import names, placement, selectors, values
from scheduler.api.placement import Placement
from scheduler.api.pods.templates import PodTemplate
from scheduler.api.selectors import Labels, Selector
from scheduler.config import Config
from scheduler.errors import BadInput, Mistake
from scheduler.state.pods import PodRecord
from scheduler.state.structures.recent import Recent

# The most answers that are kept for one template: a tenant may give each of its pods other labels.
_ANSWERS_MAX = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One BalancePolicy, parsed; ``changes`` are the fields of Placement that it sets."""

    name: str
    priority: int
    namespaces: Selector
    pods: Selector
    changes: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Resolved:
    """The placement of a pod, and the name of the policy that governs the pod, empty for none."""

    placement: Placement
    policy: str
    problem: Mistake | None = None


class PolicyBook:
    """All policies and the labels of namespaces; answers are remembered until either changes.

    Attributes:
        is_queued: whether a pod is in one of KAI's queues, which have rules of their own about who goes for whom.
    """

    def __init__(self, config: Config) -> None:
        """``config`` has the placement of each profile."""
        self._config = config
        self._policies: dict[str, Policy] = {}
        self._ordered: list[Policy] = []
        self._namespaces: dict[str, Labels] = {}
        # By template, whose entry ends with its last pod, and by the labels that policies select by.
        self._answers: WeakKeyDictionary[PodTemplate, Recent[tuple[object, ...], Resolved]] = (
            WeakKeyDictionary()
        )
        self._selecting: tuple[str, ...] = ()
        # By profile, for pods without annotations about placement, while there are no policies.
        self._plain: dict[str, Resolved] = {}
        self.is_queued: Callable[[PodRecord], bool] = lambda _: False

    def preempts(self, pod: PodRecord) -> bool:
        """Whether the profile of a pod lets its pods take the place of others by priority; not those in queues."""
        return self._config.profile(pod.profile).preemption and not self.is_queued(pod)

    def put(self, policy: Policy) -> bool:
        """Add or replace a policy; return whether the policy is another than before."""
        if self._policies.get(policy.name) == policy:
            return False
        self._policies[policy.name] = policy
        self._sort_policies()
        return True

    def drop(self, name: str) -> bool:
        """Remove a policy that was deleted or can no longer be read; return whether it was in force."""
        if self._policies.pop(name, None) is None:
            return False
        self._sort_policies()
        return True

    def see_namespace(self, name: str, labels: Labels) -> bool:
        """Take in the labels of a namespace; return whether a placement may change."""
        if self._namespaces.get(name) == labels:
            return False
        self._namespaces[name] = dict(labels)
        self._answers.clear()
        return bool(self._policies)

    def resolve(self, pod: PodRecord) -> Resolved:
        """Find the placement of a pod. ``problem`` of the result tells a malformed annotation."""
        if not (self._policies or pod.template.steering):
            plain = self._plain.get(pod.profile)
            if plain is None:
                plain = self._plain[pod.profile] = self._resolve(pod, {})
            return plain
        labels = pod.labels or {}
        key: tuple[object, ...] = (pod.profile,)
        if self._policies:
            key = pod.profile, pod.namespace, tuple(map(labels.get, self._selecting))
        answers = self._answers.get(pod.template)
        if answers is None:
            answers = self._answers[pod.template] = Recent(_ANSWERS_MAX)
        return answers.get(key) or answers.put(key, self._resolve(pod, labels))

    def _resolve(self, pod: PodRecord, labels: Labels) -> Resolved:
        namespace_labels = {
            names.NAMESPACE_NAME: pod.namespace, **self._namespaces.get(pod.namespace, {})
        }  # fmt: skip
        result, governing = self._config.profile(pod.profile).placement, ""
        for policy in self._ordered:
            if policy.namespaces.matches(namespace_labels) and policy.pods.matches(labels):
                result, governing = replace(result, **dict(policy.changes)), policy.name
                break
        try:
            result = replace(result, **placement.read_annotations(dict(pod.template.steering)))
        except BadInput as error:
            return Resolved(result, governing, error.mistake)
        return Resolved(result, governing)

    def _sort_policies(self) -> None:
        self._ordered = sorted(self._policies.values(), key=lambda p: (-p.priority, p.name))
        self._selecting = tuple(
            dict.fromkeys(key for policy in self._ordered for key in policy.pods.keys)
        )
        self._answers.clear()


def parse_policy(body: Mapping[str, Any]) -> Policy:
    """Parse a BalancePolicy object as the API serves it.

    The CRD's schema refuses malformed objects at the API server. This function checks them again, for servers that do not
    evaluate CEL and for files.

    Raises:
        BadInput: a field is not what the CRD allows.
    """
    spec = values.read_mapping(body.get("spec"), "spec")
    selection = {"priority", "namespaceSelector", "podSelector"}
    if not spec.keys() & {"scoring", "nodePolicy", "gpuPolicy"}:
        raise BadInput("spec", "must set at least one of scoring, nodePolicy and gpuPolicy")
    changes = placement.read_fields({k: v for k, v in spec.items() if k not in selection}, "spec")
    return Policy(
        name=str(values.read_mapping(body.get("metadata"), "metadata").get("name", "")),
        priority=values.read_integer(spec.get("priority", 0), "spec.priority", -(2**31), 2**31 - 1),
        namespaces=selectors.parse_selector(
            spec.get("namespaceSelector"), "spec.namespaceSelector"
        ),
        pods=selectors.parse_selector(spec.get("podSelector"), "spec.podSelector"),
        changes=tuple(sorted(changes.items())),
    )
