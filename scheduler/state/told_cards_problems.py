"""Finds the mistake in a pod's record of the cards that it holds, in words for people."""

from __future__ import annotations

from scheduler.api.cards import find_slots
from scheduler.api.pods.templates import PodTemplate
from scheduler.errors import Mistake
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
    unsaid = told_cards.describe_unnamed(slots, asks, cards, table, driver.find_whole)
    # What cannot be read of a claim that names cards, such as places on them.
    return Mistake(driver.claim_field, unsaid) if unsaid else pod.problem
