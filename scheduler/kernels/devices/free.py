"""What is free on the cards of one of a node's pools, in milli of a card, before and with the pod.

A card has two dimensions, cores and memory; what it can still give is the lesser of the two shares.
Cards that are closed (unhealthy, cordoned, in MIG mode with unknown parts, out of sharers) give nothing. A card that can
be cut gives what its free slots can still be cut into. Cards of one kind with the same
two figures are alike to every formula, so a pool is a short list of states: (cores, memory, how many, kind).
Devices that are only counted are one state.
"""

from __future__ import annotations

from scheduler.kernels._jit import part, tiny
from scheduler.kernels.devices import carving, pools
from scheduler.schema import columns as c

# Shares are floor(figure · (1000 / total)): the product may fall short of a whole number by its last bit.
_EPSILON = 1e-6


@part
def read_cards(nodes: c.Nodes, cards: c.Cards, pool: int, row: int, s: c.Scratch) -> int:
    """Fill ``s.free`` (pools of cards) and ``s.states``; return how many states there are."""
    n = 0
    if not nodes.pools.managed[pool]:
        whole = nodes.allocatable[nodes.pools.resource[pool], row] - pools.count_devices(
            nodes, pool, row
        )
        if whole > 0:
            s.states[0, 0], s.states[1, 0], s.states[2, 0], s.states[3, 0] = (
                c.WHOLE,
                c.WHOLE,
                whole,
                0,
            )
            n = 1
        return n
    start = nodes.pools.start[pool]
    for j in range(nodes.pools.count[pool]):
        d = start + j
        cores, mib = 0, 0
        if is_open(cards, d):
            cores = convert_to_milli(
                cards, c.CORES, d, cards.total[c.CORES, d] - cards.used[c.CORES, d]
            )
            mib = convert_to_milli(cards, c.MIB, d, cards.total[c.MIB, d] - cards.used[c.MIB, d])
            if cards.carving[d] > 0:
                cores = mib = carving.get_room(cards, d, cards.cut[d])
        s.free[0, j] = cores
        s.free[1, j] = mib
        n = add_state(s.states, n, cores, mib, cards.kind[d])
    return n


@tiny
def is_open(cards: c.Cards, d: int) -> bool:
    """Whether a card can be given to any pod at all."""
    return bool(
        cards.healthy[d]
        and not cards.cordoned[d]
        and (not cards.mig[d] or cards.carving[d] > 0)
        and cards.used[c.SLOTS, d] < cards.total[c.SLOTS, d]
    )


@part
def find_used_share(nodes: c.Nodes, pool: int, row: int, idle: int) -> float:
    """Return the share of a node's devices that is not idle, 0..1."""
    count = nodes.allocatable[nodes.pools.resource[pool], row]
    if nodes.pools.managed[pool]:
        count = nodes.pools.count[pool]
    return 1.0 - idle / (count * c.WHOLE) if count > 0 else 1.0


@tiny
def find_free_cpu(nodes: c.Nodes, row: int) -> int:
    """Return the milli-CPU of a node that no pod has requested."""
    return int(nodes.allocatable[c.CPU, row] - nodes.requested[c.CPU, row])


@tiny
def convert_to_milli(cards: c.Cards, figure: int, d: int, amount: int) -> int:
    """Convert an amount of cores or MiB to milli of the card; a card without a total of the figure is always whole."""
    scale = cards.milli[figure, d]
    return int(amount * scale + _EPSILON) if scale > 0 else c.WHOLE


@tiny
def add_state(states: c.Ints, n: int, cores: int, mib: int, kind: int) -> int:
    """Add a card in this state; return how many states there are then."""
    if cores <= 0 or mib <= 0:
        return n
    for i in range(n):
        if states[0, i] == cores and states[1, i] == mib and states[3, i] == kind:
            states[2, i] += 1
            return n
    states[0, n], states[1, n], states[2, n], states[3, n] = cores, mib, 1, kind
    return n + 1


@tiny
def find_usable(cores: int, mib: int) -> int:
    """Return the milli-GPU that a card with so much of both can still give."""
    return (cores if cores < mib else mib) if cores > 0 and mib > 0 else 0


@part
def sum_taken(nodes: c.Nodes, cards: c.Cards, ask: c.Ask, row: int, n: int, s: c.Scratch) -> int:
    """Sum the milli-GPU that the node can give no more when the pod has what stands in ``s.peak``."""
    if ask.containers.shape[1] == 0:
        return 0
    pool = pools.find_pool(nodes, ask, row)
    if not nodes.pools.managed[pool]:
        return min(ask.rules.whole, s.states[2, 0]) * c.WHOLE if n > 0 else 0
    start, gone = nodes.pools.start[pool], 0
    for j in range(nodes.pools.count[pool]):
        if s.peak[c.SLOTS, j] > 0:
            cores, mib = read_card_with_pod(cards, start, j, s)
            gone += find_usable(s.free[0, j], s.free[1, j]) - find_usable(cores, mib)
    return gone


@part
def read_card_with_pod(cards: c.Cards, start: int, j: int, s: c.Scratch) -> tuple[int, int]:
    """Return what is free on a card when the pod has what stands in ``s.peak``."""
    d = start + j
    if cards.carving[d] > 0:
        is_full = cards.used[c.SLOTS, d] + s.peak[c.SLOTS, j] >= cards.total[c.SLOTS, d]
        room = 0 if is_full else carving.get_room(cards, d, s.cut[j])
        return room, room
    return read_card_without(cards, d, (s.peak[c.CORES, j], s.peak[c.MIB, j], s.peak[c.SLOTS, j]))


@part
def read_card_without(cards: c.Cards, d: int, held: tuple[int, int, int]) -> tuple[int, int]:
    """Return what is free on a card, not one that can be cut, when so many more cores, MiB and slots of it are held."""
    if cards.used[c.SLOTS, d] + held[2] >= cards.total[c.SLOTS, d]:
        return 0, 0
    cores = convert_to_milli(
        cards, c.CORES, d, cards.total[c.CORES, d] - cards.used[c.CORES, d] - held[0]
    )
    return cores, convert_to_milli(
        cards, c.MIB, d, cards.total[c.MIB, d] - cards.used[c.MIB, d] - held[1]
    )


@tiny
def sum_idle(states: c.Ints, n: int) -> int:
    """Sum the milli-GPU that the states can still give."""
    total = 0
    for i in range(n):
        total += min(states[0, i], states[1, i]) * states[2, i]
    return total
