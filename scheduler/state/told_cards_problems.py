"""Finds the mistake in a pod's record of the cards that it holds, in words for people."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.api.cards import Slots, find_slots
from scheduler.api.pods.templates import PodTemplate
from scheduler.errors import Mistake
from scheduler.kernels.devices import told_cards as kernel
from scheduler.schema import columns as c
from scheduler.state import told_cards
from scheduler.state.pods import PodRecord
from scheduler.state.registers import Registers


def find_claim_problem(
    pod: PodRecord, row: int, registers: Registers, table: c.Cards
) -> Mistake | None:
    """Return the mistake in the cards that a pod names, on a node whose cards are reported one by one; None for none."""
    mistakes = (
        _find_of_family(pod, part, row, registers, table) for part in pod.template.list_by_family()
    )
    return next(filter(None, mistakes), None)


def _find_of_family(
    pod: PodRecord, part: PodTemplate, row: int, registers: Registers, table: c.Cards
) -> Mistake | None:
    family = registers.devices.find_family(part.family)
    driver = registers.find_driver(family, row)
    if driver is None or not registers.is_told(family, row):
        return None
    slots = find_slots(pod.claim, driver.name)
    asks = told_cards.drop_init_asks(part.most) if pod.initialized else part.most
    if not told_cards.has_cards_named(slots, asks):
        missing = f"is missing, and the pod requests GPUs of a node that {driver.name} manages"
        return pod.problem or Mistake(driver.claim_field, missing)
    # A node that is left out has no cards.
    cards = registers.list_cards(pod.uid, family, row) if registers.has_cards(family, row) else {}
    if not cards:
        return None
    said = told_cards.describe_unnamed(slots, asks, cards, table, driver.find_whole)
    if said or not pod.problem:
        said = said or _describe_strange_part(slots, cards, registers, table)
        return Mistake(driver.claim_field, said) if said else None
    # What cannot be read of a claim that names cards, such as places on them.
    return pod.problem


def _describe_strange_part(
    slots: Slots, cards: Mapping[str, int], registers: Registers, table: c.Cards
) -> str:
    """Say in words which part a claim names that its card cannot have; empty for none."""
    for use in (use for uses in slots for use in uses if use.place is not None):
        d = cards.get(use.uuid, kernel.STRANGE)
        if d >= 0 and table.carving[d] and registers.find_part(d, use.place) == c.NO_PART:
            return f"names an instance of {use.uuid} that the GPU cannot have; nothing else is cut out of it meanwhile"
    return ""
