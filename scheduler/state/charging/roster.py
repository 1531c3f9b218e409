"""The pods on each node: records by uid and by node, which always agree with the charges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import NamedTuple, Protocol

import numpy as np
from msgspec.structs import replace

from scheduler.errors import BrokenInvariant
from scheduler.schema import columns as c
from scheduler.state.cards import CardTable
from scheduler.state.charging.ledger import Ledger
from scheduler.state.claims.store import Claims
from scheduler.state.nodes import NodeTable
from scheduler.state.pauses import Pauses
from scheduler.state.pods import Life, PodRecord, make_followed_key
from scheduler.state.registers import Registers
from scheduler.state.told_cards import NOTHING


class Follower(Protocol):
    """A part of the state with a figure about the pods on nodes that is no total of ``Nodes``."""

    def follow_pod(self, pod: PodRecord, node_row: int, sign: int) -> None:
        """Note that a pod was charged to a node (1), or its charge was taken back (-1), by the same record."""

    def ignores(self, pods: Sequence[PodRecord]) -> bool:
        """Whether none of these pods adds anything to the figure."""


class Did(IntEnum):
    """The things that can be done in a trial."""

    ENTERED = 0
    FORGOTTEN = 1
    PUT_BACK = 2


class Step(NamedTuple):
    """One thing that was done in a trial, with what is needed to undo it.

    Attributes:
        there: the pods of the node before, as ``pods_on`` had them; None where a pod was entered.
        seen: the record that the watch gave meanwhile of an assumed pod.
    """

    did: Did
    before: PodRecord
    after: PodRecord
    there: dict[str, PodRecord] | None = None
    seen: PodRecord | None = None


class Taken(NamedTuple):
    """Pods that were taken from their nodes together in a trial, with what is needed to undo it.

    Attributes:
        pods: the pods [k] as they were.
        node_rows: [k] the rows of their nodes, -1 for a node that is not there.
        there: the pods of each of the nodes before, as ``pods_on`` had them.
    """

    pods: list[PodRecord]
    node_rows: c.Ints
    there: dict[str, dict[str, PodRecord]]


class Roster:
    """The pods and their nodes; only the roster enters pods in the ledger and strikes them out.

    Attributes:
        pods: all pods that are not finished, by uid.
        pods_on: the pods that have a node, by the node's name; the node may be unknown.
        leaving: the pods that are being deleted; none of them stays after all.
        meanwhile: by uid: the newer record of an assumed pod, from the time of its bind.
        ledger: what each pod is charged.
        registers: which cards the nodes have.
        followers: are called in this order with every pod that is charged or no longer charged.
        log: the steps since the outermost trial began, None while there is no trial.
        away: by uid: the former records of pods that a trial has taken from their nodes.
        pauses: where a long decision may be left for a while.
    """

    def __init__(
        self, nodes: NodeTable, cards: CardTable, registers: Registers, claims: Claims
    ) -> None:
        self._nodes, self._moved = nodes, claims.moved
        self.pods: dict[str, PodRecord] = {}
        self.pods_on: dict[str, dict[str, PodRecord]] = {}
        self.meanwhile: dict[str, PodRecord] = {}
        self.leaving: set[str] = set()
        self.ledger = Ledger(nodes, cards, claims.table)
        self.registers = registers
        self.followers: list[Follower] = [nodes.ports, claims]
        self._claims = claims
        claims.roster = self
        self.log: list[Step | Taken] | None = None
        self.away: dict[str, PodRecord] = {}
        self.pauses = Pauses()

    def keep(self, pod: PodRecord) -> PodRecord:
        """Take over a newer record of a pod."""
        self.pods[pod.uid] = pod
        if pod.deleting:
            self.leaving.add(pod.uid)
        return pod

    def drop(self, uid: str) -> PodRecord | None:
        """Forget a pod that is gone; return its record."""
        self.leaving.discard(uid)
        return self.pods.pop(uid, None)

    def replace(self, pod: PodRecord, start: int) -> PodRecord:
        """Take over a newer record of a pod whose charge is unchanged."""
        old = self.pods[pod.uid]
        if pod.node:
            self.pods_on[pod.node][pod.uid] = pod
            self.ledger.pods.update(pod.row, pod.priority, start)
            if make_followed_key(old) != make_followed_key(pod):
                node_row = self._nodes.find_row(pod.node)
                self._note_struck(old, node_row)
                self._tell(pod, node_row, 1)
        return self.keep(pod)

    def attach(self, pod: PodRecord, start: int) -> PodRecord:
        """Note that a pod has a node, and charge it if the node is known."""
        node_row = self._nodes.find_row(pod.node)
        holds = self._list_holds(pod, node_row)
        row = self.ledger.enter(pod.template, pod.priority, start, node_row, holds)
        if node_row >= 0:
            self._moved.add(node_row)
        return self.adopt(replace(pod, row=row), node_row)

    def adopt(self, pod: PodRecord, node_row: int) -> PodRecord:
        """As ``attach``, of a pod that has a row of the ledger already; its caller notes that the node moved."""
        if self.log is not None:
            self.log.append(Step(Did.ENTERED, self.pods[pod.uid], pod))
        self.pods_on.setdefault(pod.node, {})[pod.uid] = pod
        self.keep(pod)
        self._tell(pod, node_row, 1)
        return pod

    def detach(self, pod: PodRecord) -> None:
        """Note that a pod no longer has a node, if it had one."""
        if not pod.node:
            return
        del self.pods_on[pod.node][pod.uid]
        self._prune(pod.node)
        self._note_struck(pod, self.ledger.leave(pod.row))

    def forget(self, pod: PodRecord) -> None:
        """Make an assumed pod pending again, with the changes that came meanwhile."""
        seen = self.meanwhile.pop(pod.uid, None)
        after = seen or replace(
            pod, node="", life=Life.PENDING, claim=(), row=-1, given=(), allotted=()
        )
        if self.log is None:
            self.detach(pod)
            self.keep(after)
        else:
            self._take(Step(Did.FORGOTTEN, pod, after, seen=seen))

    def strike(self, node: str) -> list[PodRecord]:
        """Take back the charges of all pods of a node, and return the pods, for ``charge``."""
        pods = list(self.pods_on.get(node, {}).values())
        for pod in pods:
            self._note_struck(pod, self.ledger.strike(pod.row))
        return pods

    def charge(self, pods: list[PodRecord], node_row: int) -> None:
        """Charge pods that were struck out to the node of a row, with what they hold on its cards; -1: to none."""
        for pod in pods:
            self.ledger.move(pod.row, node_row, self._list_holds(pod, node_row))
            self._note_charged(pod, node_row)

    def strike_pod(self, pod: PodRecord) -> None:
        """Take back the charge of a pod with a node, for ``charge_pod``."""
        self._note_struck(pod, self.ledger.strike(pod.row))

    def charge_pod(self, pod: PodRecord) -> None:
        """Charge a pod that was struck out to its node, with what it holds there now."""
        self.charge([pod], self._nodes.find_row(pod.node))

    def is_charged(self, pod: PodRecord) -> bool:
        """Whether a pod is charged to a node now."""
        return pod.row >= 0 and bool(self.ledger.pods.columns.node[pod.row] >= 0)

    @property
    def is_trying(self) -> bool:
        """Whether a trial is open."""
        return self.log is not None

    def charge_devices(self, holds: c.Ints, sign: int) -> None:
        """Charge what a claim holds of devices, or take that back, as ``Ledger.charge_devices``."""
        self.ledger.charge_devices(holds, sign)

    @contextmanager
    def lift_charges(self, rows: c.Ints, *, is_quiet: bool = False) -> Iterator[None]:
        """Take back the charges of pods of these rows [k] while a question about amounts is answered.

        Followers and records do not notice, so it takes far less time than a trial; only amounts may be read meanwhile.
        ``is_quiet``: no board is read either, so no node counts as moved.
        """
        node_rows = self.ledger.strike_many(rows)
        concerned = np.unique(node_rows[node_rows >= 0]) if not is_quiet else node_rows[:0]
        self._moved.add_many(concerned)
        try:
            yield
        finally:
            self.ledger.charge_many_again(rows, node_rows)
            self._moved.add_many(concerned)

    # In a trial. A row is given back when the outermost trial ends: until then the pod can be charged as it was.

    def take_away(self, pods: list[PodRecord]) -> None:
        """Take pods from their nodes for now."""
        if self.log is None:
            raise BrokenInvariant("there is no trial")
        there: dict[str, dict[str, PodRecord]] = {}
        for pod in pods:
            if pod.node not in there:
                there[pod.node] = self._copy_pods_on(pod.node)
            del self.pods_on[pod.node][pod.uid]
            self.away[pod.uid] = pod
            self.pods[pod.uid] = replace(pod, node="", life=Life.AWAY, row=-1)
        node_rows = self.ledger.strike_many(_list_rows(pods))
        self.log.append(Taken(pods, node_rows, there))
        self._tell_many(pods, node_rows, -1)

    def put_back(self, pod: PodRecord) -> None:
        """Put a pod that was taken away back on its node, by the record that it had."""
        del self.away[pod.uid]
        there = self._copy_pods_on(pod.node)
        self._note(Step(Did.PUT_BACK, self.pods[pod.uid], pod, there))
        self.pods_on[pod.node][pod.uid] = pod
        self._charge_again(pod)

    def undo_entries(self, steps: Sequence[Step], ends: tuple[int, int]) -> None:
        """Undo the last steps that are left, with each of which a pod was entered.

        ``ends`` are the ledger's ends from the beginning of the trial.
        """
        pods = [step.after for step in reversed(steps)]
        for pod in pods:
            del self.pods_on[pod.node][pod.uid]
            self._prune(pod.node)
        self._tell_many(pods, self.ledger.undo(_list_rows(pods), ends), -1)
        for step in reversed(steps):
            self.keep(step.before)

    def undo(self, step: Step | Taken) -> None:
        """Undo the last step that is left, with which no pod was entered."""
        if isinstance(step, Taken):
            self._bring_back(step)
            return
        before, after = step.before, step.after
        if step.did == Did.PUT_BACK:
            self.away[after.uid] = after
            self._note_struck(after, self.ledger.strike(after.row))
        else:
            self._charge_again(before)
        if step.there is not None:
            self.pods_on[before.node or after.node] = step.there
        if step.seen is not None:
            self.meanwhile[before.uid] = step.seen
        self.keep(before)

    def settle(self, step: Step | Taken) -> None:
        """Note that a step will not be undone any more."""
        if isinstance(step, Step) and step.did == Did.FORGOTTEN:
            self._prune(step.before.node)
            self.ledger.leave(step.before.row)
        if isinstance(step, Step) and step.did != Did.PUT_BACK:
            self._claims.settle_pod(step.before)

    def _bring_back(self, taken: Taken) -> None:
        """Undo that pods were taken from their nodes."""
        self.ledger.charge_many_again(_list_rows(taken.pods), taken.node_rows)
        self.pods_on.update(taken.there)
        for pod in taken.pods:
            del self.away[pod.uid]
            self.pods[pod.uid] = pod
        self._tell_many(taken.pods, taken.node_rows, 1)

    def _take(self, step: Step) -> None:
        pod = step.before
        self._note(step._replace(there=self._copy_pods_on(pod.node)))
        del self.pods_on[pod.node][pod.uid]
        self._note_struck(pod, self.ledger.strike(pod.row))

    def _note(self, step: Step) -> None:
        if self.log is None:
            raise BrokenInvariant("there is no trial")
        self.log.append(step)
        self.keep(step.after)

    def _copy_pods_on(self, node: str) -> dict[str, PodRecord]:
        """Return the pods of a node, and put a copy in their place, which later steps change instead."""
        there = self.pods_on.get(node, {})
        self.pods_on[node] = there.copy()
        return there

    def _charge_again(self, pod: PodRecord) -> None:
        node_row = self._nodes.find_row(pod.node)
        self.ledger.charge_again(pod.row, node_row)
        self._note_charged(pod, node_row)

    # Inside and outside of trials.

    def _prune(self, node: str) -> None:
        if not self.pods_on.get(node, True):
            del self.pods_on[node]

    def list_charged(self) -> Iterator[tuple[int, PodRecord]]:
        """List the pods that are charged to a node, with the row of the node."""
        node_of = self.ledger.pods.columns.node
        for pods in self.pods_on.values():
            for pod in pods.values():
                if node_of[pod.row] >= 0:
                    yield int(node_of[pod.row]), pod

    def _list_holds(self, pod: PodRecord, node_row: int) -> c.Ints:
        # Most pods ask no card: this is the usual way.
        has_claims = self._claims.has_claims(pod)
        if node_row < 0 or not (pod.template.most or has_claims):
            return NOTHING
        holds = NOTHING
        if pod.template.most:
            holds = self.registers.list_holds(pod, self.ledger.get_containers, node_row)
        if has_claims:
            return np.concatenate((holds, self._claims.list_holds(pod)))
        return holds

    def _note_charged(self, pod: PodRecord, node_row: int) -> None:
        if node_row >= 0:
            self._moved.add(node_row)
        self._tell(pod, node_row, 1)

    def _note_struck(self, pod: PodRecord, node_row: int) -> None:
        """Note that the charge of a pod was taken back from the node of a row; -1: from none."""
        if node_row >= 0:
            self._moved.add(node_row)
        self._tell(pod, node_row, -1)

    def _tell(self, pod: PodRecord, node_row: int, sign: int) -> None:
        # A node that is not there has no row, and nothing is counted on it.
        for follower in self.followers if node_row >= 0 else ():
            follower.follow_pod(pod, node_row, sign)

    def _tell_many(self, pods: list[PodRecord], node_rows: c.Ints, sign: int) -> None:
        """Tell the followers of pods [k] that came to their nodes or left them together."""
        rows = node_rows.tolist()
        self._moved.add_many([row for row in dict.fromkeys(rows) if row >= 0])
        for follower in self.followers:
            if follower.ignores(pods):
                continue
            follow = follower.follow_pod
            for pod, row in zip(pods, rows, strict=True):
                if row >= 0:
                    follow(pod, row, sign)


def _list_rows(pods: list[PodRecord]) -> c.Ints:
    """List the rows of pods in the pod table."""
    return np.array([pod.row for pod in pods], np.int64)
