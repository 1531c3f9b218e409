"""What a rule is: one value that says all that the scheduler has to know of it.

A rule may do any of four things, and says of each what it needs of the pod, so that pods that need the same
share the answer:

- ``filter``: refuse nodes by their words alone (labels, taints);
- ``score``: prefer nodes by their words alone;
- ``row``: judge or score a node by what is charged to it, in a kernel that knows the rule by a number;
- ``domain``: judge or score nodes by what is counted of pods in domains of nodes, with tallies that one
  kernel reads for all rules.

Rules see columns and fill rows. They get no client, no clock, and keep nothing from one pod to the next.
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
from scheduler.plugins.volumes.needs import Needs as Storage
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.counting.classes import Seen
from scheduler.state.counting.counts import Figure
from scheduler.state.counting.groups import Controller
from scheduler.state.nodes import NodeTable


class Change(Enum):
    """What may happen in a cluster that makes a node acceptable to a pod it was not acceptable to before."""

    ANY = auto()
    NODE_LABELS = auto()
    NODE_TAINTS = auto()
    NODE_DEVICES = auto()
    # A kubelet declares other features.
    NODE_FEATURES = auto()
    # A pod left a node, with what it held there.
    POD_LEFT = auto()
    # A claim, a volume, a class, a driver or what is told of its room is there or another.
    STORAGE = auto()


# What happened, and to what: a label's name or its name and value, a port, a claim, a disk, a family of devices, a
# feature; None for any, or where the change says all.
Trigger = tuple[Change, Hashable]
# Whatever happens on a node.
ANYTHING: Trigger = (Change.ANY, None)
# A pod with storage came to a node or left it: other volumes are in use there.
VOLUMES_IN_USE: Trigger = (Change.STORAGE, "in use")


class Held(NamedTuple):
    """Pods that a rule keeps off nodes.

    Attributes:
        need: what a rule about other pods needs of them; None of other rules.
        short: the resources, with the amounts asked, of which some node has too little.
    """

    template: PodTemplate
    need: Any
    short: tuple[tuple[str, int], ...]


class Hint(NamedTuple):
    """When pods that a rule keeps off nodes are to be looked at again; a node that is added always helps.

    Whatever ends a refusal by the rule must be among it: nobody else wakes these pods.

    Attributes:
        here: what may help them on the node where it happens.
        anywhere: what may help them on any node.
        amounts: resources of which so much must be free on a node.
        came, left: among whom a pod must come to a node, or leave one, to help them on any.
        shunned: as terms of pods on nodes see them, where one of these keeps them away, and has to leave.
    """

    here: tuple[Trigger, ...] = ()
    anywhere: tuple[Trigger, ...] = ()
    amounts: tuple[tuple[str, int], ...] = ()
    came: tuple[Peers, ...] = ()
    left: tuple[Peers, ...] = ()
    shunned: Seen | None = None


class Reason(NamedTuple):
    """Why a node is refused, in kube-scheduler's words; ``resolvable``: were pods evicted, it might not be."""

    text: str
    resolvable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Refuses nodes by their words.

    Attributes:
        needs: what it needs of the pod, None when it has nothing to do for it.
        refuses: of that, the nodes and n of their rows: [n] whether each is refused.
        lasting: it judges what a node is; else a state of it that comes and goes.
        of_profile: in the place of ``needs``, what it needs of the pod's profile.
    """

    needs: Callable[[Whereabouts], Hashable | None]
    refuses: Callable[[Any, NodeTable, c.Ints], c.Flags]
    lasting: bool = True
    of_profile: Callable[[KubePlugins], Hashable | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Prefers nodes by their words.

    Attributes:
        wants: what it needs of the pod, None when it has nothing to do for it.
        raw: of that, the nodes and n of their rows: [n] raw scores of 0 or more.
        how: how raw scores become points 0..100: ``columns.AS_IS``, ``OF_MOST`` or ``LESS_OF_MOST``.
        weight: of the points, unless the profile says another.
        reads: a token of what it reads of all nodes together; while that is the same, a node's raw score
            changes with its own words only. None: it reads nothing else.
        adds: what the profile of a pod prefers on top, None for nothing; if there is one ``raw`` is given both.
    """

    wants: Callable[[PodTemplate], Hashable | None]
    raw: Callable[[Any, NodeTable, c.Ints], c.Ints]
    how: int
    weight: int
    reads: Callable[[NodeTable], Hashable] | None = None
    adds: Callable[[KubePlugins], Hashable | None] | None = None

    @property
    def idle(self) -> int:
        """Points of every node where all raw scores are 0."""
        return 100 if self.how == c.LESS_OF_MOST else 0


class Asked(NamedTuple):
    """One shape of pods, as rules see it: what pods of it ask, and how they shall be placed."""

    template: PodTemplate
    placement: Placement
    #: What rules need of its storage, None for pods that have none.
    storage: Storage | None = None


class Compiled(NamedTuple):
    """What a row rule gives its kernel: parts of ``columns.Ask`` and figures of ``Ask.rules``, by name."""

    parts: Mapping[str, Any]
    rules: Mapping[str, Any] = {}


class Points(NamedTuple):
    """What a score is called in explanations, and what a node has of it.

    Attributes:
        raw: as the rule counts it, before it is compared with that of other nodes; None where it is not counted.
        points: 0..100.
        weight: of the points in the sum; 0 for a score that is no part of one.
    """

    name: str
    raw: float | None
    points: float
    weight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Judges or scores a node by what is charged to it.

    Attributes:
        compile: what its kernel needs of the pod.
        bit: the place in ``Ask.bits`` of the refusal bit that its kernel sets; -1 when it refuses nothing.
        points: the scores of a row on an up-to-date board.
        is_learning: whether what it says of a compiled request depends on the demand that was learnt.
        draws_lots: whether it draws the nodes' lots anew for every decision.
        totals: what its kernel reads that pods add up to and no node offers; asked before ``compile``.
    """

    compile: Callable[[Asked, Cluster], Compiled]
    bit: int = -1
    points: Callable[[Asked, c.Ask, c.Nodes, c.Board, int], tuple[Points, ...]] | None = None
    is_learning: Callable[[c.Ask], bool] | None = None
    draws_lots: Callable[[Asked], bool] | None = None
    totals: Callable[[Asked], tuple[str, ...]] | None = None


class Standing(NamedTuple):
    """A pod as rules about other pods see it: its labels tell which of them it is among.

    ``controller``: API version, kind and name of what made it. ``storage``: as in ``Asked``.
    """

    template: PodTemplate
    placement: Placement
    namespace: str
    labels: Labels
    controller: Controller | None
    storage: Storage | None = None


class Mask(Protocol):
    """Which nodes' pods are counted; equal ones are made once."""

    def __hash__(self) -> int: ...

    def flags(self, nodes: NodeTable) -> c.Flags:
        """[N] whether the pods of each row are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """A count of pods in every domain of nodes, and what it means.

    Attributes:
        count: by node row; it changes as pods come and go. None: there is nothing to count.
        gain: what a pod of the shape adds where it goes.
        key: the label whose values are domains; empty: each node is one.
        counted: whose pods are counted; None: those of all nodes.
        kind: what the count means: ``columns.APART``, ``NEAR``, ``EVEN``, ``ROOM``, ``SPREAD``, ``SUM`` or ``POINTS``.
        reason: which of the rule's reasons refuses nodes for it.
        no_label: which refuses nodes without the label.
        figures: more that the kernel reads, by ``columns.TALLY_*``.
    """

    count: Figure | None
    gain: int
    key: str = ""
    counted: Mask | None = None
    kind: int = c.APART
    reason: int = 0
    no_label: int = 0
    figures: Mapping[int, int] = field(default_factory=dict)


def _always(_: Any) -> bool:
    return True


def nothing_of_templates(_: PodTemplate, __: Cluster) -> bool:
    """For a rule that is about what is a pod's own: templates do not tell whom it concerns."""
    return False


def never(_: Any) -> bool:
    """For a rule that is about nodes by themselves."""
    return False


class DomainScore(NamedTuple):
    """Prefers nodes by what is counted in their domains.

    Attributes:
        how: how raw scores become points: ``columns.OF_BOTH`` or ``OF_SPAN``; ``AS_IS`` of ``POINTS``.
        weight: of the points, unless the profile says another.
    """

    how: int
    weight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """Judges or scores nodes by what is counted in domains of nodes.

    Attributes:
        concerns: whether it may have anything to do for pods of a template; False must hold until the
            version of the cluster's terms or of its groups is another.
        needs: what it needs of the pod, None when it has nothing to do for it. Likewise.
        tallies: of that.
        score: None when it prefers nothing.
        is_wide: whether a change on one node can help a pod on another, of a pod that needs this of it.
    """

    concerns: Callable[[PodTemplate, Cluster], bool]
    needs: Callable[[Standing, Cluster], Hashable | None]
    tallies: Callable[[Any, Cluster], tuple[Tally, ...]]
    score: DomainScore | None = None
    is_wide: Callable[[Any], bool] = _always


class Judged(NamedTuple):
    """Rows that one rule refuses, with what there is to tell why. n rows, W words of bits."""

    asked: Asked
    ask: c.Ask
    cluster: Cluster
    scratch: c.Scratch
    rows: c.Ints  # [n]
    bits: c.Ints  # [W, n]
    first: int = 0  # the rule's first bit


class Told(NamedTuple):
    """Why n rows are refused. k = texts."""

    texts: tuple[str, ...]
    which: c.Flags  # [n, k] which of them hold for each row
    unresolvable: c.Flags  # [n] no eviction would help there


class Summary(NamedTuple):
    """Why n rows are refused, all together: what a pod that waits is told.

    ``reasons`` are texts and for how many rows they hold; ``unresolvable`` is for how many no eviction would
    help; ``details`` are the figures behind the reasons.
    """

    reasons: tuple[tuple[str, int], ...]
    unresolvable: int
    details: tuple[Detail, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule.

    Attributes:
        name: as kube-scheduler calls it, where it has it.
        reasons: why it refuses, in the order in which it looks; each has a refusal bit.
        tell: where the texts are made for each shape or node, instead of ``reasons``.
        sum_up: where there is more to say of many rows than how many gave which text; rows come by rank.
        lasting: which of the rows no eviction would help, where ``tell`` takes long to say so.
        texts: what ``tell`` and ``sum_up`` may say, with ``{}`` for a name that they put in.
        hint: what could make it accept a node that it refuses to pods; None: whatever happens on a node.
        is_of_pod: it refuses all nodes or none, for what the pod says by itself: told once, and not by node.
    """

    name: str
    reasons: tuple[Reason, ...] = ()
    filter: Filter | None = None
    score: Score | None = None
    row: Row | None = None
    domain: Domain | None = None
    tell: Callable[[Judged], Told] | None = None
    sum_up: Callable[[Judged], Summary] | None = None
    lasting: Callable[[Judged], c.Flags] | None = None
    texts: tuple[str, ...] = ()
    hint: Callable[[Held], Hint] | None = None
    is_of_pod: bool = False


def fixed(reasons: tuple[Reason, ...], which: c.Flags) -> Told:
    """What there is to tell where the texts are always the same; ``which`` [n, reasons]."""
    lasting = np.array([not reason.resolvable for reason in reasons], np.bool_)
    unresolvable: c.Flags = np.logical_or.reduce(which & lasting, axis=1)
    return Told(tuple(reason.text for reason in reasons), which, unresolvable)


def summary(told: Told) -> Summary:
    """How many rows gave which text."""
    counts = zip(told.texts, told.which.sum(axis=0).tolist(), strict=True)
    return Summary(tuple((text, n) for text, n in counts if n), int(told.unresolvable.sum()))
