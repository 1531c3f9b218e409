"""The requirements in a pod's spec, one at a time, and the pod without each: some keep it off nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple, TypeVar

import msgspec

from scheduler.api import names, wire
from scheduler.state.cluster import Cluster
from scheduler.state.nodes import TaintKey

T = TypeVar("T")
# Nobody reads more advice than this, and whoever may create pods decides how many there could be.
MOST = 64
_HARD = frozenset({"NoSchedule", "NoExecute"})
_copies = msgspec.json.Decoder(wire.Pod)


class Wish(NamedTuple):
    """One thing that a pod insists on.

    Attributes:
        field: where it stands in the pod.
        said: what it says there.
        drop: takes it out of a pod that says the same, and leaves all else.
    """

    field: str
    said: str
    drop: Callable[[wire.Pod], None]


def without(pod: wire.Pod, wishes: Iterable[Wish]) -> wire.Pod:
    """A pod that is the same but for what it insists on."""
    changed = copy(pod)
    for wish in wishes:
        wish.drop(changed)
    return changed


def copy(pod: wire.Pod) -> wire.Pod:
    """A pod that may be changed."""
    return _copies.decode(msgspec.json.encode(pod))


def of_pod(pod: wire.Pod) -> list[Wish]:
    """All that a pod insists on, in the order of its fields; of very many the first."""
    found = chain(
        _selector(pod), _node_affinity(pod), _peers(pod), _spread(pod), _ports(pod), _volumes(pod),
        _steering(pod),
    )  # fmt: skip
    return [wish for wish, _ in zip(found, range(MOST), strict=False)]


def _selector(pod: wire.Pod) -> Iterator[Wish]:
    for key, value in sorted((pod.spec.node_selector or {}).items()):

        def drop(changed: wire.Pod, key: str = key) -> None:
            (changed.spec.node_selector or {}).pop(key, None)

        yield Wish("spec.nodeSelector", f"{key}={value}", drop)


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _node_affinity(pod: wire.Pod) -> Iterator[Wish]:
    """Every requirement of a term; a term without any would match nothing, and goes with its last."""
    terms = _node_terms(pod)
    for i, term in enumerate(terms):
        for kind in ("match_expressions", "match_fields"):
            for one in getattr(term, kind) or ():

                def drop(
                    changed: wire.Pod, i: int = i, kind: str = kind, one: wire.Expression = one
                ) -> None:
                    _drop_requirement(changed, i, kind, one)

                field = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms[{i}]"
                yield Wish(field, _required(one), drop)


def _required(one: wire.Expression) -> str:
    return " ".join([one.key, one.operator, ", ".join(one.values or ())]).strip()


def _node_terms(pod: wire.Pod) -> list[wire.NodeTerm]:
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    return (required and required.node_selector_terms) or []


def _drop_requirement(pod: wire.Pod, i: int, kind: str, one: wire.Expression) -> None:
    terms = _node_terms(pod)
    kept = [other for other in getattr(terms[i], kind) or () if other != one]
    setattr(terms[i], kind, kept)
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    if affinity and not (terms[i].match_expressions or terms[i].match_fields):
        # One of the terms has to hold, and this one always does now.
        affinity.required_during_scheduling_ignored_during_execution = None


def _peers(pod: wire.Pod) -> Iterator[Wish]:
    affinity = pod.spec.affinity
    for name, field in (("pod_affinity", "podAffinity"), ("pod_anti_affinity", "podAntiAffinity")):
        peers = getattr(affinity, name) if affinity else None
        required = peers.required_during_scheduling_ignored_during_execution if peers else None
        for i, term in enumerate(required or ()):

            def drop(changed: wire.Pod, name: str = name, term: wire.PodTerm = term) -> None:
                peers = getattr(changed.spec.affinity, name)
                terms = peers.required_during_scheduling_ignored_during_execution
                peers.required_during_scheduling_ignored_during_execution = _less(terms, term)

            said = f"{_selected(term.label_selector)} by {term.topology_key}"
            yield Wish(f"spec.affinity.{field}.{_REQUIRED}[{i}]", said, drop)


def _selected(selector: wire.LabelSelector | None) -> str:
    if selector is None:
        return "nothing"
    said = [f"{key}={value}" for key, value in sorted((selector.match_labels or {}).items())]
    said += map(_required, selector.match_expressions or ())
    return ", ".join(said) or "every pod"


def _spread(pod: wire.Pod) -> Iterator[Wish]:
    for i, one in enumerate(pod.spec.topology_spread_constraints or ()):
        if one.when_unsatisfiable == "ScheduleAnyway":
            continue

        def drop(changed: wire.Pod, one: wire.Spread = one) -> None:
            constraints = changed.spec.topology_spread_constraints or []
            changed.spec.topology_spread_constraints = _less(constraints, one)

        said = f"{_selected(one.label_selector)} by {one.topology_key}, maxSkew {one.max_skew}"
        yield Wish(f"spec.topologySpreadConstraints[{i}]", said, drop)


def _ports(pod: wire.Pod) -> Iterator[Wish]:
    asked = {
        (port.host_port, port.protocol or "TCP", port.host_ip)
        for container in _containers(pod)
        for port in container.ports or ()
        if port.host_port
    }
    for number, protocol, ip in sorted(asked):

        def drop(
            changed: wire.Pod, number: int = number, protocol: str = protocol, ip: str = ip
        ) -> None:
            for container in _containers(changed):
                for port in container.ports or ():
                    if (port.host_port, port.protocol or "TCP", port.host_ip) == (
                        number, protocol, ip
                    ):  # fmt: skip
                        port.host_port = 0

        yield Wish("spec.containers[].ports[].hostPort", f"{number}/{protocol}", drop)


def _volumes(pod: wire.Pod) -> Iterator[Wish]:
    for i, volume in enumerate(pod.spec.volumes or ()):
        if volume.persistent_volume_claim is None and volume.ephemeral is None:
            continue

        def drop(changed: wire.Pod, volume: wire.Volume = volume) -> None:
            changed.spec.volumes = _less(changed.spec.volumes or [], volume)

        source = volume.persistent_volume_claim
        claim = source.claim_name if source is not None else ""
        yield Wish(f"spec.volumes[{i}]", f"claim {claim}" if claim else "ephemeral claim", drop)


def _steering(pod: wire.Pod) -> Iterator[Wish]:
    """Which cards will do, and how nodes and cards are chosen."""
    notes = pod.metadata.annotations or {}
    for key in sorted(names.STEERING & notes.keys()):

        def drop(changed: wire.Pod, key: str = key) -> None:
            (changed.metadata.annotations or {}).pop(key, None)

        yield Wish("metadata.annotations", f"{key}={notes[key]}", drop)


def _containers(pod: wire.Pod) -> Iterator[wire.Container]:
    return chain(pod.spec.containers, pod.spec.init_containers or ())


def _less(items: list[T], item: T) -> list[T]:
    """A list without the first of its items that is equal to one."""
    kept = list(items)
    if item in kept:
        kept.remove(item)
    return kept


def taints(cluster: Cluster) -> list[tuple[TaintKey, ...]]:
    """Sets of taints that somebody put on nodes to keep pods off, those of the most nodes first.

    Taints that tell of a node's state are not to be tolerated: they go when the node is well again.
    """
    counts: dict[tuple[TaintKey, ...], int] = {}
    for facts in cluster.nodes.facts:
        if facts is not None:
            hard = tuple(taint for taint in facts.taints if taint[2] in _HARD)
            if hard and not any(map(is_state, hard)):
                counts[hard] = counts.get(hard, 0) + 1
    return sorted(counts, key=lambda one: (-counts[one], one))[:MOST]


def is_state(taint: TaintKey) -> bool:
    """Whether a taint tells of a node's state and not of a purpose."""
    return taint[0].startswith(names.STATE_TAINTS)


def tolerating(pod: wire.Pod, tolerated: Iterable[TaintKey]) -> wire.Pod:
    """A pod that tolerates these taints as well."""
    changed = copy(pod)
    more = [
        wire.Toleration(key=key, operator="Equal", value=value, effect=effect)
        for key, value, effect in tolerated
    ]
    changed.spec.tolerations = [*(changed.spec.tolerations or ()), *more]
    return changed
