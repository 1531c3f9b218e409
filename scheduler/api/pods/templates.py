"""Pod templates: the part of a pod's spec that decides where it may go and what it is charged.

Pods made from one ReplicaSet or Job differ in name only. Their template is parsed once and found
again by a key of bytes, so a thousand equal pods cost one parse.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import msgspec

from scheduler.api import limits, names, selectors, space_quotas, wire
from scheduler.api.claims.wanted import Wanted, read_wanted
from scheduler.api.pods import (
    affinity,
    features,
    gpus,
    images,
    kai_shares,
    neutral_shares,
    requests,
    spread,
)
from scheduler.api.pods.affinity import Terms
from scheduler.api.pods.spread import Constraints
from scheduler.api.pods.tolerations import TolerationKey
from scheduler.api.selectors import NodeTerm
from scheduler.errors import BadInput, Mistake

_encoder = msgspec.json.Encoder()
_PREFERRED = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"

# The annotations that are part of a template.
_NOTES = names.STEERING | names.KAI_SHARES


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class PodTemplate:
    """One distinct pod spec; interned by ``make_key``, so it is compared by identity.

    Attributes:
        requests: amounts charged to a node.
        ports: host ports as (protocol, port, ip).
        selector: node labels that must be equal.
        required: terms of required node affinity that can match, None for no affinity; an empty tuple
            matches nothing.
        node_names: the only nodes that the terms of required node affinity allow by name; None if they name none.
        preferred: (weight, term) of preferred node affinity, for terms that can match.
        affinity, anti_affinity: required terms about other pods.
        preferred_affinity, preferred_anti_affinity: likewise, with weights.
        spread: topology spread constraints.
        images: the full names of the images of every container and image volume.
        tolerations: (key, operator, value, effect).
        features: the features of a kubelet that it needs.
        gpu: what it asks of the first family of devices of which it asks any, None for none.
        more: of a pod that asks for several families: this template as it asks for each of the others.
        most: what its containers may hold on cards of that family, empty for none; also of a malformed
            request.
        size: the size class of what it asks, see ``gpus.find_size``; -1 for none.
        share: the share of cards that it has if KAI has placed it, ``UNREADABLE`` if its annotations cannot be read, None
            for none. Evenkeel places no such pod.
        steering: the pod's own placement annotations, sorted.
        kinds: the kind of every container, init containers first (slots of HAMi's annotations).
        extended: what its containers request of extended resources, one by one.
        problem: what a person must mend before the pod can be placed.
        scopes: the scopes of ResourceQuotas that it is in.
        words: how much was compiled, see ``limits.count_words``.
        offered: 0, or for a pod that asks more resources than are read: the generation of the resources that nodes
            offer; ``requests`` has only resources that some node offered then.
    """

    requests: requests.Requests
    ports: tuple[tuple[str, int, str], ...]
    selector: tuple[tuple[str, str], ...]
    required: tuple[NodeTerm, ...] | None
    node_names: tuple[str, ...] | None
    preferred: tuple[tuple[int, NodeTerm], ...]
    affinity: Terms
    anti_affinity: Terms
    preferred_affinity: Terms
    preferred_anti_affinity: Terms
    spread: Constraints
    images: tuple[str, ...]
    tolerations: tuple[TolerationKey, ...]
    features: tuple[str, ...]
    gpu: gpus.GpuAsk | None
    most: tuple[gpus.ContainerAsk, ...]
    size: int
    more: tuple[PodTemplate, ...]
    share: kai_shares.Share | None
    steering: tuple[tuple[str, str], ...]
    kinds: tuple[gpus.ContainerKind, ...]
    extended: tuple[Wanted, ...]
    problem: Mistake | None
    scopes: frozenset[str]
    words: int
    offered: int = 0

    @property
    def family(self) -> str:
        """The resource by which the pod asks the cards that it may hold; empty when it may hold none."""
        return "" if self.gpu is None else self.gpu.family

    def list_by_family(self) -> tuple[PodTemplate, ...]:
        """List this template as it asks for each family of devices; at least the template itself."""
        return (self, *self.more)

    @property
    def families(self) -> tuple[str, ...]:
        """The resources by which the pod asks devices."""
        return tuple(one.family for one in self.list_by_family() if one.family)

    @property
    def card_wishes(self) -> gpus.CardWishes | None:
        """Which cards the pod wants, None for any."""
        return gpus.read_wishes(self.gpu)

    @property
    def has_terms(self) -> bool:
        """Whether it has terms about other pods; once it has a node, these terms count for other pods, too."""
        return bool(
            self.affinity
            or self.anti_affinity
            or self.preferred_affinity
            or self.preferred_anti_affinity
        )


class Whereabouts(Protocol):
    """Where a pod may go by its own spec: what static filters of nodes read."""

    @property
    def selector(self) -> tuple[tuple[str, str], ...]: ...  # noqa: D102 - as in PodTemplate
    @property
    def required(self) -> tuple[NodeTerm, ...] | None: ...  # noqa: D102
    @property
    def node_names(self) -> tuple[str, ...] | None: ...  # noqa: D102
    @property
    def tolerations(self) -> tuple[TolerationKey, ...]: ...  # noqa: D102
    @property
    def features(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def families(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def card_wishes(self) -> gpus.CardWishes | None: ...  # noqa: D102


class DeviceReader(Protocol):
    """Reads what pods ask of devices."""

    @property
    def notes(self) -> frozenset[str]:
        """The annotations by which devices are chosen, beside those of every pod."""

    def read_requests(self, pod: wire.Pod) -> tuple[gpus.GpuAsk, ...]:
        """Read what a pod asks of each family of devices.

        Raises:
            BadInput: a figure that the family's plugin could not serve.
        """

    def read_most(self, pod: wire.Pod) -> tuple[gpus.GpuAsk, ...]:
        """Read what a pod asks of each family, and the most that it may hold of those where that cannot be read."""


class _Nvidia:
    """Reads what pods ask of NVIDIA's cards, for callers without drivers."""

    notes: frozenset[str] = frozenset()

    def read_requests(self, pod: wire.Pod) -> tuple[gpus.GpuAsk, ...]:
        return gpus.read_asks(pod)

    def read_most(self, pod: wire.Pod) -> tuple[gpus.GpuAsk, ...]:
        return gpus.read_most(pod, names.GPU)


_NVIDIA = _Nvidia()


def make_key(pod: wire.Pod, notes: frozenset[str] = frozenset()) -> bytes:
    """Make bytes that are equal exactly for pods of one template; ``notes`` are annotations by which devices are chosen.

    Node, priority, gates, group, storage and claims are removed while encoding: they belong to the pod, not to the template.
    """
    spec = pod.spec
    aside = (
        spec.node_name,
        spec.priority,
        spec.scheduling_gates,
        spec.scheduler_name,
        spec.scheduling_group,
        spec.priority_class_name,
    )
    volumes, claims = spec.volumes, spec.resource_claims
    spec.resource_claims = None
    if volumes:
        spec.volumes = [wire.Volume(image=one.image) for one in volumes if one.image] or None
    spec.node_name, spec.priority, spec.scheduling_gates = None, 0, None
    spec.scheduler_name = spec.scheduling_group = None
    spec.priority_class_name = ""
    encoded = _encoder.encode(spec)
    (
        spec.node_name,
        spec.priority,
        spec.scheduling_gates,
        spec.scheduler_name,
        spec.scheduling_group,
        spec.priority_class_name,
    ) = aside
    spec.volumes, spec.resource_claims = volumes, claims
    annotations = pod.metadata.annotations
    if annotations and (read := (_NOTES | notes) & annotations.keys()):
        encoded += _encoder.encode(sorted((k, annotations[k]) for k in read))
    encoded += str(pod.oversized or "").encode()
    resized = requests.read_resizing(pod)
    return encoded if resized is None else encoded + _encoder.encode(resized)


def make_template(
    pod: wire.Pod,
    bounds: limits.PodLimits = limits.DEFAULT,
    devices: DeviceReader = _NVIDIA,
) -> PodTemplate:
    """Parse the template of a pod. Never raises: what is wrong stands in ``problem``.

    ``devices`` reads what the pod asks of each family of devices.
    """
    scopes = space_quotas.list_scopes(pod.spec)
    problem, words = limits.measure_template(pod, bounds, devices.notes)
    if problem is not None:
        pod = limits.cut_pod(pod, bounds, problem, devices.notes)
        words = limits.count_words(pod, devices.notes)
    asked = requests.Requests((), 0, 0)
    asks: tuple[gpus.GpuAsk, ...] = ()
    try:
        asked = requests.read_requests(pod)
    except BadInput as error:
        problem = problem or error.mistake
    try:
        asks = devices.read_requests(pod)
    except BadInput as error:
        problem = problem or error.mistake
        # It may run on a node all the same: HAMi lowers or ignores some of what is refused here.
        asks = devices.read_most(pod)
    problem = problem or next(filter(None, map(gpus.find_claim_excess, asks)), None)
    gpu = asks[0] if asks else None
    # KAI refuses a pod that requests cards in both ways.
    share, refusal = (None, None) if gpu else _read_share(pod)
    refusal = refusal or neutral_shares.refuse_untranslated(asked)
    spec = pod.spec
    nodes = (spec.affinity and spec.affinity.node_affinity) or wire.NodeAffinity()
    required = nodes.required_during_scheduling_ignored_during_execution
    node_terms = None if required is None else required.node_selector_terms or ()
    problems = [one for one in (problem, refusal) if one is not None]
    terms = affinity.read_rules(spec.affinity, problems)
    constraints = spread.read_own_constraints(spec.topology_spread_constraints, problems)
    template = PodTemplate(
        requests=asked,
        ports=requests.list_host_ports(spec),
        selector=tuple(sorted((spec.node_selector or {}).items())),
        required=None if node_terms is None else selectors.read_node_terms(node_terms),
        node_names=None if node_terms is None else selectors.list_node_names(node_terms),
        preferred=_read_preferred(nodes, problems),
        **terms._asdict(),
        spread=constraints,
        images=images.list_names(spec),
        tolerations=tuple(
            sorted(
                {(t.key, t.operator or "Equal", t.value, t.effect) for t in spec.tolerations or ()}
            )
        ),
        features=features.list_features(spec),
        gpu=gpu,
        most=gpu.containers if gpu else (),
        size=gpus.find_size(gpu),
        more=(),
        share=share,
        steering=_list_steering(pod.metadata.annotations or {}),
        kinds=(
            *(
                gpus.ContainerKind.SIDECAR
                if c.restart_policy == "Always"
                else gpus.ContainerKind.INIT
                for c in spec.init_containers or ()
            ),
            *(gpus.ContainerKind.APP for _ in spec.containers),
        ),
        extended=read_wanted(spec),
        problem=problems[0] if problems else None,
        scopes=scopes,
        words=words,
    )
    return _add_more(template, asks)


def list_asks(template: PodTemplate) -> tuple[gpus.GpuAsk, ...]:
    """List what a pod asks of each family of devices."""
    return tuple(part.gpu for part in template.list_by_family() if part.gpu is not None)


def give_asks(template: PodTemplate, asks: tuple[gpus.GpuAsk, ...]) -> PodTemplate:
    """Return a template that asks for these devices, one at least, and for nothing else of devices."""
    first = asks[0]
    return _add_more(
        replace(
            template,
            gpu=first,
            most=first.containers,
            size=gpus.find_size(first),
            more=(),
            share=None,
        ),
        asks,
    )


def _add_more(template: PodTemplate, asks: tuple[gpus.GpuAsk, ...]) -> PodTemplate:
    """Add what a template asks of each family after the first."""
    if len(asks) < 2:
        return template
    more = tuple(
        replace(template, gpu=one, most=one.containers, size=gpus.find_size(one))
        for one in asks[1:]
    )
    return replace(template, more=more)


def _read_share(pod: wire.Pod) -> tuple[kai_shares.Share | None, Mistake | None]:
    """Read KAI's share of cards, and why a pod with it is not placed."""
    try:
        share = kai_shares.read_share(pod.metadata.annotations or {})
    except BadInput as error:
        return kai_shares.UNREADABLE, error.mistake
    return share, None if share is None else kai_shares.refuse_share(share)


def _read_preferred(
    nodes: wire.NodeAffinity, problems: list[Mistake]
) -> tuple[tuple[int, NodeTerm], ...]:
    """Read weights and terms; if one cannot be read, none counts, as in kube-scheduler, and a problem is added."""
    found = []
    given = nodes.preferred_during_scheduling_ignored_during_execution or ()
    try:
        for i, one in enumerate(given):
            term = one.weight and one.preference
            where = f"{_PREFERRED}[{i}].preference"
            if term and (read := selectors.read_node_term(term, where)):
                found.append((one.weight, read))
    except BadInput as error:
        problems.append(error.mistake)
        return ()
    return tuple(found)


def _list_steering(annotations: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((k, annotations[k]) for k in names.STEERING.intersection(annotations)))
