"""Preemption for one pod: which pods it evicts, decided as kube-scheduler's DefaultPreemption decides.

It differs in two things. All nodes are candidates, where kube-scheduler looks at a tenth of them, from a random one
on; and of several that are as good in everything the one of the lowest rank is taken, where kube-scheduler takes any.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduler.api.cards import Grants
from scheduler.api.door.decisions import Attempt, Diagnosis, Evict, Nominate, Why
from scheduler.api.placement import Mode
from scheduler.disruption import protectors
from scheduler.disruption.group_units import find_kube_priority
from scheduler.disruption.hunts import TEXTS, Hunt
from scheduler.disruption.promises import Promises
from scheduler.plugins import table
from scheduler.schema import preempting as p
from scheduler.shapes import diagnosis
from scheduler.shapes.boards import Boards, Key
from scheduler.shapes.caches import IsThere
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from scheduler.state.structures.recent import Recent

NEVER = "not eligible due to preemptionPolicy=Never."
WAITS = "not eligible due to a terminating pod on the nominated node."
# Kinds of pods whose hunts are kept.
_HUNTS_MAX, _HUNTS_BYTES_MAX = 64, 32 << 20
# What an attempt costs beside, in nodes that are asked.
_NODES_AN_ATTEMPT = 512
# What a node costs that is tried by itself with the pods that are nominated to it.
_NODES_A_TRIAL = 512


class Made(NamedTuple):
    """What an attempt came to.

    Attributes:
        cards: what the pod is promised, of the cards that are free once the victims are gone.
        keeps: the pod stays nominated where it is.
    """

    attempt: Attempt
    evict: Evict | None = None
    cards: Grants = ()
    keeps: bool = False


# Of a pod whose profile takes the place of nobody.
NOTHING = Made(Attempt())


class Attempts:
    """Looks for room that others have to make.

    Attributes:
        spent: how many nodes were asked since it was set to 0, or could have been in the time.
    """

    def __init__(self, cluster: Cluster, boards: Boards, promises: Promises) -> None:
        self._cluster, self._boards, self._promises = cluster, boards, promises
        self._hunts: Recent[tuple[Key, int], Hunt] = Recent(
            _HUNTS_MAX, _HUNTS_BYTES_MAX, self._size_of
        )
        # The lowest priority on any node, and of when that is.
        self._lowest, self._lowest_at = p.NO_PRIORITY, -1
        self.spent = 0

    def try_to_make_room(self, pod: PodRecord, key: Key, why: Diagnosis | None) -> Made:
        """Decide for a pod that fits nowhere, for these reasons; None: nobody will read. Nothing is changed yet."""
        if not pod.preempts:
            return Made(Attempt(why=NEVER), keeps=bool(self._cluster.nodes.rows))
        if self.awaits_victims(pod, key):
            return Made(Attempt(why=WAITS), keeps=True)
        if not self._may_find_lower(pod, key):
            return Made(Attempt(diagnosis=_explain_nobody(why) if why is not None else None))
        hunt = self._get_hunt(pod, key)
        row = hunt.find_best()
        if row < 0:
            self._lowest, self._lowest_at = p.NO_PRIORITY, -1
            return Made(Attempt(diagnosis=hunt.explain() if why is not None else None))
        units = hunt.list_units(pod, row)
        node = self._cluster.nodes.find_name(row)
        evict = Evict(pod.uid, node, units, Why.PREEMPTED)
        cards = self._promises.choose_cards(pod, row, evict.victims)
        return Made(Attempt(node, len(evict.victims)), evict, cards)

    def forget(self, is_there: IsThere) -> None:
        """Forget the hunts of pods that are gone."""
        self._hunts.keep(lambda by, _: is_there(by[0].template))

    def _size_of(self, by: tuple[Key, int], hunt: Hunt) -> int:
        return 2 * self._boards.sizes.estimate(by[0].template) + hunt.estimate_bytes()

    def is_cheap(self, pod: PodRecord, key: Key) -> bool:
        """Whether what ``try_to_make_room`` answers is known but for what has changed since it was asked last."""
        return not self._may_find_lower(pod, key) or (key, pod.priority) in self._hunts

    def could_make_room(self, pod: PodRecord, key: Key) -> bool:
        """Whether it would find room now."""
        if not pod.preempts or not self._may_find_lower(pod, key):
            return False
        if self.awaits_victims(pod, key):
            return False
        return self._get_hunt(pod, key).find_best() >= 0

    def awaits_victims(self, pod: PodRecord, key: Key) -> bool:
        """Whether somebody is leaving the node that the pod is nominated to, and nothing else is in its way."""
        cluster = self._cluster
        name = cluster.nominations.find_node(pod.uid)
        if not name:
            return False
        going = cluster.nominations.going
        there = cluster.pods_on.get(name, {}).values()
        is_kube = key.placement.mode == Mode.KUBE_SCHEDULER
        leaving = any(
            protectors.outranks(
                pod.priority, find_kube_priority(cluster, one) if is_kube else one.priority
            )
            for one in there
            if one.evicted or one.uid in going
        )
        # Devices that several nodes can use become free elsewhere.
        leaving = leaving or pod.uid in going.values()
        row = cluster.nodes.find_row(name)
        if not leaving or row < 0:
            return False
        shape, rows = self._boards.make_unscored(key), np.array([row], np.int64)
        bits = self._boards.find_refusals(shape, rows)
        judged = diagnosis.gather_refusals(
            cluster, shape, self._boards.get_world(shape), rows, bits
        )
        return not table.find_lasting(judged)[0]

    def carry_out(self, pod: PodRecord, made: Made) -> list[Nominate]:
        """Promise the room, and take it from those that come after; whose nomination is another then."""
        nominations, evict = self._cluster.nominations, made.evict
        if evict is None:
            if not made.keeps:
                nominations.put(pod.uid, "", pod.priority)
            return self._tell_if_new(pod)
        nominations.send_away(evict.victims, pod.uid)
        later = [
            uid
            for uid, urgency in nominations.list_on(evict.node).items()
            if urgency < pod.priority
        ]
        for uid in later:
            nominations.drop(uid)
        nominations.put(pod.uid, evict.node, pod.priority, made.cards)
        return [*self._tell_if_new(pod), *(Nominate(uid, "") for uid in later)]

    def _tell_if_new(self, pod: PodRecord) -> list[Nominate]:
        node = self._cluster.nominations.find_node(pod.uid)
        return [Nominate(pod.uid, node)] if node != pod.nominated else []

    def _get_hunt(self, pod: PodRecord, key: Key) -> Hunt:
        by = key, pod.priority
        hunt = self._hunts.get(by)
        if hunt is None:
            hunt = Hunt(self._cluster, self._boards, self._promises, key)
        n_trials = self._promises.n_trials
        hunt.refresh(pod)
        self._hunts.put(by, hunt)
        n_trials = self._promises.n_trials - n_trials
        self.spent += hunt.n_asked + _NODES_AN_ATTEMPT + _NODES_A_TRIAL * n_trials
        own = self._cluster.nodes.find_row(self._cluster.nominations.find_node(pod.uid))
        if own >= 0:
            hunt.ask_own(pod, own)
        return hunt

    def _may_find_lower(self, pod: PodRecord, key: Key) -> bool:
        """Whether somebody of a lower priority may be on a node. For kube-scheduler groups have priorities of their own."""
        are_groups = key.placement.mode == Mode.KUBE_SCHEDULER and self._cluster.groups.have_pods
        return are_groups or self.has_lower(pod.priority)

    def has_lower(self, priority: int) -> bool:
        """Whether there is a pod of a lower priority on any node."""
        cluster = self._cluster
        # That there was one is good enough: who then finds none has it looked for again.
        if (
            not protectors.outranks(priority, self._lowest)
            and self._lowest_at != cluster.moved.position
        ):
            self._lowest_at = cluster.moved.position
            self._lowest = protectors.find_lowest_priority(cluster)
        return protectors.outranks(priority, self._lowest)


def _explain_nobody(why: Diagnosis) -> Diagnosis:
    """What is told where no node has a pod of a lower priority."""
    nobody, not_helpful = TEXTS
    counts = (nobody, why.n_nodes - why.unresolvable), (not_helpful, why.unresolvable)
    return Diagnosis(why.n_nodes, tuple(sorted(one for one in counts if one[1])))
