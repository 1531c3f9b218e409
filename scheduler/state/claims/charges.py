"""Who is charged for the devices of claims: each claim once, however many pods have it.

A claim goes with the pods for which it is reserved: whoever takes all of them away in a trial has its devices, too. Of one
pod the devices are charged with the pod; several pods are each charged the claim as a whole, see ``joint``. If not all
for whom it is reserved are on nodes, the claim stays charged when these pods go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from scheduler.api.claims.answers import Allotment, ClaimKey, Given
from scheduler.api.claims.devices import PoolKey
from scheduler.schema import columns as c
from scheduler.state.claims.extended import ExtendedSupply
from scheduler.state.claims.holds import make_holds
from scheduler.state.claims.joint import JointHolds, make_hold
from scheduler.state.claims.objects import Claim
from scheduler.state.nodes import NodeTable
from scheduler.state.pods import PodRecord
from scheduler.state.structures.changes import Changes
from scheduler.state.told_cards import NOTHING

_NOBODY: frozenset[str] = frozenset()


class Users(NamedTuple):
    """For whom a claim is charged.

    Attributes:
        uids: the pods with which it goes.
        is_kept: it stays all the same when they go, because others have it who are on no node, or nobody has it.
    """

    uids: frozenset[str]
    is_kept: bool


NO_USERS = Users(_NOBODY, is_kept=True)


class _Charged(NamedTuple):
    """How a claim is charged.

    Attributes:
        holds: what it holds by itself; nothing if that is charged with one pod, or by number.
        number: that of a claim that several pods have, see ``joint``; -1 for any other.
    """

    users: Users
    holds: c.Ints = NOTHING
    number: int = -1


class Charges(ExtendedSupply):
    """What is charged for claims, and with which pods.

    Attributes:
        moved: the log of rows on which anything has changed.
        decided: by claim what was decided for it and is not written yet, and the uid of the pod.
    """

    def __init__(self, nodes: NodeTable, moved: Changes) -> None:
        super().__init__(nodes)
        self.moved = moved
        self.decided: dict[ClaimKey, tuple[Allotment, str]] = {}
        self._joint = JointHolds(self.table.columns)
        self._charged: dict[ClaimKey, _Charged] = {}
        self._of_pool: defaultdict[PoolKey, set[ClaimKey]] = defaultdict(set)
        self._pools_of: dict[ClaimKey, set[PoolKey]] = {}
        self._is_writing = False

    @property
    def _is_trying(self) -> bool:
        return self.roster is not None and self.roster.is_trying

    # What a claim has.

    def find_decision(self, key: ClaimKey) -> tuple[Allotment, str] | None:
        """Find what was decided for a claim; None for nothing, or if another claim has the name now."""
        decided = self.decided.get(key)
        if decided is None:
            return None
        claim = self.claims.get(key)
        return decided if claim is not None and decided[0].uid == claim.uid else None

    def find_given(self, key: ClaimKey) -> tuple[Given, ...] | None:
        """Return the devices that a claim has, by the API server or by a decision; None for none."""
        claim = self.claims.get(key)
        return self.get_given(claim) if claim is not None else None

    def get_given(self, claim: Claim) -> tuple[Given, ...] | None:
        """Return the devices that a claim has, as ``find_given``."""
        if claim.given is not None:
            return claim.given
        decided = self.decided.get(claim.key)
        if decided is not None and decided[0].uid == claim.uid:
            return decided[0].given
        doubted = self._doubts.find(claim)
        return doubted.given if doubted is not None else None

    def _is_joined(self, one: Allotment, pod: PodRecord) -> bool:
        """Whether the same was decided for a claim with another pod, which is charged for it."""
        found = self.find_decision(one.key)
        return found is not None and found[0].gives_the_same(one) and found[1] != pod.uid

    def _find_users(self, key: ClaimKey, lifted: Iterable[str] = ()) -> Users:
        """Find for whom a claim is charged; pods that are ``lifted`` will be charged again."""
        decided, claim = self.find_decision(key), self.claims.get(key)
        if claim is None or claim.given is None or not claim.reserved:
            return Users(frozenset({decided[1]}), is_kept=False) if decided else NO_USERS
        there = frozenset(uid for uid in claim.reserved if self._has_claim(uid, key, lifted))
        return Users(there, is_kept=there != claim.reserved)

    def find_users_of_shared(self) -> dict[ClaimKey, frozenset[str]]:
        """Find with which pods each claim goes that has devices which several nodes can use; none for one that stays."""
        keys = {key for pool in self.inventory.list_shared() for key in self._of_pool.get(pool, ())}
        charged = {key: self._charged[key].users for key in sorted(keys) if key in self._charged}
        return {key: one.uids for key, one in charged.items() if one.uids and not one.is_kept}

    def _has_claim(self, uid: str, key: ClaimKey, lifted: Iterable[str]) -> bool:
        """Whether a pod is charged to a node, or will be again, and names a claim."""
        pod = self._find_pod(uid)
        if pod is None or not pod.node or self.roster is None:
            return False
        is_there = self.roster.is_charged(pod)
        if not is_there and (uid not in lifted or self.nodes.find_row(pod.node) < 0):
            return False
        return any((pod.namespace, one.name) == key for one in self.list_entries(pod))

    # With pods.

    def list_holds(self, pod: PodRecord) -> c.Ints:
        """Return [h, N_HOLD] what a pod that is about to be charged holds for claims that are charged with it."""
        found = []
        decided = {
            (one.key, one.uid): one.given
            for one in pod.allotted
            if one.is_new and not self._is_joined(one, pod)
        }
        for one in self.list_entries(pod):
            key = pod.namespace, one.name or ""
            claim = self.claims.get(key)
            if claim is None:
                # Another claim may have the name by now.
                continue
            if claim.given is not None:
                charged = self._charged.get(key)
                if charged is None or pod.uid not in charged.users.uids:
                    continue
                if charged.number >= 0:
                    found.append(make_hold(charged.number))
                else:
                    found.append(make_holds(self.inventory, claim.given))
            elif (given := decided.get((key, claim.uid))) is not None:
                self._strike_alone(key)
                self._charge_with(key, given, pod)
                found.append(make_holds(self.inventory, given))
        return np.concatenate(found) if found else NOTHING

    def _charge_with(self, key: ClaimKey, given: Iterable[Given], pod: PodRecord) -> None:
        """Note that a claim is charged with a pod alone, which holds what it has."""
        self._charged[key] = _Charged(Users(frozenset({pod.uid}), is_kept=False))
        self._note_pools(key, given)

    def _drop_decided(self, one: Allotment, pod: PodRecord) -> None:
        """Note that what was decided for a claim is not charged with a pod any more."""
        charged, claim = self._charged.get(one.key), self.claims.get(one.key)
        is_given = claim is not None and claim.given is not None
        if charged is not None and charged.users.uids == {pod.uid} and not is_given:
            del self._charged[one.key]

    def settle_pod(self, pod: PodRecord) -> None:
        """Charge anew the claims of a pod that has come to a node or left it."""
        for one in self.list_entries(pod):
            key = pod.namespace, one.name or ""
            charged, claim = self._charged.get(key), self.claims.get(key)
            if claim is None:
                self._charged.pop(key, None)
            elif charged is None and self.find_given(key) is None:
                continue
            elif charged is None or charged.users != self._find_users(key):
                self._settle(key, claim)

    def _settle(self, key: ClaimKey, claim: Claim) -> None:
        """Charge a claim anew whose devices are as before: only pods that have come or gone are charged anew."""
        charged, users = self._charged.get(key), self._find_users(key)
        if charged is None or charged.number < 0 or claim.given is None or not users.uids:
            self._recharge([key])
            return
        self._charged[key] = charged._replace(users=users)
        hold = make_hold(charged.number)
        if users.is_kept and not charged.users.is_kept:
            self._count(hold, self._pools_of.get(key, ()), 1)
        self._renew(self._list_charged(users.uids ^ charged.users.uids))
        if charged.users.is_kept and not users.is_kept:
            self._count(hold, self._pools_of.get(key, ()), -1)
        self.moved.add_many(sorted(self.inventory.list_concerned(self._pools_of.get(key, ()))))

    def _list_charged(self, uids: Iterable[str]) -> list[PodRecord]:
        """List those of some pods that are charged to a node, by uid."""
        roster = self.roster
        found = [self._find_pod(uid) for uid in sorted(uids)] if roster is not None else []
        return [pod for pod in found if pod is not None and roster and roster.is_charged(pod)]

    def _renew(self, pods: Sequence[PodRecord]) -> None:
        """Charge pods anew by what is charged with them now."""
        self._strike(pods)
        self._charge(pods)

    def _strike(self, pods: Sequence[PodRecord]) -> None:
        was_writing, self._is_writing = self._is_writing, True
        for pod in pods if self.roster is not None else ():
            if self.roster is not None:
                self.roster.strike_pod(pod)
        self._is_writing = was_writing

    def _charge(self, pods: Sequence[PodRecord]) -> None:
        was_writing, self._is_writing = self._is_writing, True
        for pod in pods if self.roster is not None else ():
            if self.roster is not None:
                self.roster.charge_pod(pod)
        self._is_writing = was_writing

    # Anew.

    def _describe_charge(self, key: ClaimKey) -> tuple[object, ...]:
        """Describe what is charged for a claim, and with whom."""
        given = self.find_given(key)
        return given, self._find_users(key) if given else NO_USERS

    def _write_pools(self, pools: Sequence[PoolKey], concerned: set[int]) -> None:
        """Write pools anew while nothing of them is charged; ``concerned`` are rows of nodes that may have had them."""
        with self._lift([key for pool in pools for key in self._of_pool.get(pool, ())]):
            is_new = [self.inventory.write_pool(pool) for pool in pools]
        if any(is_new):
            with self._lift(list(self._charged)):
                for pool in self.inventory.list_pools():
                    self.inventory.write_pool(pool)
            concerned = set(self.nodes.rows.values())
        concerned |= self.inventory.list_concerned(pools)
        for row in sorted(concerned & set(self.nodes.rows.values())):
            self.inventory.write_node(row)
        self.moved.add_many(sorted(concerned))

    def _recharge(self, keys: Sequence[ClaimKey]) -> None:
        """Charge claims anew, which have changed."""
        with self._lift(keys):
            pass

    @contextmanager
    def _lift(self, keys: Iterable[ClaimKey]) -> Iterator[None]:
        """While it is open, nothing is charged for some claims, nor to the pods that they are charged with."""
        some = dict.fromkeys(keys)
        pods = self.lift_charges(some)
        try:
            yield
        finally:
            self.charge_again(some, pods)

    def lift_charges(self, keys: Iterable[ClaimKey]) -> list[PodRecord]:
        """Take the charges of claims back, also with the pods that they are charged with; return these pods."""
        uids: set[str] = set()
        for key in keys:
            charged = self._charged.get(key)
            if charged is not None:
                uids |= charged.users.uids
            uids |= self._find_users(key).uids
        pods = self._list_charged(uids)
        self._strike(pods)
        for key in keys:
            self._strike_alone(key)
            self._charged.pop(key, None)
            for pool in (pools := self._pools_of.pop(key, set())):
                self._of_pool[pool].discard(key)
                if not self._of_pool[pool]:
                    del self._of_pool[pool]
            # A pod may have devices that are not its node's alone.
            self.moved.add_many(sorted(self.inventory.list_concerned(pools)))
        return pods

    def charge_again(self, keys: Iterable[ClaimKey], pods: Sequence[PodRecord]) -> None:
        """Charge pods and claims by whatever is true now."""
        lifted = {pod.uid for pod in pods}
        for key in keys:
            self._charge_given(key, lifted)
        self._charge(pods)
        for key in keys:
            if key not in self._charged:
                self._charge_alone(key)

    def _charge_given(self, key: ClaimKey, lifted: Iterable[str]) -> None:
        """Say how a claim that has devices is charged with pods, all of which will be charged again."""
        claim, users = self.claims.get(key), self._find_users(key, lifted)
        if claim is None or claim.given is None or not users.uids:
            return
        number = -1
        if len(users.uids) > 1 or users.is_kept:
            number = self._joint.add(make_holds(self.inventory, claim.given))
        self._charged[key] = _Charged(users, number=number)
        self._note_pools(key, claim.given)
        if users.is_kept:
            self._count(make_hold(number), self._pools_of.get(key, ()), 1)

    def _charge_alone(self, key: ClaimKey) -> None:
        given = self.find_given(key)
        if given is None or (
            self.find_decision(key) is not None and self.claims[key].given is None
        ):
            # What is decided is charged with its pod.
            return
        holds = make_holds(self.inventory, given)
        self._charged[key] = _Charged(NO_USERS, holds)
        self._note_pools(key, given)
        self._count(holds, self._pools_of.get(key, ()), 1)

    def _strike_alone(self, key: ClaimKey) -> None:
        """Take back what is charged for a claim by itself; pods that have it are struck already."""
        charged = self._charged.get(key)
        if charged is None:
            return
        if charged.number >= 0:
            if charged.users.is_kept:
                self._count(make_hold(charged.number), self._pools_of.get(key, ()), -1)
            self._joint.drop(charged.number)
            del self._charged[key]
        elif not charged.users.uids:
            self._count(charged.holds, self._pools_of.get(key, ()), -1)
            del self._charged[key]

    def _count(self, holds: c.Ints, pools: Iterable[PoolKey], sign: int) -> None:
        if len(holds) and self.roster is not None:
            self.roster.charge_devices(holds, sign)
            self.moved.add_many(sorted(self.inventory.list_concerned(pools)))

    def _note_pools(self, key: ClaimKey, given: Iterable[Given]) -> None:
        for one in given:
            pool = PoolKey(one.device.driver, one.device.pool)
            self._of_pool[pool].add(key)
            self._pools_of.setdefault(key, set()).add(pool)
