"""Pods as the state knows them: one small record each, no copy of the object."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

import msgspec

from scheduler.api import gpus, hami
from scheduler.api.templates import PodTemplate


class Life(IntEnum):
    """pending → assumed → bound → gone; ``forget`` leads from assumed back to pending."""

    PENDING = 0
    ASSUMED = 1
    BOUND = 2


class CardCharge(NamedTuple):
    """What a pod holds at most on one card while it runs."""

    uuid: str
    cores: int
    mem_mib: int
    slots: int


class PodRecord(msgspec.Struct, gc=False):
    """One pod that is not finished.

    Attributes:
        node: where it is bound or assumed, empty while pending.
        template: what it asks; shared with all like pods.
        cards: what it holds on cards of ``node``.
        ours: it names our scheduler.
        gated: it waits behind scheduling gates.
        deleting: it has a deletion timestamp; it still holds what it holds.
        labels: for policies; None when the pod has none.
        order: arrival, ties in priority go to the lower.
        created: creation time as the API writes it.
        problem: what a person must mend, empty when nothing.
        version: the object's ``resourceVersion``; other than the rest it moves without any meaning.
    """

    uid: str
    namespace: str
    name: str
    node: str
    life: Life
    template: PodTemplate
    cards: tuple[CardCharge, ...]
    priority: int
    ours: bool
    gated: bool
    deleting: bool
    labels: dict[str, str] | None
    order: int
    created: str
    problem: str
    version: str

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


def collapse(
    slots: Iterable[tuple[hami.CardUse, ...]], kinds: tuple[gpus.Kind, ...], *, init_done: bool
) -> tuple[CardCharge, ...]:
    """What a pod's containers hold per card at the worst moment.

    App containers and sidecars add up; every other init container runs on top of the sidecars
    before it. Once init containers are done, only what stays counts. More slots than containers
    (a pod edited by hand) count as app containers.
    """
    held: dict[str, tuple[int, int, int]] = {}
    peak: dict[str, tuple[int, int, int]] = {}
    for i, uses in enumerate(slots):
        kind = kinds[i] if i < len(kinds) else gpus.Kind.APP
        if kind == gpus.Kind.INIT and init_done:
            continue
        for use in uses:
            before = held.get(use.uuid, (0, 0, 0))
            after = (before[0] + use.cores, before[1] + use.mem_mib, before[2] + 1)
            most = peak.get(use.uuid, (0, 0, 0))
            peak[use.uuid] = (
                max(most[0], after[0]),
                max(most[1], after[1]),
                max(most[2], after[2]),
            )
            if kind != gpus.Kind.INIT:
                held[use.uuid] = after
    return tuple(CardCharge(uuid, *peak[uuid]) for uuid in sorted(peak))


def charged(pod: PodRecord) -> tuple[object, ...]:
    """All that decides what a pod is charged, and where."""
    return pod.node, pod.cards, pod.template, pod.node and pod.problem


def holds_cards(pod: PodRecord) -> bool:
    """Whether a pod with a node holds cards of HAMi, readable or not.

    The only problem there can be on a pod with a node is that its cards cannot be read.
    """
    return bool(pod.cards or pod.problem)


def tells_no_cards(pod: PodRecord) -> bool:
    """Whether a pod with a node asks GPUs and does not say which it has: right where HAMi is not."""
    return pod.template.gpu is not None and not holds_cards(pod)


def is_unreadable(pod: PodRecord) -> bool:
    """Whether nobody can say which cards a pod with a node holds."""
    return bool(pod.problem) or tells_no_cards(pod)
