"""Limits on the size of a pod's spec, checked before the spec is compiled.

The API server bounds the size of an object but not the lists in it, so one pod can have 30,000 affinity terms, each
of which must be compared with every node. The bounds are so wide that no pod written for a purpose exceeds them. A
pod that exceeds a bound is held, with an event that names the field. A pod that runs already is charged what it asks,
and the parts that only say where it would have liked to go are not read.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sized
from dataclasses import dataclass

import msgspec

from scheduler.api import names, wire
from scheduler.errors import Mistake

# Annotations that are lists of names, separated by commas.
_LISTS = (names.USE_TYPE, names.NOUSE_TYPE, names.USE_UUID, names.NOUSE_UUID)
# The most characters of an annotation that is a word or a few, and of an image's name.
_WORD_MAX = 1000
# A text is cut before a word, unless that loses more than so many bytes of the word.
_PART_MAX = 64
# Pods with more entries are expensive to compile: their namespaces take turns.
LIGHT_WORDS = 200
# The most containers and cards in a claim to cards, whatever ``PodLimits`` allow: no more is written or read.
CLAIM_CONTAINERS = CLAIM_CARDS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLimits:
    """The most entries of each kind that a pod may have.

    Attributes:
        terms: node affinity terms, required and preferred.
        peers: terms of pod affinity, terms of pod anti-affinity, and topology spread constraints. Each is
            compared with every other pod, so fewer are allowed than terms about nodes.
        keys: labels of the nodeSelector, and expressions of all terms of one of these kinds.
        values: values of all expressions of one kind, and names of namespaces.
        tolerations: tolerations of the pod.
        ports: host ports.
        resources: names of resources, over all containers.
        containers: containers and init containers; and as many volumes that are images, and that are claims or disks.
        labels: the pod's own labels.
        names: cards or types in one annotation.
        text: bytes of one field as JSON; above it the field is not even decoded.
    """

    terms: int = 1000
    peers: int = 100
    keys: int = 1000
    values: int = 10_000
    tolerations: int = 1000
    ports: int = 256
    resources: int = 256
    containers: int = 1000
    labels: int = 1000
    names: int = 1000
    text: int = 256 * 1024


DEFAULT = PodLimits()


def find_excess(pod: wire.Pod, limits: PodLimits) -> Mistake | None:
    """Find the first bound that a pod exceeds, None when it exceeds none. O(what is within bounds)."""
    return measure_template(pod, limits)[0] or find_own_excess(pod, limits)


def find_own_excess(pod: wire.Pod, limits: PodLimits) -> Mistake | None:
    """Find the first bound that a pod exceeds in the parts in which pods of one template may differ."""
    return _count_entries(_list_own(pod, limits))[0]


def measure_template(
    pod: wire.Pod, limits: PodLimits, notes: frozenset[str] = frozenset()
) -> tuple[Mistake | None, int]:
    """Return the first bound that the template of a pod exceeds, and, if it exceeds none, its words, in one walk.

    ``notes`` are further annotations that decide where the pod goes.
    """
    if pod.oversized:
        return pod.oversized, 0
    problem, counted = _count_entries(_list_bounded(pod, limits))
    steering = _list_steering(pod, notes)
    problem = problem or _find_long_text(pod, steering, limits)
    return problem, 0 if problem else counted + _count_commas(steering)


def _count_entries(lists: _Lists) -> tuple[Mistake | None, int]:
    """Return the first list that is longer than its bound, and, if none is, the number of entries in all."""
    counted = 0
    for field, most, sizes in lists:
        total = 0
        for part in sizes:
            total += len(part)
            if total > most:
                return Mistake(field, f"has more than {most} entries, the maximum"), 0
        counted += total
    return None, counted


def _find_long_text(
    pod: wire.Pod, steering: list[tuple[str, str]], limits: PodLimits
) -> Mistake | None:
    for name, text in steering:
        field = f"metadata.annotations[{name}]"
        if name not in _LISTS and len(text) > _WORD_MAX:
            return Mistake(field, f"has more than {_WORD_MAX} characters, the maximum")
        if text.count(",") >= limits.names:
            return Mistake(field, f"has more than {limits.names} names, the maximum")
    if field := _find_long_image(pod.spec):
        return Mistake(field, f"has more than {_WORD_MAX} characters, the maximum")
    return None


def report_too_large(field: str, bytes_read: int) -> Mistake:
    """Return the mistake for a field that was too large to decode; it is put in ``wire.Pod.oversized``."""
    return Mistake(field, f"is larger than {bytes_read} bytes, the maximum")


def shorten(text: str, most: int) -> str:
    """Cut a text to at most so many bytes, between words unless the last word is very long."""
    # No more is encoded than is needed. JSON may hold halves of characters, which have no bytes.
    encoded = text[: most + 1].encode(errors="replace")
    if len(encoded) <= most:
        return text
    kept = encoded[: most - 4].decode(errors="ignore")
    before, _, last = kept.rpartition(" ")
    return (before if before and len(last) <= _PART_MAX else kept) + " ..."


def count_words(pod: wire.Pod, notes: frozenset[str] = frozenset()) -> int:
    """Count the entries of all bounded lists of a pod: so much must be read and compiled."""
    lists = itertools.chain(_list_own(pod, DEFAULT), _list_bounded(pod, DEFAULT))
    counted = sum(len(part) for _, _, sizes in lists for part in sizes)
    return counted + _count_commas(_list_steering(pod, notes))


def _count_commas(steering: list[tuple[str, str]]) -> int:
    return sum(text.count(",") for _, text in steering)


def _list_steering(pod: wire.Pod, notes: frozenset[str]) -> list[tuple[str, str]]:
    """List the annotations that decide where a pod goes."""
    annotations = pod.metadata.annotations
    if not annotations:
        return []
    read = (names.STEERING | notes) & annotations.keys()
    return [(name, annotations[name]) for name in sorted(read)]


def cut_pod(
    pod: wire.Pod, limits: PodLimits, problem: Mistake, notes: frozenset[str] = frozenset()
) -> wire.Pod:
    """Cut from a pod that exceeds the bounds the parts that only say where it would have liked to go.

    Its requests stay: a pod that runs already holds them, and a kubelet admits a pod that asks for 0 of a thousand
    resources, or for resources that no node knows.
    """
    ports_left = limits.ports

    def shorten_container(container: wire.Container) -> wire.Container:
        nonlocal ports_left
        ports = [p for p in container.ports or () if p.host_port][:ports_left]
        ports_left -= len(ports)
        return msgspec.structs.replace(container, ports=ports, image="")

    spec, metadata = pod.spec, msgspec.structs.replace(pod.metadata)
    metadata.annotations = {
        name: text
        for name, text in (metadata.annotations or {}).items()
        if name not in names.STEERING and name not in notes
    }
    if len(metadata.labels or ()) > limits.labels:
        metadata.labels = None
    kept = msgspec.structs.replace(
        spec,
        affinity=None,
        node_selector=None,
        tolerations=None,
        containers=[shorten_container(one) for one in spec.containers],
        init_containers=[shorten_container(one) for one in spec.init_containers or ()],
        topology_spread_constraints=None,
        volumes=[one for one in spec.volumes or () if one.image is None],
    )
    return wire.Pod(metadata, kept, pod.status, problem)


_Lists = Iterator[tuple[str, int, Iterator[Sized]]]


def _list_own(pod: wire.Pod, limits: PodLimits) -> _Lists:
    """As ``_list_bounded``, of the parts that are not the template's but the pod's: see ``templates.make_key``."""
    if pod.metadata.labels:
        yield "metadata.labels", limits.labels, iter((pod.metadata.labels,))
    if volumes := pod.spec.volumes:
        stored = [volume for volume in volumes if volume.is_storage]
        yield "spec.volumes (claims and disks)", limits.containers, iter((stored,))


def _list_bounded(pod: wire.Pod, limits: PodLimits) -> _Lists:
    """List the bounded lists of a template that are not empty.

    Returns:
        For each the field, the bound, and the parts, counted no further than needed.
    """
    spec = pod.spec
    yield "spec.containers", limits.containers, iter((spec.containers, spec.init_containers or ()))
    if spec.tolerations:
        yield "spec.tolerations", limits.tolerations, iter((spec.tolerations,))
    if spec.node_selector:
        yield "spec.nodeSelector", limits.keys, iter((spec.node_selector,))
    containers = [*spec.containers, *(spec.init_containers or ())]
    if exposing := [one.ports for one in containers if one.ports]:
        ports = ([port for port in part if port.host_port] for part in exposing)
        yield "spec.containers[].ports (host ports)", limits.ports, ports
    resources = _list_resource_names(spec, containers, limits.resources)
    yield "spec.containers[].resources", limits.resources, iter((resources,))
    if spec.volumes and (volumes := [volume for volume in spec.volumes if volume.image]):
        yield "spec.volumes (images)", limits.containers, iter((volumes,))
    if spec.affinity is not None:
        if spec.affinity.node_affinity is not None:
            yield from _list_affinity(spec.affinity.node_affinity, limits)
        yield from _list_pod_affinity("podAffinity", spec.affinity.pod_affinity, limits)
        yield from _list_pod_affinity("podAntiAffinity", spec.affinity.pod_anti_affinity, limits)
    if spec.topology_spread_constraints:
        yield from _list_spread(spec.topology_spread_constraints, limits)


def _list_affinity(affinity: wire.NodeAffinity, limits: PodLimits) -> _Lists:
    field = "spec.affinity.nodeAffinity"
    required = affinity.required_during_scheduling_ignored_during_execution
    terms = (required and required.node_selector_terms) or []
    preferred = affinity.preferred_during_scheduling_ignored_during_execution or []
    yield f"{field} (terms)", limits.terms, iter((terms, preferred))
    all_terms = [*terms, *(p.preference for p in preferred if p.preference)]
    lists = [part for t in all_terms for part in (t.match_expressions or (), t.match_fields or ())]
    yield f"{field} (expressions)", limits.keys, iter(lists)
    yield f"{field} (values)", limits.values, (e.values or () for part in lists for e in part)


def _list_pod_affinity(name: str, rules: wire.PodAffinity | None, limits: PodLimits) -> _Lists:
    if rules is None:
        return
    field = f"spec.affinity.{name}"
    required = rules.required_during_scheduling_ignored_during_execution or []
    preferred = rules.preferred_during_scheduling_ignored_during_execution or []
    yield f"{field} (terms)", limits.peers, iter((required, preferred))
    terms = [*required, *(one.pod_affinity_term for one in preferred)]
    selectors = [one for term in terms for one in (term.label_selector, term.namespace_selector)]
    keys = [k or () for term in terms for k in (term.match_label_keys, term.mismatch_label_keys)]
    lists, values = _split_selectors(selectors)
    yield f"{field} (expressions)", limits.keys, iter([*lists, *keys])
    yield f"{field} (values)", limits.values, iter([*values, *(t.namespaces or () for t in terms)])


def _list_spread(constraints: list[wire.Spread], limits: PodLimits) -> _Lists:
    field = "spec.topologySpreadConstraints"
    yield field, limits.peers, iter((constraints,))
    lists, values = _split_selectors([one.label_selector for one in constraints])
    keys = [one.match_label_keys or () for one in constraints]
    yield f"{field} (expressions)", limits.keys, iter([*lists, *keys])
    yield f"{field} (values)", limits.values, iter(values)


def _split_selectors(given: list[wire.LabelSelector | None]) -> tuple[list[Sized], list[Sized]]:
    """Split selectors into the lists of their labels and expressions, and the lists of their values."""
    there = [one for one in given if one]
    lists: list[Sized] = [
        part for one in there for part in (one.match_labels or (), one.match_expressions or ())
    ]
    return lists, [e.values or () for one in there for e in one.match_expressions or ()]


def _find_long_image(spec: wire.PodSpec) -> str:
    """Find the field of an image whose name is too long; empty when there is none."""
    for container in _list_containers(spec):
        if len(container.image) > _WORD_MAX:
            return "spec.containers[].image"
    for volume in spec.volumes or ():
        if volume.image and len(volume.image.reference) > _WORD_MAX:
            return "spec.volumes[].image.reference"
    return ""


def _list_containers(spec: wire.PodSpec) -> Iterator[wire.Container]:
    yield from spec.containers
    yield from spec.init_containers or ()


def _list_resource_names(
    spec: wire.PodSpec, containers: list[wire.Container], most: int
) -> set[str]:
    """List distinct names of resources; no more of them than are needed to exceed ``most``."""
    found: set[str] = set(spec.overhead or ())
    for container in containers:
        resources = container.resources
        if resources is None:
            continue
        found.update(resources.requests or (), resources.limits or ())
        if len(found) > most:
            break
    return found
