"""Finds the mistake in a pod's record of the cards that it holds, in words for people."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.devices.contract import CardDriver
from scheduler.errors import Mistake
from scheduler.schema import columns as c
from scheduler.state import told_cards
from scheduler.state.pods import PodRecord


def find_claim_problem(
    pod: PodRecord,
    cards: Mapping[str, int],
    table: c.Cards,
    driver: CardDriver,
) -> Mistake | None:
    """Return the mistake in the cards that a pod names, on a node whose cards are reported one by one; None for none.

    ``cards`` are the rows of the node's cards in ``table`` by UUID, ``driver`` is the cards' driver.
    """
    asks = pod.asks
    if not told_cards.has_cards_named(pod.claim, asks):
        missing = f"is missing, and the pod requests GPUs of a node that {driver.name} manages"
        return pod.problem or Mistake(driver.claim_field, missing)
    # A node that is left out has no cards.
    unsaid = (
        told_cards.describe_unnamed(pod.claim, asks, cards, table, driver.find_whole)
        if cards
        else ""
    )
    return Mistake(driver.claim_field, unsaid) if unsaid else None
