"""Pod affinity and anti-affinity: which pods a pod wants near it or far from it, as plain values.

A template has its terms as they were written. Two parts of a term may depend on the pod itself: its namespace, if
the term names none, and its labels, if ``matchLabelKeys`` or ``mismatchLabelKeys`` ask for the pod's own values.
``Term.find_peers`` puts both in. The API server does the same when a pod is created. What it wrote for
``matchLabelKeys`` holds even if the pod's labels have changed since: only the API server may write these keys there.

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
    """Which pods a rule of one pod is about; equal for all rules that are about the same pods.

    Attributes:
        namespaces: sorted names.
        namespace_selector: selects more namespaces, by their labels.
        selector: selects pods in these namespaces.
    """

    namespaces: tuple[str, ...]
    namespace_selector: Selector
    selector: Selector

    def include(self, namespace: str, namespace_labels: Labels, labels: Labels) -> bool:
        """Whether a pod of a namespace is among these pods.

        The labels of a namespace contain its name (``names.NAMESPACE_NAME``): the API server adds it.
        """
        there = namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        return there and self.selector.matches(labels)


class Term(NamedTuple):
    """One term, required or preferred.

    Attributes:
        topology_key: label of nodes; nodes of one value are near each other.
        namespaces: sorted; if empty, and ``namespace_selector`` selects nothing, the pod's own namespace is meant.
        label_keys, mismatch_keys: labels of the pod itself whose values its peers must have, or must not have.
        weight: 1 to 100 of a preferred term, 0 of a required one.
    """

    topology_key: str
    namespaces: tuple[str, ...]
    namespace_selector: Selector
    selector: Selector
    label_keys: tuple[str, ...] = ()
    mismatch_keys: tuple[str, ...] = ()
    weight: int = 0

    def find_peers(self, namespace: str, labels: Labels) -> Peers:
        """Find the pods that the term is about, if it is a term of a pod of this namespace with these labels."""
        own = not self.namespaces and self.namespace_selector == selectors.NOTHING
        there = self.selector.keys
        return Peers(
            (namespace,) if own else self.namespaces,
            self.namespace_selector,
            add_own_values(
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


def read_rules(given: wire.Affinity | None, problems: list[Mistake]) -> Rules:
    """Read the terms of ``spec.affinity``; mistakes for which an API server would refuse them go to ``problems``.

    There are four lists, and a list with a malformed term counts as empty: so kube-scheduler reads the lists of pods
    that run already.
    """
    if given is None or (given.pod_affinity is None and given.pod_anti_affinity is None):
        return Rules()
    near, far = given.pod_affinity, given.pod_anti_affinity
    return Rules(
        _read_terms(_read_required, near, "spec.affinity.podAffinity", problems),
        _read_terms(_read_required, far, "spec.affinity.podAntiAffinity", problems),
        _read_terms(_read_preferred, near, "spec.affinity.podAffinity", problems),
        _read_terms(_read_preferred, far, "spec.affinity.podAntiAffinity", problems),
    )


def _read_terms(
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


def _read_required(rules: wire.PodAffinity, field: str) -> Terms:
    given = rules.required_during_scheduling_ignored_during_execution or ()
    return tuple(_read_term(one, f"{field}.{_REQUIRED}[{i}]") for i, one in enumerate(given))


def _read_preferred(rules: wire.PodAffinity, field: str) -> Terms:
    found = []
    for i, one in enumerate(rules.preferred_during_scheduling_ignored_during_execution or ()):
        where = f"{field}.{_PREFERRED}[{i}]"
        if not 1 <= one.weight <= WEIGHT_MAX:
            raise BadInput(f"{where}.weight", f"{one.weight} is not within 1..{WEIGHT_MAX}")
        term = _read_term(one.pod_affinity_term, f"{where}.podAffinityTerm")
        found.append(term._replace(weight=one.weight))
    return tuple(found)


def _read_term(given: wire.PodTerm, field: str) -> Term:
    if not given.topology_key:
        raise BadInput(f"{field}.topologyKey", "must be set")
    selectors.check_name(given.topology_key, f"{field}.topologyKey")
    for i, name in enumerate(given.namespaces or ()):
        if len(name) > _NAMESPACE_MAX or not _NAMESPACE.fullmatch(name):
            raise BadInput(
                f"{field}.namespaces[{i}]", f"{selectors.quote(name)} is not a namespace's name"
            )
    selector, keys = read_selector_and_keys(given.label_selector, given.match_label_keys, field)
    mismatch_keys = read_label_keys(
        given.mismatch_label_keys, given.label_selector, f"{field}.mismatchLabelKeys"
    )
    if both := set(keys).intersection(mismatch_keys):
        raise BadInput(
            f"{field}.mismatchLabelKeys",
            f"{selectors.quote(min(both))} is among matchLabelKeys too",
        )
    return Term(
        given.topology_key,
        tuple(sorted(set(given.namespaces or ()))),
        selectors.read_selector(given.namespace_selector, f"{field}.namespaceSelector"),
        selector,
        keys,
        mismatch_keys,
    )


def read_selector_and_keys(
    given: wire.LabelSelector | None, keys: Sequence[str] | None, field: str
) -> tuple[Selector, tuple[str, ...]]:
    """Read ``labelSelector`` and ``matchLabelKeys`` of the rule in ``field``.

    Raises:
        BadInput: an API server would refuse them; the error names the field.
    """
    selector = selectors.read_selector(given, f"{field}.labelSelector")
    found = read_label_keys(keys, given, f"{field}.matchLabelKeys")
    if found and given:
        # One such requirement may be there: in this form the API server writes down the pod's own value.
        in_expressions = (one.key for one in given.match_expressions or ())
        said = Counter((*(given.match_labels or ()), *in_expressions))
        for key in found:
            if said[key] > 1:
                raise BadInput(
                    f"{field}.matchLabelKeys", f"{selectors.quote(key)} is in labelSelector too"
                )
    return selector, found


def read_label_keys(
    keys: Sequence[str] | None, selector: wire.LabelSelector | None, field: str
) -> tuple[str, ...]:
    """Read the names of labels whose values are the pod's own, sorted.

    Raises:
        BadInput: as ``read_selector_and_keys``.
    """
    if keys and selector is None:
        raise BadInput(field, "must not be set without labelSelector")
    for i, key in enumerate(keys or ()):
        selectors.check_name(key, f"{field}[{i}]")
    return tuple(sorted(set(keys or ())))


def add_own_values(
    selector: Selector,
    labels: Labels,
    label_keys: Sequence[str],
    mismatch_keys: Sequence[str] = (),
) -> Selector:
    """Add to the selector of a rule the values that the pod itself has for these labels, if it has the labels."""
    own = [Requirement(key, "In", (labels[key],)) for key in label_keys if key in labels]
    own += [Requirement(key, "NotIn", (labels[key],)) for key in mismatch_keys if key in labels]
    return selector.add_requirements(own) if own else selector
