"""Pod affinity and anti-affinity: which pods a pod wants near it or far from it, as plain values.

A term stands in a template as it was written. Two things of it depend on the pod itself: its namespace,
where the term names none, and its labels, where ``matchLabelKeys`` or ``mismatchLabelKeys`` ask for the
pod's own values. ``peers`` puts them in. The API server does the same when a pod is created, and what it wrote for
``matchLabelKeys`` holds though the pod's labels may have changed since: nobody else may write these keys there.

Source: api/core/v1 PodAffinityTerm; registry/core/pod applyMatchLabelKeysAndMismatchLabelKeys;
kube-scheduler's framework.AffinityTerm.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from scheduler.api import selectors, wire
from scheduler.api.selectors import Labels, Requirement, Selector
from scheduler.errors import BadInput, Mistake

WEIGHT_MAX = 100
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NAMESPACE_MAX = 63
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


class Peers(NamedTuple):
    """Which pods a rule of one pod is about; equal for all pods that mean the same ones.

    Attributes:
        namespaces: sorted names.
        namespace_selector: of more namespaces, by their labels.
        selector: of the pods in these namespaces.
    """

    namespaces: tuple[str, ...]
    namespace_selector: Selector
    selector: Selector

    def include(self, namespace: str, namespace_labels: Labels, labels: Labels) -> bool:
        """Whether a pod of a namespace is one of them.

        A namespace's labels have its name among them (``names.NAMESPACE_NAME``), as the API server sees to.
        """
        there = namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        return there and self.selector.matches(labels)


class Term(NamedTuple):
    """One term, required or preferred.

    Attributes:
        topology_key: label of nodes; nodes of one value are near each other.
        namespaces: sorted; none, and a ``namespace_selector`` of nothing, stand for the pod's own.
        label_keys, mismatch_keys: labels of the pod itself whose values its peers have, or have not.
        weight: 1 to 100 of a preferred term, 0 of a required one.
    """

    topology_key: str
    namespaces: tuple[str, ...]
    namespace_selector: Selector
    selector: Selector
    label_keys: tuple[str, ...] = ()
    mismatch_keys: tuple[str, ...] = ()
    weight: int = 0

    def peers(self, namespace: str, labels: Labels) -> Peers:
        """The pods that it is about when a pod of this namespace with these labels says it."""
        own = not self.namespaces and self.namespace_selector == selectors.NOTHING
        there = self.selector.keys
        return Peers(
            (namespace,) if own else self.namespaces,
            self.namespace_selector,
            with_own_values(
                self.selector,
                labels,
                [key for key in self.label_keys if key not in there],
                self.mismatch_keys,
            ),
        )


Terms = tuple[Term, ...]


class Rules(NamedTuple):
    """All terms of a pod, as its template has them."""

    affinity: Terms = ()
    anti_affinity: Terms = ()
    preferred_affinity: Terms = ()
    preferred_anti_affinity: Terms = ()


def of_pod(given: wire.Affinity | None, problems: list[Mistake]) -> Rules:
    """The terms of ``spec.affinity``; what an API server would not take of them is added to ``problems``.

    Of four lists the one with a malformed term counts for nothing, as in kube-scheduler, which reads them so
    of pods that run already.
    """
    if given is None or (given.pod_affinity is None and given.pod_anti_affinity is None):
        return Rules()
    near, far = given.pod_affinity, given.pod_anti_affinity
    return Rules(
        _read(_required, near, "spec.affinity.podAffinity", problems),
        _read(_required, far, "spec.affinity.podAntiAffinity", problems),
        _read(_preferred, near, "spec.affinity.podAffinity", problems),
        _read(_preferred, far, "spec.affinity.podAntiAffinity", problems),
    )


def _read(
    read: Callable[[wire.PodAffinity, str], Terms],
    given: wire.PodAffinity | None,
    field: str,
    problems: list[Mistake],
) -> Terms:
    try:
        return read(given, field) if given else ()
    except BadInput as error:
        problems.append(error.mistake)
        return ()


def _required(rules: wire.PodAffinity, field: str) -> Terms:
    given = rules.required_during_scheduling_ignored_during_execution or ()
    return tuple(_term(one, f"{field}.{_REQUIRED}[{i}]") for i, one in enumerate(given))


def _preferred(rules: wire.PodAffinity, field: str) -> Terms:
    found = []
    for i, one in enumerate(rules.preferred_during_scheduling_ignored_during_execution or ()):
        where = f"{field}.{_PREFERRED}[{i}]"
        if not 1 <= one.weight <= WEIGHT_MAX:
            raise BadInput(f"{where}.weight", f"{one.weight} is not within 1..{WEIGHT_MAX}")
        term = _term(one.pod_affinity_term, f"{where}.podAffinityTerm")
        found.append(term._replace(weight=one.weight))
    return tuple(found)


def _term(given: wire.PodTerm, field: str) -> Term:
    if not given.topology_key:
        raise BadInput(f"{field}.topologyKey", "must be set")
    selectors.check_name(given.topology_key, f"{field}.topologyKey")
    for i, name in enumerate(given.namespaces or ()):
        if len(name) > _NAMESPACE_MAX or not _NAMESPACE.fullmatch(name):
            raise BadInput(
                f"{field}.namespaces[{i}]", f"{selectors.quoted(name)} is not a namespace's name"
            )
    selector, keys = selector_and_keys(given.label_selector, given.match_label_keys, field)
    mismatch_keys = label_keys(
        given.mismatch_label_keys, given.label_selector, f"{field}.mismatchLabelKeys"
    )
    if both := set(keys).intersection(mismatch_keys):
        raise BadInput(
            f"{field}.mismatchLabelKeys",
            f"{selectors.quoted(min(both))} is among matchLabelKeys too",
        )
    return Term(
        given.topology_key,
        tuple(sorted(set(given.namespaces or ()))),
        selectors.of_wire(given.namespace_selector, f"{field}.namespaceSelector"),
        selector,
        keys,
        mismatch_keys,
    )


def selector_and_keys(
    given: wire.LabelSelector | None, keys: Sequence[str] | None, field: str
) -> tuple[Selector, tuple[str, ...]]:
    """``labelSelector`` and ``matchLabelKeys`` of a rule, which is ``field``.

    Raises:
        BadInput: an API server would not take them; names the field.
    """
    selector = selectors.of_wire(given, f"{field}.labelSelector")
    found = label_keys(keys, given, f"{field}.matchLabelKeys")
    if found and given:
        # Once it may be there: that is how the API server writes down the pod's own value.
        in_expressions = (one.key for one in given.match_expressions or ())
        said = Counter((*(given.match_labels or ()), *in_expressions))
        for key in found:
            if said[key] > 1:
                raise BadInput(
                    f"{field}.matchLabelKeys", f"{selectors.quoted(key)} is in labelSelector too"
                )
    return selector, found


def label_keys(
    keys: Sequence[str] | None, selector: wire.LabelSelector | None, field: str
) -> tuple[str, ...]:
    """Names of labels whose values are the pod's own, sorted.

    Raises:
        BadInput: as ``selector_and_keys``.
    """
    if keys and selector is None:
        raise BadInput(field, "must not be set without labelSelector")
    for i, key in enumerate(keys or ()):
        selectors.check_name(key, f"{field}[{i}]")
    return tuple(sorted(set(keys or ())))


def with_own_values(
    selector: Selector,
    labels: Labels,
    label_keys: Sequence[str],
    mismatch_keys: Sequence[str] = (),
) -> Selector:
    """The selector of a rule with the values that the pod itself has for these labels, if it has them."""
    own = [Requirement(key, "In", (labels[key],)) for key in label_keys if key in labels]
    own += [Requirement(key, "NotIn", (labels[key],)) for key in mismatch_keys if key in labels]
    return selector.also(own) if own else selector
