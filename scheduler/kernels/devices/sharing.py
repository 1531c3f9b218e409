"""Cards that not every pod may share, by the mode of the card and by the pods that are there: see ``schema/marks``.

Source: HAMi v2.10 (Apache-2.0) ``pkg/device/metax/sdevice.go``.
"""

from __future__ import annotations

from scheduler.kernels._jit import tiny
from scheduler.kernels.devices import pools
from scheduler.schema import columns as c
from scheduler.schema import marks

# The marks of online and offline pods: the first two kinds.
CLASSES = marks.make_mask(0, 1)


@tiny
def is_of_other_class(cards: c.Cards, ask: c.Ask, d: int) -> bool:
    """Whether a card in use is closed to a pod, or not opened for it, by the classes of the pods that are there."""
    there, opening = cards.marks[d], ask.rules.opening
    if cards.used[c.SLOTS, d] == 0:
        return False
    return bool(there & ask.rules.closing & CLASSES != 0 or (opening != 0 and there & opening == 0))


@tiny
def has_mode(cards: c.Cards, ask: c.Ask, slot: int, d: int) -> bool:
    """Whether a card has a mode that will do, or may get one as no other pod has a part of it, and other pods leave it open.

    Who requests all cores has the card alone, whatever its mode was.
    """
    if not ask.rules.any_idle:
        return bool(ask.prefers.mode_ok[cards.mode[d]])
    is_idle = cards.used[c.SLOTS, d] == 0
    if is_idle or ask.containers[c.ASK_CORES, slot] == pools.WHOLE_CORES:
        return True
    if cards.marks[d] & ask.rules.closing != 0:
        return False
    return bool(ask.prefers.mode_ok[cards.mode[d]] or cards.marks[d] & ask.rules.keeping != 0)
