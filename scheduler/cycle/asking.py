"""What the cycle says of pods: whether they fit, where, why not, and what would help them. It places nothing."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from scheduler.api.door.decisions import Barriers, Diagnosis, Hold
from scheduler.api.pods import gpus
from scheduler.disruption.attempts import Attempts, Made
from scheduler.disruption.promises import Promises
from scheduler.modes.demand_tables import Counts
from scheduler.modes.learning import Learner
from scheduler.placing.rooms import Rooms
from scheduler.plugins import barriers, table
from scheduler.plugins.contract import Asked, Hint
from scheduler.schema import columns as c
from scheduler.shapes import diagnosis
from scheduler.shapes.boards import Boards, Key, Shape
from scheduler.shapes.keys import Keys
from scheduler.shapes.policies import PolicyBook
from scheduler.shapes.withheld import Withheld
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

# A pod that says so much takes twice the time of one that says nothing, the first time it is decided for.
_WORDS_A_UNIT = 64
# Of so many cards the choice takes as long, every time; no pod written for a purpose asks as many.
_CARDS_A_UNIT = 64


class Answers:
    """Answers questions about pods and nodes; the cluster is afterwards as it was.

    ``Cycle`` places with the same shapes and boards. Whoever is handed ``Answers`` can ask and cannot place.
    """

    def __init__(self, cluster: Cluster, policies: PolicyBook, known: Counts | None = None) -> None:
        """With ``known`` the demand is not learnt but given."""
        self._cluster = cluster
        self._policies = policies
        self.learner = Learner(cluster, known)
        self.boards = Boards(cluster, self.learner)
        self.keys = Keys(cluster, policies, self.boards.sizes)
        self._rooms = Rooms(cluster, self.boards, self.learner)
        self.promises = Promises(cluster, self.boards, self.keys, self._rooms)
        self.attempts = Attempts(cluster, self.boards, self.promises)

    def learn(self, *, anew: bool = False) -> bool:
        """Learn from the pods seen, if enough came or went (or ``anew``); whether scores changed.

        To be called between batches, never within.
        """
        return self.learner.learn_demand(anew=anew)

    def look(self, pod: PodRecord, rows: c.Ints | None) -> Barriers | None:
        """What keeps a pending pod off each of some node rows (None: off all nodes); None where it fits on one.

        A pod with something on it that must be mended has no barriers, and nothing on a node helps it.
        """
        self._begin()
        key = self._key_of(pod)
        if key is None:
            return Barriers()
        if key.refusal is not None:
            return barriers.OF_CLAIMS
        asked = diagnosis.list_rows(self._cluster) if rows is None else rows
        if self.boards.has(key):
            shape = self._shape(key, pod)
            self.boards.refresh(shape)
            bits = self.refusals(shape, asked)
        else:
            # Thousands that wait must not displace what is live.
            bits = self.boards.find_refusals(self.boards.make_unscored(key), asked)
            if key.yields is not None:
                bits |= self.promises.find_refusals(pod, asked, len(bits))
        return None if (bits[0] == 0).any() else barriers.read_barriers(bits)

    def could_place(self, pod: PodRecord) -> bool:
        """Whether a pending pod fits on any node now, without placing it."""
        return self.look(pod, None) is None

    def fits_nominated(self, pod: PodRecord) -> bool:
        """Whether a pending pod fits by now on the node that it is nominated to.

        The room that is promised to it counts for it alone, so ``could_place`` of a pod of its kind does not say.
        """
        self._begin()
        key = self._key_of(pod)
        row = self._cluster.nodes.row_of(self._cluster.nominations.node_of(pod.uid))
        return key is not None and row >= 0 and self._fits_own(key, pod, row) is not None

    def could_take(self, pod: PodRecord) -> bool:
        """Whether a pending pod that does not fit where it is nominated could take the place of others.

        One for whom nobody makes the promised room any more is to learn this, or to find other room.
        """
        self._begin()
        key = self._key_of(pod)
        if key is None or not (pod.preempts and self._policies.preempts(pod)):
            return False
        if self._cluster.nominations.node_of(pod.uid):
            return not self.attempts.awaits_victims(pod, key)
        return self.attempts.could_make_room(pod, key)

    def attempt(self, pod: PodRecord, why: Diagnosis | None) -> Made | None:
        """Whose place a pod that fits nowhere could take, which nobody is told of; None where its profile takes none."""
        self._begin()
        key = self._key_of(pod) if self._policies.preempts(pod) else None
        return None if key is None else self.attempts.try_to_make_room(pod, key, why)

    def why_not(self, pod: PodRecord) -> Hold | None:
        """Why a pending pod fits nowhere now; None when it does."""
        shape, key = self.unscored(pod), self._key_of(pod)
        if shape is None or key is None:
            return Hold(pod.uid, problem=self.keys.find_problem(pod))
        rows = diagnosis.list_rows(self._cluster)
        bits = self.boards.find_refusals(shape, rows)
        if key.yields is not None:
            bits |= self.promises.find_refusals(pod, rows, len(bits))
        if (bits[0] == 0).any():
            return None
        why = self._why(shape, rows, bits)
        if not self._policies.preempts(pod):
            return Hold(pod.uid, why)
        # To ask all nodes takes longer than a text is worth; who finds room that others make is tried, and not told.
        made = (
            self.attempts.try_to_make_room(pod, key, why)
            if self.attempts.is_cheap(pod, key)
            else None
        )
        return Hold(pod.uid, why, attempt=made.attempt) if made and made.evict is None else None

    def hints_of(self, pod: PodRecord, found: Barriers) -> list[Hint]:
        """What could help a pod that these keep off nodes."""
        key = self._key_of(pod)
        if key is None:
            return []
        asked = Asked(key.template, key.placement, key.view.storage)
        return barriers.list_hints(asked, key.view.needs, found)

    def objection(self, pod: PodRecord, node: str) -> str:
        """Why a node's words keep a pod off it by now; empty when they do not."""
        nodes = self._cluster.nodes
        asked = Asked(pod.template, self._policies.resolve(pod).placement)
        return table.find_objection(asked, nodes, nodes.row_of(node))

    def asks_all(self, pod: PodRecord) -> bool:
        """Whether all filters are asked for a pod, and of all that it asks: its profile disables none."""
        return self._policies.resolve(pod).placement.plugins is None

    def is_wide(self, pod: PodRecord) -> bool:
        """Whether what changes on one node may let a pod in on another."""
        return self.keys.views.make_view(pod, self._policies.resolve(pod).placement).is_wide

    def cost_of(self, pod: PodRecord) -> int:
        """What deciding for a pod costs beyond the usual: by its cards and, unless its shape is live, its words."""
        key = self._key_of(pod)
        if key is None:
            return 0
        template = pod.template
        picking = gpus.picks(template.gpu) // _CARDS_A_UNIT
        if self.boards.has(key):
            return picking
        return picking + 1 + template.words // _WORDS_A_UNIT

    def kind_of(self, pod: PodRecord) -> Hashable:
        """Equal for pods that fit the same nodes, or that are held for the same mistake."""
        placement = self._policies.resolve(pod).placement
        view, problem = self.keys.views.make_view(pod, placement), self.keys.find_problem(pod)
        # By priority, though no pod may be nominated now: when one is, no kind has to be split for it.
        urgency = pod.priority, pod.preempts
        return pod.template, placement, view, problem, urgency, self.promises.tell_apart(pod)

    @property
    def version(self) -> Hashable:
        """While it is the same, so is the kind of every pod that waits without storage, and does not change itself."""
        cluster = self._cluster
        seen = cluster.terms.version, cluster.peers.version, cluster.nodes.label_keys_version
        return *seen, self.promises.version

    @property
    def meets_others(self) -> bool:
        """Whether pods on nodes have terms about others: which of those that wait they see may change."""
        return self._cluster.terms.has_owners

    def shape_of(self, pod: PodRecord) -> Shape | None:
        """The pod's shape; None when something on the pod must be mended first."""
        self._begin()
        key = self._key_of(pod)
        return None if key is None else self._shape(key, pod)

    def unscored(self, pod: PodRecord) -> Shape | None:
        """As ``shape_of``, with no board and not kept: for who asks what fits and places nothing."""
        self._begin()
        key = self._key_of(pod)
        return None if key is None else self.boards.make_unscored(key)

    def refusals(self, shape: Shape, rows: c.Ints) -> c.Ints:
        """[W, n] why a live shape does not fit on n rows; its board tells too little of what a node lacks by its words."""
        bits = self.boards.find_refusals(shape, rows)
        if shape.withheld is not None:
            bits |= shape.withheld.bits[:, rows]
        return bits

    def _begin(self) -> None:
        """Ranks and what was learnt are of the nodes that are there, and stay so until the call ends."""
        self._cluster.nodes.refresh_ranks()
        if not self.learner.fits_nodes():
            self.learner.learn_demand()

    def _key_of(self, pod: PodRecord) -> Key | None:
        key = self.keys.make_key(pod)
        if key is None or not self._cluster.nominations:
            return key
        return key._replace(yields=self.promises.tell_yielding(pod))

    def _shape(self, key: Key, pod: PodRecord) -> Shape:
        """The live shape of a pod, which knows what is promised to others that come first."""
        shape = self.boards.get_shape(key)
        if key.yields is not None:
            if shape.withheld is None:
                shape.withheld = Withheld(table.count_words(key.template))
            self.promises.withhold(shape.withheld, pod, wide=key.view.is_wide)
        return shape

    def _fits_own(self, key: Key, pod: PodRecord, row: int) -> Shape | None:
        """The pod's shape if it fits on the row that it is nominated to, also beside others that are."""
        shape = self.boards.make_unscored(key._replace(yields=None))
        fits = not self.promises.judge_alone(pod, shape, np.array([row], np.int64))[0, 0]
        if fits and self.promises.leaves_room(pod, np.array([row], np.int64), but=pod.uid):
            return shape
        return None

    def _why(self, shape: Shape, rows: c.Ints, bits: c.Ints) -> Diagnosis:
        judged = diagnosis.gather_refusals(
            self._cluster, shape, self.boards.get_world(shape), rows, bits
        )
        return diagnosis.sum_up_reasons(judged)
