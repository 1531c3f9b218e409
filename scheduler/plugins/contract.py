"""A rule: one value that holds everything that the scheduler must know about the rule.

A rule may do any of four things. For each it declares which properties of the pod it reads, so that pods with equal
properties share the answer:

- ``filter``: refuse nodes by what their objects say alone (labels, taints);
- ``score``: prefer nodes by what their objects say alone;
- ``row``: evaluate a node by what is charged to it, in a kernel that knows the rule by a number;
- ``domain``: evaluate nodes by counts of pods in domains of nodes; one kernel reads the counts for all rules.

Rules read columns and fill rows. They get no client and no clock, and keep nothing from one pod to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple, Protocol

import numpy as np

from scheduler.api.door.decisions import Detail
from scheduler.api.kube_plugins import KubePlugins
from scheduler.api.placement import Placement
from scheduler.api.pods.affinity import Peers
from scheduler.api.pods.templates import PodTemplate, Whereabouts
from scheduler.api.selectors import Labels
from scheduler.plugins.claims.needs import Needs as Claimed
from scheduler.plugins.volumes.needs import Needs as Storage
from scheduler.schema import columns as c
from scheduler.schema import domains as of_domains
from scheduler.schema.world import World
from scheduler.state.cluster import Cluster
from scheduler.state.counting.classes import TermView
from scheduler.state.counting.counts import Figure
from scheduler.state.counting.peers import Controller
from scheduler.state.nodes import NodeTable


class Change(Enum):
    """Changes in a cluster after which a node may be acceptable to a pod that it was not acceptable to before."""

    ANY = auto()
    NODE_LABELS = auto()
    NODE_TAINTS = auto()
    NODE_DEVICES = auto()
    # A kubelet declares other features.
    NODE_FEATURES = auto()
    # A pod left a node, with what it held there.
    POD_LEFT = auto()
    # A claim, a volume, a class, a driver or its reported capacity was added or has changed.
    STORAGE = auto()
    # Devices of ResourceClaims became free; a ResourceSlice, a DeviceClass or a DeviceTaintRule came or has changed.
    CLAIMS = auto()


# The change, and what has changed: a label's name or its name and value, a port, a claim, a disk, a family of devices,
# a feature; None for any of these, or if the change alone says everything.
Trigger = tuple[Change, Hashable]
# Any change of a node.
ANYTHING: Trigger = (Change.ANY, None)
# A pod with storage came to a node or left it: other volumes are in use there.
VOLUMES_IN_USE: Trigger = (Change.STORAGE, "in use")


class Held(NamedTuple):
    """Pods that a rule keeps off nodes.

    Attributes:
        need: what a rule about other pods reads from them; None for other rules.
        short: the resources, with the requested amounts, of which some node has too little.
    """

    template: PodTemplate
    need: Any
    short: tuple[tuple[str, int], ...]


class Hint(NamedTuple):
    """When to evaluate pods again that a rule keeps off nodes; a node that is added always helps.

    The hint must contain every change that can end a refusal by the rule, because nothing else wakes these pods.

    Attributes:
        here: changes that may help them on the node where the change happens.
        anywhere: changes that may help them on any node.
        amounts: how much of a resource must be free on a node.
        came, left: a pod of these peers that comes to a node, or leaves one, may help them on any node.
        shunned: the pods as seen by terms of pods on nodes, if such a pod repels them and has to leave.
    """

    here: tuple[Trigger, ...] = ()
    anywhere: tuple[Trigger, ...] = ()
    amounts: tuple[tuple[str, int], ...] = ()
    came: tuple[Peers, ...] = ()
    left: tuple[Peers, ...] = ()
    shunned: TermView | None = None


class Reason(NamedTuple):
    """Why a node is refused, in kube-scheduler's text; ``resolvable``: an eviction could end the refusal."""

    text: str
    resolvable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Refuses nodes by what their objects say.

    Attributes:
        needs: the properties of a pod that it reads; None for a pod that the filter does not concern.
        refuses: takes these properties, the nodes and n of their rows; returns [n] whether each row is refused.
        lasting: whether it evaluates what a node is, and not a state that comes and goes.
        of_profile: used instead of ``needs``: what it reads from the pod's profile.
    """

    needs: Callable[[Whereabouts], Hashable | None]
    refuses: Callable[[Any, NodeTable, c.Ints], c.Flags]
    lasting: bool = True
    of_profile: Callable[[KubePlugins], Hashable | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Prefers nodes by what their objects say.

    Attributes:
        wants: the properties of a pod that it reads; None for a pod that the score does not concern.
        raw: takes these properties, the nodes and n of their rows; returns [n] raw scores of 0 or more.
        how: how raw scores become points 0..100: ``columns.AS_IS``, ``OF_MOST`` or ``LESS_OF_MOST``.
        weight: of the points, unless the profile says another.
        reads: a token of what it reads from all nodes together; while the token is the same, a node's raw score
            changes with the node's own object only. None: it reads nothing from other nodes.
        adds: what the profile of a pod prefers in addition, None for nothing; otherwise ``raw`` gets both.
    """

    wants: Callable[[PodTemplate], Hashable | None]
    raw: Callable[[Any, NodeTable, c.Ints], c.Ints]
    how: int
    weight: int
    reads: Callable[[NodeTable], Hashable] | None = None
    adds: Callable[[KubePlugins], Hashable | None] | None = None

    @property
    def idle(self) -> int:
        """The points of each node if all raw scores are 0."""
        return 100 if self.how == c.LESS_OF_MOST else 0


class Asked(NamedTuple):
    """One shape of pods, as rules read it: what these pods request, and how they are to be placed."""

    template: PodTemplate
    placement: Placement
    #: What rules read about its storage, None for pods without storage.
    storage: Storage | None = None
    #: What rules read about its ResourceClaims, None for pods without them.
    claims: Claimed | None = None


class Compiled(NamedTuple):
    """What a row rule passes to its kernel, by name.

    Attributes:
        parts: fields of ``columns.Ask``.
        rules: fields of ``Ask.rules``.
    """

    parts: Mapping[str, Any] = {}
    rules: Mapping[str, Any] = {}


class Points(NamedTuple):
    """The name of a score in explanations, and the score of a node.

    Attributes:
        raw: the raw score, before it is compared with the scores of other nodes; None if there is none.
        points: 0..100.
        weight: the weight of the points in the sum; 0 for a score that is not part of a sum.
    """

    name: str
    raw: float | None
    points: float
    weight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Evaluates a node by what is charged to it.

    Attributes:
        compile: makes what its kernel reads about the pod.
        prefers: makes fields of ``columns.Preferences``. Shapes with equal placement and equal accepted cards
            (``GpuAsk.accepted``) share these fields, so they must depend on nothing else of the pod.
        bit: the place in ``Ask.bits`` of the refusal bit that its kernel sets; -1 for a rule that refuses no node.
        points: makes the scores of a row on an up-to-date board.
        is_learning: whether the score of a compiled request depends on the demand that was learnt.
        draws_lots: whether it draws new lots for the nodes for every decision.
        totals: names the sums over pods that its kernel reads and that no node offers; called before ``compile``.
    """

    compile: Callable[[Asked, Cluster], Compiled]
    prefers: Callable[[Asked, Cluster], Mapping[str, Any]] | None = None
    bit: int = -1
    points: Callable[[Asked, c.Ask, c.Nodes, c.Board, int], tuple[Points, ...]] | None = None
    is_learning: Callable[[c.Ask], bool] | None = None
    draws_lots: Callable[[Asked], bool] | None = None
    totals: Callable[[Asked], tuple[str, ...]] | None = None


class Standing(NamedTuple):
    """A pod as rules about other pods read it: its labels decide which of these rules count it.

    ``controller``: API version, kind and name of the controller that created it. ``storage``, ``claims``: as in ``Asked``.
    """

    template: PodTemplate
    placement: Placement
    namespace: str
    labels: Labels
    controller: Controller | None
    storage: Storage | None = None
    claims: Claimed | None = None


class Mask(Protocol):
    """The nodes whose pods are counted; equal masks share one array."""

    def __hash__(self) -> int: ...

    def mark_rows(self, nodes: NodeTable) -> c.Flags:
        """Mark the rows [N] whose pods are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The number of pods in every domain of nodes, and what it means.

    Attributes:
        count: by node row; it changes as pods come and go. None: there is nothing to count.
        gain: what a pod of the shape adds to the domain of its node.
        key: the label whose values are the domains; empty: each node is a domain.
        counted: the nodes whose pods are counted; None: all nodes.
        kind: what the count means: ``columns.APART``, ``NEAR``, ``EVEN``, ``ROOM``, ``SPREAD``, ``SUM`` or ``POINTS``.
        reason: the place of the reason with which the rule refuses nodes because of the count.
        no_label: the place of the reason for nodes without the label.
        figures: other figures that the kernel reads, by ``columns.TALLY_*``.
    """

    count: Figure | None
    gain: int
    key: str = ""
    counted: Mask | None = None
    kind: int = of_domains.APART
    reason: int = 0
    no_label: int = 0
    figures: Mapping[int, int] = field(default_factory=dict)


def _is_always_wide(_: Any) -> bool:
    return True


def concerns_no_template(_: PodTemplate, __: Cluster) -> bool:
    """Return False: for a rule about properties of single pods, which templates do not show."""
    return False


def is_never_wide(_: Any) -> bool:
    """Return False: for a rule that evaluates each node by itself."""
    return False


class DomainScore(NamedTuple):
    """Prefers nodes by the counts of their domains.

    Attributes:
        how: how raw scores become points: ``columns.OF_BOTH`` or ``OF_SPAN``; ``AS_IS`` of ``POINTS``.
        weight: of the points, unless the profile says another.
    """

    how: int
    weight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """Evaluates nodes by counts of pods in domains of nodes.

    Attributes:
        concerns: whether it may concern pods of a template; an answer of False must hold until the version of the
            cluster's terms or groups changes.
        needs: the properties of a pod that it reads; None for a pod that it does not concern; None must hold as long.
        tallies: makes the counts for these properties.
        score: None if it prefers no node.
        is_wide: whether a change on one node can help a pod with these properties on another node.
    """

    concerns: Callable[[PodTemplate, Cluster], bool]
    needs: Callable[[Standing, Cluster], Hashable | None]
    tallies: Callable[[Any, Cluster], tuple[Tally, ...]]
    score: DomainScore | None = None
    is_wide: Callable[[Any], bool] = _is_always_wide


class Judged(NamedTuple):
    """Rows that one rule refuses, with everything from which texts are made. n rows, W words of bits."""

    asked: Asked
    ask: c.Ask
    cluster: Cluster
    world: World
    rows: c.Ints  # [n]
    bits: c.Ints  # [W, n]
    first: int = 0  # the rule's first bit


class RowReasons(NamedTuple):
    """Why n rows are refused. k = texts."""

    texts: tuple[str, ...]
    which: c.Flags  # [n, k] which of the texts hold for each row
    unresolvable: c.Flags  # [n] whether no eviction would help on the row


class Summary(NamedTuple):
    """Why n rows are refused, all rows together, as the message of a waiting pod says it.

    ``reasons`` are texts with the number of rows for which they hold; ``unresolvable`` is the number of rows where no
    eviction would help; ``details`` are the figures behind the reasons.
    """

    reasons: tuple[tuple[str, int], ...]
    unresolvable: int
    details: tuple[Detail, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule.

    Attributes:
        name: kube-scheduler's name of the rule, if kube-scheduler has the rule.
        reasons: why it refuses nodes, in the order in which it checks them; each reason has a refusal bit.
        tell: makes the texts for each shape or node; None: the texts of ``reasons``.
        sum_up: makes the summary of many rows, which come by rank; None: it counts how many rows have which text.
        lasting: finds the rows where no eviction would help; None: ``tell`` finds them fast enough.
        texts: all texts of ``tell`` and ``sum_up``, with ``{}`` for a name that they insert.
        hint: lists the changes that could end its refusals; None: any change of a node could.
        is_of_pod: whether it refuses all nodes or none because of the pod alone; its reason is reported once, not by node.
    """

    name: str
    reasons: tuple[Reason, ...] = ()
    filter: Filter | None = None
    score: Score | None = None
    row: Row | None = None
    domain: Domain | None = None
    tell: Callable[[Judged], RowReasons] | None = None
    sum_up: Callable[[Judged], Summary] | None = None
    lasting: Callable[[Judged], c.Flags] | None = None
    texts: tuple[str, ...] = ()
    hint: Callable[[Held], Hint] | None = None
    is_of_pod: bool = False


def make_fixed_reasons(reasons: tuple[Reason, ...], which: c.Flags) -> RowReasons:
    """Make the reasons of n rows from fixed texts; ``which`` [n, reasons]: whether each reason holds for each row."""
    lasting = np.array([not reason.resolvable for reason in reasons], np.bool_)
    unresolvable: c.Flags = np.logical_or.reduce(which & lasting, axis=1)
    return RowReasons(tuple(reason.text for reason in reasons), which, unresolvable)


def count_texts(told: RowReasons) -> Summary:
    """Count how many rows have which text."""
    counts = zip(told.texts, told.which.sum(axis=0).tolist(), strict=True)
    return Summary(tuple((text, n) for text, n in counts if n), int(told.unresolvable.sum()))
