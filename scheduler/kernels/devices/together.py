"""Cards that the containers of a pod do not choose apart: once a container has a card, the others get no other one.

So all containers of a pod share one card, or one container alone has some. Init containers come and go before the others, and
keep to a card among themselves.

Source: HAMi v2.10 (Apache-2.0) ``pkg/device/mthreads`` and ``pkg/device/metax``, the rule ``customFilterRule``.
"""

from __future__ import annotations

from scheduler.kernels._jit import part, tiny
from scheduler.kernels.devices import gpus
from scheduler.schema import columns as c


@part
def choose_for_container(
    cards: c.Cards, ask: c.Ask, slot: int, start: int, count: int, n_picks: int, s: c.Scratch
) -> int:
    """Pick the cards of one container; return the number of picks so far, or -1."""
    s.codes[:] = 0
    wanted, first = ask.containers[c.N_CARDS, slot], n_picks
    if wanted > count:
        s.codes[gpus.TOO_MANY_ASKED] = count
        return -1
    gpus.order_cards(cards, ask, start, count, s)
    for at in range(count - 1, -1, -1):
        j = s.order[at]
        code = gpus.find_code(cards, ask, slot, start, j, 0, s)
        if code < 0 and _has_other(ask, slot, start + j, first, s):
            code = gpus.OTHER_CARD
        if code >= 0:
            s.codes[code] += 1
            continue
        gpus.pick_card(cards, ask, slot, start + j, n_picks, s)
        n_picks += 1
        if n_picks - first == wanted:
            return n_picks
    s.codes[gpus.TOO_FEW] = n_picks - first
    return -1


@tiny
def _has_other(ask: c.Ask, slot: int, d: int, n_picks: int, s: c.Scratch) -> bool:
    """Whether an earlier container that runs with this one, or before it as an init container, has another card."""
    is_init = ask.containers[c.KIND, slot] == c.KIND_INIT
    for p in range(n_picks):
        was_init = ask.containers[c.KIND, s.pick_slot[p]] == c.KIND_INIT
        if was_init == is_init and s.picks[p] != d:
            return True
    return False
