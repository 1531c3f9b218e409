"""The requirements in a pod's spec that may keep the pod off nodes, and the pod without some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple, TypeVar

import msgspec

from scheduler.api import names, wire
from scheduler.state.cluster import Cluster
from scheduler.state.nodes import TaintKey

T = TypeVar("T")
# The most requirements and sets of taints that are tried. Without a limit, authors of pods could make the number huge.
MOST = 64
_HARD = frozenset({"NoSchedule", "NoExecute"})
_copies = msgspec.json.Decoder(wire.Pod)


class Wish(NamedTuple):
    """One requirement of a pod.

    Attributes:
        field: the field of the pod.
        said: the text of the requirement.
        drop: removes the requirement from a copy of the pod, and changes nothing else.
    """

    field: str
    said: str
    drop: Callable[[wire.Pod], None]


def drop_wishes(pod: wire.Pod, wishes: Iterable[Wish]) -> wire.Pod:
    """Make a copy of a pod without some requirements."""
    changed = copy_pod(pod)
    for wish in wishes:
        wish.drop(changed)
    return changed


def copy_pod(pod: wire.Pod) -> wire.Pod:
    """Copy a pod, so that the copy may be changed."""
    return _copies.decode(msgspec.json.encode(pod))


def list_wishes(pod: wire.Pod) -> list[Wish]:
    """List the requirements of a pod in the order of its fields, at most the first ``MOST``."""
    found = chain(
        _list_selector(pod),
        _list_node_affinity(pod),
        _list_peers(pod),
        _list_spread(pod),
        _list_ports(pod),
        _list_volumes(pod),
        _list_steering(pod),
    )
    return [wish for wish, _ in zip(found, range(MOST), strict=False)]


def _list_selector(pod: wire.Pod) -> Iterator[Wish]:
    for key, value in sorted((pod.spec.node_selector or {}).items()):

        def drop(changed: wire.Pod, key: str = key) -> None:
            (changed.spec.node_selector or {}).pop(key, None)

        yield Wish("spec.nodeSelector", f"{key}={value}", drop)


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _list_node_affinity(pod: wire.Pod) -> Iterator[Wish]:
    """List every requirement of the terms. A term whose last requirement is dropped is dropped too."""
    terms = _get_node_terms(pod)
    for i, term in enumerate(terms):
        for kind in ("match_expressions", "match_fields"):
            for one in getattr(term, kind) or ():

                def drop(
                    changed: wire.Pod, i: int = i, kind: str = kind, one: wire.Expression = one
                ) -> None:
                    _drop_requirement(changed, i, kind, one)

                field = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms[{i}]"
                yield Wish(field, _write_requirement(one), drop)


def _write_requirement(one: wire.Expression) -> str:
    return " ".join([one.key, one.operator, ", ".join(one.values or ())]).strip()


def _get_node_terms(pod: wire.Pod) -> list[wire.NodeTerm]:
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    return (required and required.node_selector_terms) or []


def _drop_requirement(pod: wire.Pod, i: int, kind: str, one: wire.Expression) -> None:
    terms = _get_node_terms(pod)
    kept = [other for other in getattr(terms[i], kind) or () if other != one]
    setattr(terms[i], kind, kept)
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    if affinity and not (terms[i].match_expressions or terms[i].match_fields):
        # One term must hold, and the term without requirements now always holds.
        affinity.required_during_scheduling_ignored_during_execution = None


def _list_peers(pod: wire.Pod) -> Iterator[Wish]:
    affinity = pod.spec.affinity
    for name, field in (("pod_affinity", "podAffinity"), ("pod_anti_affinity", "podAntiAffinity")):
        peers = getattr(affinity, name) if affinity else None
        required = peers.required_during_scheduling_ignored_during_execution if peers else None
        for i, term in enumerate(required or ()):

            def drop(changed: wire.Pod, name: str = name, term: wire.PodTerm = term) -> None:
                peers = getattr(changed.spec.affinity, name)
                terms = peers.required_during_scheduling_ignored_during_execution
                peers.required_during_scheduling_ignored_during_execution = _remove_first(
                    terms, term
                )

            said = f"{_write_selector(term.label_selector)} by {term.topology_key}"
            yield Wish(f"spec.affinity.{field}.{_REQUIRED}[{i}]", said, drop)


def _write_selector(selector: wire.LabelSelector | None) -> str:
    if selector is None:
        return "nothing"
    said = [f"{key}={value}" for key, value in sorted((selector.match_labels or {}).items())]
    said += map(_write_requirement, selector.match_expressions or ())
    return ", ".join(said) or "every pod"


def _list_spread(pod: wire.Pod) -> Iterator[Wish]:
    for i, one in enumerate(pod.spec.topology_spread_constraints or ()):
        if one.when_unsatisfiable == "ScheduleAnyway":
            continue

        def drop(changed: wire.Pod, one: wire.Spread = one) -> None:
            constraints = changed.spec.topology_spread_constraints or []
            changed.spec.topology_spread_constraints = _remove_first(constraints, one)

        said = (
            f"{_write_selector(one.label_selector)} by {one.topology_key}, maxSkew {one.max_skew}"
        )
        yield Wish(f"spec.topologySpreadConstraints[{i}]", said, drop)


def _list_ports(pod: wire.Pod) -> Iterator[Wish]:
    asked = {
        (port.host_port, port.protocol or "TCP", port.host_ip)
        for container in _list_containers(pod)
        for port in container.ports or ()
        if port.host_port
    }
    for number, protocol, ip in sorted(asked):

        def drop(
            changed: wire.Pod, number: int = number, protocol: str = protocol, ip: str = ip
        ) -> None:
            for container in _list_containers(changed):
                for port in container.ports or ():
                    if (port.host_port, port.protocol or "TCP", port.host_ip) == (
                        number, protocol, ip
                    ):  # fmt: skip
                        port.host_port = 0

        yield Wish("spec.containers[].ports[].hostPort", f"{number}/{protocol}", drop)


def _list_volumes(pod: wire.Pod) -> Iterator[Wish]:
    for i, volume in enumerate(pod.spec.volumes or ()):
        if volume.persistent_volume_claim is None and volume.ephemeral is None:
            continue

        def drop(changed: wire.Pod, volume: wire.Volume = volume) -> None:
            changed.spec.volumes = _remove_first(changed.spec.volumes or [], volume)

        source = volume.persistent_volume_claim
        claim = source.claim_name if source is not None else ""
        yield Wish(f"spec.volumes[{i}]", f"claim {claim}" if claim else "ephemeral claim", drop)


def _list_steering(pod: wire.Pod) -> Iterator[Wish]:
    """List the annotations that choose cards, or that say how nodes and cards are chosen."""
    notes = pod.metadata.annotations or {}
    for key in sorted(names.STEERING & notes.keys()):

        def drop(changed: wire.Pod, key: str = key) -> None:
            (changed.metadata.annotations or {}).pop(key, None)

        yield Wish("metadata.annotations", f"{key}={notes[key]}", drop)


def _list_containers(pod: wire.Pod) -> Iterator[wire.Container]:
    return chain(pod.spec.containers, pod.spec.init_containers or ())


def _remove_first(items: list[T], item: T) -> list[T]:
    """Copy a list without the first item that is equal to ``item``."""
    kept = list(items)
    if item in kept:
        kept.remove(item)
    return kept


def list_taints(cluster: Cluster) -> list[tuple[TaintKey, ...]]:
    """List the sets of taints that were put on nodes to keep pods off; the sets of the most nodes come first.

    Taints that report a node's state are left out: no pod should tolerate them, and they go when the node is well again.
    """
    counts: dict[tuple[TaintKey, ...], int] = {}
    for facts in cluster.nodes.facts:
        if facts is not None:
            hard = tuple(taint for taint in facts.taints if taint[2] in _HARD)
            if hard and not any(map(is_state, hard)):
                counts[hard] = counts.get(hard, 0) + 1
    return sorted(counts, key=lambda one: (-counts[one], one))[:MOST]


def is_state(taint: TaintKey) -> bool:
    """Whether a taint reports a node's state and not the node's purpose."""
    return taint[0].startswith(names.STATE_TAINTS)


def tolerate_taints(pod: wire.Pod, tolerated: Iterable[TaintKey]) -> wire.Pod:
    """Make a copy of a pod that tolerates these taints as well."""
    changed = copy_pod(pod)
    more = [
        wire.Toleration(key=key, operator="Equal", value=value, effect=effect)
        for key, value, effect in tolerated
    ]
    changed.spec.tolerations = [*(changed.spec.tolerations or ()), *more]
    return changed
