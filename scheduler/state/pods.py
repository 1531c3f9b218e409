"""Pods as the state knows them: one small record each, no copy of the object."""

from __future__ import annotations

from enum import IntEnum

import msgspec

from scheduler.api.cards import Grants
from scheduler.api.claims.answers import Allotment
from scheduler.api.claims.pods import PodClaim
from scheduler.api.groups.definitions import Membership
from scheduler.api.pods.templates import PodTemplate
from scheduler.api.pods.volumes import PodVolumes
from scheduler.api.storage import Given
from scheduler.errors import Mistake
from scheduler.state import told_cards


class Life(IntEnum):
    """pending → assumed → bound → gone; ``forget`` leads from assumed back to pending.

    A pod that is taken from its node in a trial is away, until it is put back or the trial ends.
    """

    PENDING = 0
    ASSUMED = 1
    BOUND = 2
    AWAY = 3


class PodRecord(msgspec.Struct, gc=False, frozen=True):
    """One pod that is not finished; a change of the pod makes a new record.

    Attributes:
        node: where it is bound or assumed, empty while pending.
        template: what it asks; shared with all like pods.
        initialized: its init containers are done, and no longer hold the cards that they asked.
        claim: which cards of ``node`` its containers hold, as far as its requests allow; empty when that is unknown.
        profile: its scheduler name if that is one of ours, else empty.
        gated: it waits behind scheduling gates.
        deleting: it has a deletion timestamp; until it is gone it holds what it holds.
        labels: for policies; None when the pod has none.
        order: the number of its arrival; of pods of equal priority the lower number goes first.
        created: creation time as the API writes it.
        problem: what a person must mend, None for nothing.
        version: the object's ``resourceVersion``; it often changes when nothing else in the record does.
        row: its row of the pod table while it has a node, else -1.
        controller: API version, kind and name of the object that made it; None for none, and once it has a node.
        nominated: the node in its ``status.nominatedNodeName``, while it has none.
        preempts: it may take the place of pods of lower priority.
        evicted: it is being deleted to make room for another.
        volumes: its storage, None for most pods.
        given: what was decided for its claims, as long as it is assumed.
        generation: the object's generation; conditions name the generation that they are about.
        member: what it says of the group that it is in; None for a pod that names none.
        owned: what it is of the group that its owner may ask for; None for a pod without such an owner.
        run_seconds: for so long it runs at most, by what it says itself; None if it says nothing.
        checkpoint_seconds: so often it saves its work; None if it does not say so.
        priority_class: which quotas of its namespace are about it depends on it and on the template, if it asks for devices.
        claims: its ResourceClaims, none for most pods.
        allotted: what was decided for them, as long as it has the node for which it was.
        names_claim: its status names a claim for its extended resources: a kubelet looks for this claim, and what the
            status says cannot be taken back.
        left_notes: annotations of a choice that another scheduler made for it and did not carry out, while it has no node.
    """

    uid: str
    namespace: str
    name: str
    node: str
    life: Life
    template: PodTemplate
    initialized: bool
    claim: Grants
    priority: int
    profile: str
    gated: bool
    deleting: bool
    labels: dict[str, str] | None
    order: int
    created: str
    problem: Mistake | None
    version: str
    row: int
    controller: tuple[str, str, str] | None
    nominated: str = ""
    preempts: bool = True
    evicted: bool = False
    volumes: PodVolumes | None = None
    given: tuple[Given, ...] = ()
    generation: int = 0
    member: Membership | None = None
    owned: Membership | None = None
    run_seconds: float | None = None
    checkpoint_seconds: float | None = None
    priority_class: str = ""
    claims: tuple[PodClaim, ...] = ()
    allotted: tuple[Allotment, ...] = ()
    left_notes: tuple[str, ...] = ()
    names_claim: bool = False

    @property
    def asks(self) -> told_cards.Asks:
        """What the pod's containers may now hold on cards; empty for none."""
        most = self.template.most
        return told_cards.drop_init_asks(most) if self.initialized else most

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes of ResourceQuotas that the pod is in."""
        return self.template.scopes

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def members(self) -> tuple[PodRecord]:
        """The pod alone, as an entity."""
        return (self,)

    @property
    def ours(self) -> bool:
        """Whether Evenkeel is to place the pod."""
        return bool(self.profile)


def make_charge_key(pod: PodRecord) -> tuple[object, ...]:
    """Return everything that decides what a pod is charged, and to which node."""
    return pod.node, pod.claim, pod.initialized, pod.template, pod.claims


def is_alike_for_group(old: PodRecord, new: PodRecord) -> bool:
    """Whether a change of a pod means nothing to its group; kubelets write on each pod of a large job all the time."""
    if old.life == new.life == Life.BOUND:
        return make_group_key(old) == make_group_key(new)
    kept = msgspec.structs.replace(
        old, version=new.version, generation=new.generation, nominated=new.nominated
    )
    return kept == new


def make_group_key(pod: PodRecord) -> tuple[object, ...]:
    """Return everything that a group reads of a pod with a node and that may change on it."""
    return (
        pod.node, pod.deleting, pod.priority, pod.preempts, pod.template, pod.created, pod.member, pod.owned,
    )  # fmt: skip


def make_followed_key(pod: PodRecord) -> tuple[object, ...]:
    """Return everything that followers of charges count and that may change on a pod that stays on its node."""
    return pod.namespace, pod.labels, pod.deleting, pod.given
