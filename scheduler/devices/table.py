"""The drivers there are.

Cards that are told one by one are given away by the driver whose node it is. On any other node whole GPUs are
(``whole``), which need no driver: they are one resource of the node's among others.
"""

from __future__ import annotations

from scheduler.api import names
from scheduler.devices.contract import Driver
from scheduler.devices.hami import HamiCards


def of_cards(label: str = names.HAMI_NODE_LABEL) -> Driver:
    """The driver of cards that are told one by one; ``label`` as ``HamiCards`` takes it."""
    return HamiCards(label)


# For those who look at pods and nodes and at no cluster: what it reads and writes does not depend on the label.
CARDS: Driver = of_cards()
