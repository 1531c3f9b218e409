"""Answers whether pods fit, where, why not, and what would help them. Nothing here places a pod."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial

import numpy as np

from scheduler.api.door.decisions import Barriers, Diagnosis, Hold
from scheduler.api.pods import gpus
from scheduler.disruption import protectors
from scheduler.disruption.attempts import Attempts, Made
from scheduler.disruption.group_units import preempts
from scheduler.disruption.promises import Promises
from scheduler.modes.demand_tables import Counts
from scheduler.modes.learning import Learner
from scheduler.placing.groups import capacity
from scheduler.placing.groups.bounds import Bounds
from scheduler.placing.groups.domains import Domains
from scheduler.placing.rooms import Rooms
from scheduler.plugins import barriers, table
from scheduler.plugins.claims import offers
from scheduler.plugins.contract import Asked, Hint
from scheduler.schema import columns as c
from scheduler.shapes import diagnosis
from scheduler.shapes.boards import Boards, Key, Shape
from scheduler.shapes.keys import Keys
from scheduler.shapes.policies import PolicyBook
from scheduler.shapes.withheld import Withheld
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity, make_anew
from scheduler.state.pods import PodRecord

# A pod with so many words takes twice the time of a pod without any, the first time that the cycle decides for it.
_WORDS_A_UNIT = 64
# The choice of so many cards takes as long again, every time; no pod that is meant to run asks for so many.
_CARDS_A_UNIT = 64


class Answers:
    """Answers questions about pods and nodes, and leaves the cluster as it was.

    ``Cycle`` places pods with the same shapes and boards. Code that is given an ``Answers`` can ask but not place.
    """

    def __init__(self, cluster: Cluster, policies: PolicyBook, known: Counts | None = None) -> None:
        """With ``known`` the demand is given and not learnt."""
        self._cluster = cluster
        self._policies = policies
        self.learner = Learner(cluster, known)
        self.boards = Boards(cluster, self.learner)
        self.keys = Keys(cluster, policies, self.boards.sizes)
        self._rooms = Rooms(cluster, self.boards, self.learner)
        self.promises = Promises(cluster, self.boards, self.keys, self._rooms)
        self.attempts = Attempts(cluster, self.boards, self.promises)
        self._domains = Domains(cluster)
        self._bounds = Bounds(
            cluster,
            self._domains,
            partial(self._count_places, beside=None),
            self._make_counter,
            self._needs_only_amounts,
            self.promises.tell_yielding,
        )

    def learn(self, *, anew: bool = False) -> bool:
        """Learn the demand from the pods seen, if enough came or went (or ``anew``); return whether scores changed.

        Call this between batches, never within one.
        """
        return self.learner.learn_demand(anew=anew)

    def find_barriers(self, pod: PodRecord, rows: c.Ints | None) -> Barriers | None:
        """Find what keeps a pending pod off some node rows (None: off all nodes); None when it fits on one of them.

        A pod that itself must be mended first has empty barriers: no change of a node helps it.
        """
        self._begin()
        key = self._make_key(pod)
        if key is None:
            return Barriers()
        if key.refusal is not None:
            return barriers.find_barriers(key.refusal)
        asked = diagnosis.list_rows(self._cluster) if rows is None else rows
        if self.boards.has(key):
            shape = self._get_live_shape(key, pod)
            self.boards.refresh(shape)
            bits = self.find_refusals(shape, asked)
        else:
            # No board is made here: the shapes of thousands of waiting pods would displace those in use.
            bits = self.boards.find_refusals(self.boards.make_unscored(key), asked)
            if key.yields is not None:
                bits |= self.promises.find_refusals(pod, asked, len(bits))
        return None if (bits[0] == 0).any() else barriers.read_barriers(bits)

    def could_place(self, pod: PodRecord) -> bool:
        """Whether a pending pod fits on any node now."""
        return self.find_barriers(pod, None) is None

    def fits_nominated(self, pod: PodRecord) -> bool:
        """Whether a pending pod now fits on the node that it is nominated to.

        The promised room counts for this pod alone, so ``could_place`` for another pod of its kind is no answer.
        """
        self._begin()
        key = self._make_key(pod)
        row = self._cluster.nodes.find_row(self._cluster.nominations.find_node(pod.uid))
        return key is not None and row >= 0 and self._fits_own(key, pod, row) is not None

    def could_take(self, pod: PodRecord) -> bool:
        """Whether a pending pod that does not fit where it is nominated should be tried again, as it could preempt.

        That includes a nominated pod whose victims no longer make the promised room: it has to lose its nomination or
        find other room.
        """
        self._begin()
        key = self._make_key(pod)
        if key is None or not (pod.preempts and self._policies.preempts(pod)):
            return False
        if self._cluster.nominations.find_node(pod.uid):
            return not self.attempts.awaits_victims(pod, key)
        return self.attempts.could_make_room(pod, key)

    def try_to_make_room(self, pod: PodRecord, why: Diagnosis | None) -> Made | None:
        """Find victims for a pod that fits nowhere, and evict none; None when its profile does not preempt."""
        self._begin()
        key = self._make_key(pod) if self._policies.preempts(pod) else None
        return None if key is None else self.attempts.try_to_make_room(pod, key, why)

    def explain_hold(self, pod: PodRecord) -> Hold | None:
        """Explain why a pending pod fits nowhere now; None when it fits somewhere, or could preempt."""
        shape, key = self.get_unscored(pod), self._make_key(pod)
        if shape is None or key is None:
            return Hold(pod.uid, problem=self.keys.find_problem(pod))
        rows = diagnosis.list_rows(self._cluster)
        bits = self.boards.find_refusals(shape, rows)
        if key.yields is not None:
            bits |= self.promises.find_refusals(pod, rows, len(bits))
        if (bits[0] == 0).any():
            return None
        why = self._explain(shape, rows, bits)
        if not self._policies.preempts(pod):
            return Hold(pod.uid, why)
        # Asking all nodes for victims takes too long for a mere text. A pod that finds victims is tried and needs none.
        made = (
            self.attempts.try_to_make_room(pod, key, why)
            if self.attempts.is_cheap(pod, key)
            else None
        )
        return Hold(pod.uid, why, attempt=made.attempt) if made and made.evict is None else None

    def could_place_group(self, entity: Entity) -> bool:
        """Whether a group may fit now, or could make room; False only if it certainly could not."""
        self._begin()
        if self._bounds.could_fit(entity):
            return True
        return self.attempts.has_lower(entity.priority)

    def list_takers(self, groups: Sequence[Entity], rows: c.Ints | None) -> list[Entity]:
        """List the groups of one priority that could make room, for a pod on one of some rows [n] too; None: on any."""
        self._begin()
        groups = [one for one in groups if preempts(one, self._policies.preempts)]
        if not groups:
            return []
        table = self._cluster.ledger.pods.columns
        may_go = protectors.find_outranked(self._cluster, groups[0].priority) & (table.node >= 0)
        return self._bounds.list_fitting_without(groups, rows, np.flatnonzero(may_go))

    def could_start_anew(self, entity: Entity) -> bool:
        """Whether a group may fit as a whole once its pods have left their nodes; False only if it certainly would not."""
        self._begin()
        with self._cluster.trial() as trial:
            there = (pod.uid for leaf in entity.team.list_leaves() for pod in leaf.there)
            trial.take_away(*there)
            return self._bounds.could_fit(make_anew(entity))

    def list_hints(self, pod: PodRecord, found: Barriers) -> list[Hint]:
        """List what could help a pod that these barriers keep off nodes."""
        key = self._make_key(pod)
        if key is None:
            return []
        asked = Asked(key.template, key.placement, key.view.storage, key.view.claims)
        return barriers.list_hints(asked, key.view.needs, found)

    def find_objection(self, pod: PodRecord, node: str) -> str:
        """Say why the labels, taints and other words of a node now keep a pod off it; empty when they do not."""
        nodes = self._cluster.nodes
        asked = Asked(pod.template, self._policies.resolve(pod).placement)
        return table.find_objection(asked, nodes, nodes.find_row(node))

    def asks_all(self, pod: PodRecord) -> bool:
        """Whether all filters judge a pod: its profile disables none."""
        return self._policies.resolve(pod).placement.plugins is None

    def is_wide(self, pod: PodRecord) -> bool:
        """Whether a change on one node may let a pod fit on another node."""
        return self.keys.views.make_view(pod, self._policies.resolve(pod).placement).is_wide

    def estimate_cost(self, pod: PodRecord) -> int:
        """Estimate what deciding for a pod costs beyond the usual: by its cards and, unless its shape is live, its words.

        What selectors of claims may cost counts each time: it has to be known before they are evaluated.
        """
        if (cost := self._cluster.claims.estimate_cost(pod)) > 0:
            return cost
        key = self._make_key(pod)
        if key is None:
            return 0
        template = pod.template
        picking = gpus.count_picks(template.gpu) // _CARDS_A_UNIT
        if self.boards.has(key):
            return picking
        return picking + 1 + template.words // _WORDS_A_UNIT

    def find_likeness(self, pod: PodRecord) -> Hashable:
        """Find what pods have in common of which the first one alone costs more than the usual."""
        return id(pod.template), *map(id, self._cluster.claims.list_shapes(pod))

    def find_kind(self, pod: PodRecord) -> Hashable:
        """Return the kind of a pod: equal for pods that fit the same nodes, or are held for the same mistake."""
        placement = self._policies.resolve(pod).placement
        view, problem = self.keys.views.make_view(pod, placement), self.keys.find_problem(pod)
        # The priority is part of the kind even while no pod is nominated: so a nomination does not split any kind.
        urgency = pod.priority, pod.preempts
        return pod.template, placement, view, problem, urgency, self.promises.tell_apart(pod)

    @property
    def version(self) -> Hashable:
        """A version of the cluster: while it is equal, an unchanged pod without storage keeps its kind."""
        cluster = self._cluster
        seen = cluster.terms.version, cluster.peers.version, cluster.nodes.label_keys_version
        return *seen, self.promises.version

    @property
    def meets_others(self) -> bool:
        """Whether pods on nodes have terms about other pods: then the waiting pods that these select may change."""
        return self._cluster.terms.has_owners

    def get_shape(self, pod: PodRecord) -> Shape | None:
        """Return the live shape of a pod; None when something on the pod must be mended first."""
        self._begin()
        key = self._make_key(pod)
        return None if key is None else self._get_live_shape(key, pod)

    def get_unscored(self, pod: PodRecord) -> Shape | None:
        """Return a shape of a pod without a board, which is not kept; None when the pod must be mended first.

        It is for questions, after which no pod is placed.
        """
        self._begin()
        key = self._make_key(pod)
        return None if key is None else self.boards.make_unscored(key)

    def find_refusals(self, shape: Shape, rows: c.Ints) -> c.Ints:
        """Return [W, n] why a live shape does not fit on n rows.

        Its board alone does not tell enough: it names no reason that lies in the words of a node.
        """
        bits = self.boards.find_refusals(shape, rows)
        if shape.withheld is not None:
            bits |= shape.withheld.bits[:, rows]
        return bits

    def _begin(self) -> None:
        """Bring the ranks of the nodes and the learnt demand up to date; neither changes until the call ends."""
        self._cluster.claims.flush()
        offers.refresh(self._cluster)
        self._cluster.nodes.refresh_ranks()
        if not self.learner.fits_nodes():
            self.learner.learn_demand()

    def _make_key(self, pod: PodRecord) -> Key | None:
        key = self.keys.make_key(pod)
        if key is None or not self.promises.are_any:
            return key
        return key._replace(yields=self.promises.tell_yielding(pod))

    def _get_live_shape(self, key: Key, pod: PodRecord) -> Shape:
        """Return the live shape of a pod, with the room noted that is promised to other pods that come first."""
        shape = self.boards.get_shape(key)
        if key.yields is not None:
            if shape.withheld is None:
                shape.withheld = Withheld(table.count_words(key.template))
            self.promises.withhold(shape.withheld, pod, wide=key.view.is_wide)
        return shape

    def _fits_own(self, key: Key, pod: PodRecord, row: int) -> Shape | None:
        """Return the pod's shape if it fits on the row that it is nominated to, beside others nominated there."""
        shape = self.boards.make_unscored(key._replace(yields=None))
        fits = not self.promises.judge_alone(pod, shape, np.array([row], np.int64))[0, 0]
        if fits and self.promises.leaves_room(pod, np.array([row], np.int64), but=pod.uid):
            return shape
        return None

    def _needs_only_amounts(self, pod: PodRecord) -> bool:
        """Whether no rule about other pods or volumes decides where a pod fits."""
        key = self._make_key(pod)
        if key is None or key.view.storage is not None:
            return False
        shape = self._get_live_shape(key, pod)
        # Only a shape that is up to date knows what is counted for it.
        self.boards.refresh(shape)
        return not len(shape.counted)

    def _count_places(self, pod: PodRecord, beside: PodRecord | None) -> c.Ints:
        """Count [N] how many pods like one fit on each node at most, if there is given, beside another pod."""
        key = self._make_key(pod)
        if key is None or key.refusal is not None:
            return np.zeros(self._cluster.nodes.capacity, np.int64)
        shape = self._get_live_shape(key, pod)
        self.boards.refresh(shape)
        other = None if beside is None else self.get_unscored(beside)
        return capacity.count_fitting(self._cluster, shape, None if other is None else other.ask)

    def _make_counter(self, pod: PodRecord) -> Callable[[], c.Ints]:
        """Make a function that counts [N] how many pods like one fit on each node at most, by the amounts at its call."""
        key = self._make_key(pod)
        if key is None or key.refusal is not None:
            none = np.zeros(self._cluster.nodes.capacity, np.int64)
            return lambda: none
        shape = self._get_live_shape(key, pod)
        self.boards.refresh(shape)
        return partial(capacity.count_by_amounts, self._cluster, shape)

    def _explain(self, shape: Shape, rows: c.Ints, bits: c.Ints) -> Diagnosis:
        judged = diagnosis.gather_refusals(
            self._cluster, shape, self.boards.get_world(shape), rows, bits
        )
        return diagnosis.sum_up_reasons(judged)
