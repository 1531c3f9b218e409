"""In which of KAI's queues a pod is, by what it or its group says, and how much it wants there."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import NamedTuple

from scheduler.api import names, plugin_parts
from scheduler.api.groups.definitions import Definition
from scheduler.api.groups.readers.kai import PREEMPTIBILITIES, PRIORITIES
from scheduler.api.pods.gpus import WHOLE_CARD_PERCENT, ContainerAsk, ContainerKind
from scheduler.api.pods.kai_shares import Share
from scheduler.api.pods.templates import PodTemplate
from scheduler.api.queues.kai import CARD, Vector, count_mig_cards
from scheduler.state.pods import PodRecord

# The queue of pods that name none, if there is such a queue.
DEFAULT = "default-queue"
# A pod of a lower priority may be preempted if nothing is said of that.
_PREEMPTIBLE_BELOW = 100
_DIGITS_MAX, _MIB_STEP = 12, 100


class Terms(NamedTuple):
    """How a pod stands in the queues.

    Attributes:
        queue: the name of its queue; empty for a pod without one.
        priority: its priority among the pods of its queue.
        is_preemptible: whether it may lose its place.
    """

    queue: str
    priority: int
    is_preemptible: bool


def read_terms(pod: PodRecord, definition: Definition | None, known: Container[str]) -> Terms:
    """Read how a pod stands in the queues; ``definition``: what is said of its group, ``known``: the names of the queues.

    A pod that another scheduler places is in a queue only if it names one in KAI's own words.
    """
    labels = pod.labels or {}
    queue = definition.queue if definition is not None else ""
    queue = queue or labels.get(names.KAI_QUEUE, "")
    if not queue and pod.ours:
        others = labels.get(names.KAI_PROJECT, ""), DEFAULT
        queue = next((one for one in others if one in known), "")
    priority = None if definition is None else definition.queue_priority
    if priority is None:
        priority = PRIORITIES.get(labels.get(names.KAI_PRIORITY, ""), pod.priority)
    said = None if definition is None else definition.is_preemptible
    if said is None and labels.get(names.KAI_PREEMPTIBILITY) in PREEMPTIBILITIES:
        said = labels[names.KAI_PREEMPTIBILITY] == PREEMPTIBILITIES[0]
    return Terms(queue, priority, priority < _PREEMPTIBLE_BELOW if said is None else said)


def find_wants(template: PodTemplate, card_mib: int) -> Vector:
    """Find what pods of a template want; ``card_mib``: of so many MiB is the smallest card, 0 if there is none."""
    amounts = dict(template.requests.amounts)
    at_start, later = 0, 0
    # Of parts of cards under names of their own only MIG slices count, by their names.
    for one in () if plugin_parts.is_part(template.family) else template.most:
        cards = one.cards * _find_part(one, card_mib)
        if one.kind == ContainerKind.INIT:
            at_start = max(at_start, cards)
        else:
            later += cards
    if template.share is not None:
        later += template.share.cards * find_part(template.share, card_mib)
    return (
        amounts.get(names.CPU, 0),
        amounts.get(names.MEMORY, 0),
        max(at_start, later) + find_in_slices(template),
    )


def find_in_slices(template: PodTemplate) -> int:
    """Find as how much of cards the MIG slices of a pod count, in millionths."""
    return CARD * sum(n * count_mig_cards(name) for name, n in template.requests.amounts)


def find_part(share: Share, card_mib: int) -> int:
    """Find how much of each card a share is, in millionths; of cards of so many MiB, 0: unknown."""
    if share.mib and card_mib <= 0:
        return CARD
    part = -(-share.mib * CARD // card_mib) if share.mib else share.millionths
    return min(CARD, part)


def read_card_mib(labels: Mapping[str, str]) -> int:
    """Read of how many MiB the cards of a node are, in hundreds as KAI has it; 0: its labels do not say."""
    text = labels.get(names.GPU_MIB, "")
    is_number = text.isascii() and text.isdecimal() and len(text) < _DIGITS_MAX
    return int(text) // _MIB_STEP * _MIB_STEP if is_number else 0


def _find_part(one: ContainerAsk, card_mib: int) -> int:
    """Find which part of each card a container wants, in millionths, rounded up."""
    if one.mem_mib:
        return min(CARD, -(-one.mem_mib * CARD // card_mib)) if card_mib > 0 else CARD
    return one.mem_percent * CARD // WHOLE_CARD_PERCENT or CARD
