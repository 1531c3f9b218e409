"""What a pod with a node holds on its cards: see ``state/told_cards.py`` for what counts of a claim.

App containers and sidecars add up; every other init container runs on top of the sidecars before it. A
tenant's pod may have thousands of containers, each of which asks all cards, so this is a loop of a kernel.
"""

from __future__ import annotations

from scheduler.kernels._jit import kernel, part
from scheduler.kernels.devices import gpus
from scheduler.schema import card_parts
from scheduler.schema import columns as c
from scheduler.schema.handles import Ints2

# Rows of cards that are none: gone from the node, gone while in MIG mode, never of the node.
GONE, GONE_CARVED, STRANGE = -1, -2, -3
# Columns of what a claim tells, a row per card that a container names: the container, the card's row, the row
# of the card that it is a part of (up to HAMi 2.9 parts are named like ``UUID[0-1]``), and what is held of it.
CONTAINER, CARD, WHOLE_CARD, TOLD_CORES, TOLD_MIB, TOLD_PART, N_TOLD = 0, 1, 2, 3, 4, 5, 6
# Working columns, behind the four of Pods.holds: cores, MiB and sharers of containers that stay, the order in
# which cards are taken, whether any container names the card, and the last container that does.
_STAYS, _ORDER, _NAMED, _OWN, N_WORK = 4, 7, 8, 9, 10


@kernel
def hold_cards(
    cards: c.Cards, containers: Ints2, told: Ints2, initialized: bool, start: int, work: Ints2
) -> int:
    """Fill ``work`` [cards of the node, N_WORK] with what a pod holds at most; return how many cards it holds.

    ``containers`` are as in ``Ask``, ``told`` [t, N_TOLD] is by container; init containers hold
    nothing but parts of cards once the pod is ``initialized``. ``start`` is the row of the node's first card. The first rows of
    ``work`` come out as ``Pods.holds``. O(containers · cards + t).
    """
    n, n_told = work.shape[0], told.shape[0]
    _order_cards(told, start, work)
    at = 0
    for i in range(containers.shape[1]):
        first, is_carved, untold = at, False, containers[c.N_CARDS, i]
        while at < n_told and told[at, CONTAINER] == i:
            whole = told[at, WHOLE_CARD]
            is_carved = is_carved or whole == GONE_CARVED or (whole >= 0 and cards.mig[whole])
            untold -= 1 if told[at, CARD] != STRANGE else 0
            at += 1
        kind = containers[c.KIND, i]
        is_over = initialized and kind == c.KIND_INIT
        for t in range(first, at):
            # A part is held by the pod until its end, whichever it is.
            is_part = told[t, TOLD_PART] != c.NO_PART
            stays = told[t, CARD] >= 0 and cards.mig[told[t, CARD]]
            if told[t, CARD] >= 0 and (stays or not is_over):
                most = gpus.find_mib(cards, containers, i, told[t, CARD])
                mib, cores = min(told[t, TOLD_MIB], most), told[t, TOLD_CORES]
                if is_part:
                    mib = cards.carvings.parts[told[t, TOLD_PART], card_parts.PART_MIB]
                    cores = cards.carvings.parts[told[t, TOLD_PART], card_parts.PART_CORES]
                elif containers.shape[0] > c.N_ASKED:
                    cores = min(cores, gpus.find_cores(cards, containers, i, told[t, CARD]))
                elif containers[c.ASK_CORE_PERCENT, i] > 0:
                    # What was requested is not known in the words of the claim, but no card has more than all.
                    cores = min(cores, cards.total[c.CORES, told[t, CARD]])
                else:
                    # Also of whoever names a part that the card does not have.
                    cores = min(cores, containers[c.ASK_CORES, i])
                j = told[t, CARD] - start
                _hold_one_more(work, j, c.KIND_APP if stays else kind, cores, mib)
                work[j, _OWN] = i
        # A card in MIG mode serves a container several times.
        if is_carved or is_over:
            continue
        for p in range(n):
            j = work[p, _ORDER]
            if untold <= 0:
                break
            if work[j, _OWN] != i:
                mib = gpus.find_mib(cards, containers, i, start + j)
                cores = gpus.find_cores(cards, containers, i, start + j)
                _hold_one_more(work, j, kind, cores, mib)
                untold -= 1
    return _compact_cards(start, work)


@part
def _order_cards(told: c.Ints, start: int, work: c.Ints) -> None:
    """Clear the working space, and order the cards: those that no container names come first."""
    n = work.shape[0]
    for j in range(n):
        for column in range(N_WORK):
            work[j, column] = 0
        work[j, _OWN] = -1
    for t in range(told.shape[0]):
        if told[t, CARD] >= 0:
            work[told[t, CARD] - start, _NAMED] = 1
    place = 0
    for is_named in range(2):
        for j in range(n):
            if work[j, _NAMED] == is_named:
                work[place, _ORDER] = j
                place += 1


@part
def _hold_one_more(work: c.Ints, j: int, kind: int, cores: int, mib: int) -> None:
    """Note that one more container holds a card, on top of those that stay."""
    add = (cores, mib, 1)
    for figure in range(3):
        after = work[j, _STAYS + figure] + add[figure]
        work[j, 1 + figure] = max(work[j, 1 + figure], after)
        if kind != c.KIND_INIT:
            work[j, _STAYS + figure] = after


@part
def _compact_cards(start: int, work: c.Ints) -> int:
    """Move the held cards to the front, one behind the other; return how many there are."""
    n = 0
    for j in range(work.shape[0]):
        if work[j, 1 + c.SLOTS] > 0:
            work[n, 0] = start + j
            for figure in range(3):
                work[n, 1 + figure] = work[j, 1 + figure]
            n += 1
    return n
