"""PodTopologySpread: pods of one kind are spread evenly over zones, racks or nodes.

A pod without own constraints is spread among the pods of its Services and of its controller, by the constraints of its
profile or by kube-scheduler's default constraints. The defaults apply only if the pod's mode spreads load as well:
otherwise the pods of a Deployment could never be packed.

Source: kube-scheduler's podtopologyspread/common.go, filtering.go, scoring.go.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduler.api import names, selectors
from scheduler.api.placement import PACK, Mode
from scheduler.api.pods.affinity import Peers
from scheduler.api.pods.spread import SYSTEM_DEFAULTS, Constraint, Constraints
from scheduler.api.pods.templates import PodTemplate
from scheduler.api.pods.tolerations import TolerationKey
from scheduler.api.selectors import NodeTerm
from scheduler.plugins.contract import (
    Change,
    Domain,
    DomainScore,
    Held,
    Hint,
    Reason,
    Rule,
    Standing,
    Tally,
    Trigger,
)
from scheduler.plugins.rules import node_affinity, taints
from scheduler.schema import columns as c
from scheduler.schema import domains as of_domains
from scheduler.state.cluster import Cluster
from scheduler.state.nodes import NodeTable

# Modes that spread load; all other modes pack, or compare other things.
_SPREADING = frozenset({Mode.LEAST_ALLOCATED, Mode.BALANCED_ALLOCATION})
_NAME, _WEIGHT = "PodTopologySpread", 2
_UNEVEN, _NO_LABEL = 0, 1
_TEXT = "node(s) didn't match pod topology spread constraints"


class _Wherever(NamedTuple):
    """Nodes where a pod may go by its own specification: other nodes are not counted."""

    selector: tuple[tuple[str, str], ...] = ()
    required: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[TolerationKey, ...] | None = None


class _Counted(NamedTuple):
    """The nodes whose pods are counted: they have these labels, and the pod itself may go there."""

    keys: tuple[str, ...]
    by: _Wherever

    def mark_rows(self, nodes: NodeTable) -> c.Flags:
        """Mark the rows [N] whose pods are counted."""
        rows = np.arange(nodes.capacity)
        flags = np.ones(nodes.capacity, np.bool_)
        for key in self.keys:
            flags &= nodes.get_label_column(key) >= 0
        if self.by.selector or self.by.required is not None:
            asked = self.by.selector, self.by.required
            flags &= ~node_affinity.find_refused(asked, nodes, rows)
        if self.by.tolerations is not None:
            flags &= ~taints.find_refused(self.by.tolerations, nodes, rows)
        return flags


class _Spread(NamedTuple):
    """One constraint, with everything that it reads from a pod.

    Attributes:
        peers: which pods are counted; None: no pod, because the selector selects none.
        is_one: whether the selector selects the pod itself.
    """

    key: str
    max_skew: int
    min_domains: int
    peers: Peers | None
    is_one: bool
    counted: _Counted


class _Needs(NamedTuple):
    """The constraints of a pod.

    Attributes:
        is_strict: a node that lacks the label of one soft constraint gets no score; otherwise only this constraint
            does not score the node.
    """

    hard: tuple[_Spread, ...]
    soft: tuple[_Spread, ...]
    is_strict: bool


def _concerns(template: PodTemplate, cluster: Cluster) -> bool:
    return bool(template.spread or cluster.peers.are_there)


def _read_needs(pod: Standing, cluster: Cluster) -> _Needs | None:
    plugins, own = pod.placement.kube, pod.template.spread
    constraints = own or _deduce_constraints(pod, cluster)
    is_asked, counts = _NAME not in plugins.not_asked, plugins.find_weight(_NAME, _WEIGHT) > 0
    hard = tuple(one for one in constraints if one.hard and is_asked)
    soft = tuple(one for one in constraints if not one.hard and counts)
    if not (hard or soft):
        return None
    is_strict = bool(own or plugins.spread is not None)
    return _Needs(
        tuple(_make_spread(pod, one, hard) for one in hard),
        tuple(_make_spread(pod, one, soft if is_strict else ()) for one in soft),
        is_strict,
    )


def _deduce_constraints(pod: Standing, cluster: Cluster) -> Constraints:
    """Deduce the constraints of a pod that has no constraints of its own."""
    defaults = pod.placement.kube.spread
    if defaults is None:
        defaults = SYSTEM_DEFAULTS if _spreads_load(pod) else ()
    if not (defaults and cluster.peers.are_there):
        return ()
    selector = cluster.peers.find_selector(pod.namespace, pod.labels, pod.controller)
    if selector == selectors.EVERYTHING:
        return ()
    # kube-scheduler replaces the selector, which would have the labels of these keys.
    return tuple(one._replace(selector=selector, label_keys=()) for one in defaults)


def _spreads_load(pod: Standing) -> bool:
    """Whether the pod's mode or node policy spreads load."""
    placement = pod.placement
    if placement.is_kube:
        return True
    if placement.node_policy:
        return False
    if placement.mode == Mode.KEEL:
        return not pod.template.gpu and placement.objective != PACK
    return placement.mode in _SPREADING


def _make_spread(pod: Standing, one: Constraint, together: tuple[Constraint, ...]) -> _Spread:
    peers, template = one.find_peers(pod.namespace, pod.labels), pod.template
    by = _Wherever(
        *((template.selector, template.required) if one.honors_affinity else ((), None)),
        template.tolerations if one.honors_taints else None,
    )
    return _Spread(
        key=one.topology_key,
        max_skew=one.max_skew,
        min_domains=one.min_domains,
        peers=None if peers.selector == selectors.EVERYTHING else peers,
        is_one=peers.selector.matches(pod.labels),
        counted=_Counted(tuple(sorted({other.topology_key for other in together})), by),
    )


def _list_tallies(needs: _Needs, cluster: Cluster) -> tuple[Tally, ...]:
    return (
        *(_make_hard_tally(one, cluster) for one in needs.hard),
        *(_make_soft_tally(one, cluster, is_strict=needs.is_strict) for one in needs.soft),
    )


def _make_hard_tally(one: _Spread, cluster: Cluster) -> Tally:
    return Tally(
        kind=of_domains.EVEN,
        count=cluster.terms.count_peers((one.peers,), with_deleting=False) if one.peers else None,
        gain=int(one.is_one and one.peers is not None),
        key=one.key,
        counted=one.counted,
        reason=_UNEVEN,
        no_label=_NO_LABEL,
        figures={
            of_domains.TALLY_SELF: int(one.is_one),
            of_domains.TALLY_SKEW: one.max_skew,
            of_domains.TALLY_LEAST: one.min_domains,
        },
    )


def _make_soft_tally(one: _Spread, cluster: Cluster, *, is_strict: bool) -> Tally:
    """Make the tally of a soft constraint. If each node is a domain, the pods of all nodes are counted."""
    by_node = one.key == names.HOSTNAME
    return Tally(
        kind=of_domains.SPREAD,
        count=cluster.terms.count_peers((one.peers,), with_deleting=False) if one.peers else None,
        gain=int(one.is_one and one.peers is not None),
        key=one.key,
        counted=None if by_node else one.counted,
        figures={
            of_domains.TALLY_SKEW: one.max_skew,
            of_domains.TALLY_BY_NODE: int(by_node),
            of_domains.TALLY_STRICT: int(is_strict),
        },
    )


def _make_hint(held: Held) -> Hint:
    """A counted pod comes or goes, a domain comes or goes, or the set of counted nodes changes."""
    hard: tuple[_Spread, ...] = held.need.hard
    triggers: list[Trigger] = []
    for one in hard:
        keys = (one.key, *one.counted.keys)
        keys += tuple(_read_label(one) for one in node_affinity.list_triggers(*one.counted.by[:2]))
        triggers += [(Change.NODE_LABELS, key) for key in keys]
        if one.counted.by.tolerations is not None:
            triggers.append((Change.NODE_TAINTS, None))
    counted = tuple(one.peers for one in hard if one.peers is not None)
    return Hint(anywhere=tuple(dict.fromkeys(triggers)), came=counted, left=counted)


def _read_label(trigger: Trigger) -> str:
    """Read the label of a trigger without its value: a node that is no longer counted can help too."""
    about = trigger[1]
    return about[0] if isinstance(about, tuple) else str(about)


RULE = Rule(
    name=_NAME,
    reasons=(
        Reason(_TEXT),
        Reason(f"{_TEXT} (missing required label)", resolvable=False),
    ),
    domain=Domain(
        concerns=_concerns,
        needs=_read_needs,
        tallies=_list_tallies,
        score=DomainScore(how=c.OF_BOTH, weight=_WEIGHT),
    ),
    # A pod that comes to another domain helps too: it may fill the emptiest domain.
    hint=_make_hint,
)
