"""The further families of devices that a pod asks for: ``Ask.more`` has an ask for each.

Some of them are chosen jointly with those of the first family, from one NUMA node: a GPU and the NIC beside it.
"""

from __future__ import annotations

from scheduler.kernels import _handles
from scheduler.kernels._jit import is_compiled, part
from scheduler.kernels.devices import choose, free, pools
from scheduler.schema import columns as c

if is_compiled():
    read_ask = _handles.read_ask
else:

    def read_ask(ask: c.Ask) -> c.Ask:
        """Return the ask; Python reads the asks themselves where kernels read their addresses."""
        return ask


@part
def prepare_choice(nodes: c.Nodes, cards: c.Cards, ask: c.Ask, row: int, s: c.Scratch) -> bool:
    """Return whether the node has the devices of all further families that the pod asks for.

    If some are chosen jointly with those of the first family, ``s.only_numa`` has the NUMA node of all these from now on;
    the caller sets it back by ``end_choice``.
    """
    is_joint = False
    for i in range(len(ask.more)):
        one = read_ask(ask.more[i])
        is_joint = is_joint or one.rules.joint
        if not one.rules.joint and not _suffice(nodes, cards, one, row, s):
            return False
    return _find_numa(nodes, cards, ask, row, s) if is_joint else True


@part
def end_choice(s: c.Scratch) -> None:
    """Let devices of every NUMA node be chosen again."""
    s.only_numa[0] = c.ANY_NUMA


@part
def _suffice(nodes: c.Nodes, cards: c.Cards, ask: c.Ask, row: int, s: c.Scratch) -> bool:
    if not pools.is_by_cards(nodes, ask, row):
        return True
    return bool(choose.choose_devices(nodes, cards, ask, row, s) >= 0)


@part
def _find_numa(nodes: c.Nodes, cards: c.Cards, ask: c.Ask, row: int, s: c.Scratch) -> bool:
    """Restrict the choice to the NUMA node where all suffices, and of several to the one with the fewest open cards."""
    pool = pools.find_pool(nodes, ask, row)
    first, best, fewest = nodes.pools.start[pool], c.ANY_NUMA, 0
    for j in range(nodes.pools.count[pool]):
        numa = cards.numa[first + j]
        n_open, is_known = 0, False
        for k in range(nodes.pools.count[pool]):
            is_known |= k < j and cards.numa[first + k] == numa
            n_open += 1 if cards.numa[first + k] == numa and free.is_open(cards, first + k) else 0
        if is_known or (best != c.ANY_NUMA and n_open >= fewest):
            continue
        s.only_numa[0] = numa
        if _do_all_suffice(nodes, cards, ask, row, s):
            best, fewest = numa, n_open
    s.only_numa[0] = best
    return bool(best != c.ANY_NUMA)


@part
def _do_all_suffice(nodes: c.Nodes, cards: c.Cards, ask: c.Ask, row: int, s: c.Scratch) -> bool:
    """Whether the NUMA node of ``s.only_numa`` has what the pod asks of all families that are chosen jointly."""
    if not _suffice(nodes, cards, ask, row, s):
        return False
    for i in range(len(ask.more)):
        one = read_ask(ask.more[i])
        if one.rules.joint and not _suffice(nodes, cards, one, row, s):
            return False
    return True
