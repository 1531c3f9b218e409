"""What drivers of cards have read on a node."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.devices.contract import Words


class DriverReading(NamedTuple):
    """What a driver of cards has read on a node; nothing for drivers of devices that are counted.

    Attributes:
        words: the texts on the node.
        is_told: the node reports its cards, even if it has none.
        is_signed: the driver's plugin has written there.
    """

    words: Words = ()
    is_told: bool = False
    is_signed: bool = False


NOTHING_READ = DriverReading()
