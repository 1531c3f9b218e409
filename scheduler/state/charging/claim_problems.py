"""What is wrong with what a pod says of the cards that it holds, for people."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.devices.contract import CardDriver
from scheduler.errors import Mistake
from scheduler.schema import columns as c
from scheduler.state.charging import claims
from scheduler.state.pods import PodRecord


def claim_problem(
    pod: PodRecord,
    cards: Mapping[str, int],
    table: c.Cards,
    driver: CardDriver,
) -> Mistake | None:
    """What a person must mend on a pod whose node tells its cards: what it tells of them; None when nothing.

    ``cards`` are the rows of the node's cards in ``table`` by UUID, ``driver`` is theirs.
    """
    asks = pod.asks
    if not claims.tells_cards(pod.claim, asks):
        missing = f"is missing on a pod that asks GPUs of a node that {driver.name} manages"
        return pod.problem or Mistake(driver.claim_field, missing)
    # A node that is left out has none.
    unsaid = claims.incomplete(pod.claim, asks, cards, table, driver.whole_of) if cards else ""
    return Mistake(driver.claim_field, unsaid) if unsaid else None
