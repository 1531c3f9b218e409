"""FGD's fragment measure of a node: how much of its idle GPU the typical pods cannot use.

Source: Weng et al., "Beware of Fragmentation", USENIX ATC 2023, and its artifact. Per typical pod with
weight w, everything idle counts where the pod does not fit (CPU, number of cards, model) or asks no GPU;
where it fits, what is idle on cards that are too small for it. In whole numbers, so that equal nodes
have equal measures.

Ours is the credit for being close: where pods come and go, a node that lacks one card of eight is soon one
that has them, and one that lacks seven is not. So a node where the pod does not fit is forgiven half of what
is idle, times the part of the pod's cards or of its CPU that is there, whichever is less. It makes nodes that
are almost empty become empty, and CPU stay together for pods that ask much of it.

What a pod changes is counted, not the whole node again: ``count_cards`` looks at all cards, ``change_counts`` at one, and
``sum_fragments`` weighs what they found.
"""

from __future__ import annotations

from scheduler.kernels._jit import kernel, part
from scheduler.kernels.devices import free, pools
from scheduler.schema import columns as c
from scheduler.schema.handles import Floats1, Ints1
from scheduler.schema.world import World

# Half of what is there, in parts of PER_WHOLE.
_HALF_SHIFT = (2 * c.PER_WHOLE).bit_length() - 1


@part
def count_cards(typical: c.Typical, n: int, s: c.Scratch) -> None:
    """Count for each typical pod, over ``n`` states, the cards that it can use (``s.fits``) and what is idle on others. O(n · K)."""
    k_shapes = typical.weight.size
    for k in range(k_shapes):
        s.fits[k] = 0
        s.frag[k] = 0
    for i in range(n):
        cores, mib, cards, kind = s.states[0, i], s.states[1, i], s.states[2, i], s.states[3, i]
        amount = min(cores, mib) * cards
        for k in range(k_shapes):
            usable = (cores >= typical.cores[kind, k]) & (mib >= typical.mib[kind, k])
            s.fits[k] += cards if usable else 0
            s.frag[k] += 0 if usable else amount


@part
def keep_counts(typical: c.Typical, s: c.Scratch) -> None:
    """Copy what was counted, before anything changes. O(K)."""
    for k in range(typical.weight.size):
        s.fits_with[k] = s.fits[k]
        s.frag_with[k] = s.frag[k]


@part
def change_counts(
    typical: c.Typical,
    kind: int,
    cards: int,
    was: tuple[int, int],
    now: tuple[int, int],
    s: c.Scratch,
) -> None:
    """Count that so many cards of a kind with (cores, memory) of ``was`` have ``now`` instead; a 0 in either is nothing. O(K)."""
    amount_was = free.find_usable(was[0], was[1])
    amount_now = free.find_usable(now[0], now[1])
    # What is closed is of no use, to pods that ask no cores neither.
    cores_was = was[0] if amount_was > 0 else -1
    cores_now = now[0] if amount_now > 0 else -1
    for k in range(typical.weight.size):
        cores, mib = typical.cores[kind, k], typical.mib[kind, k]
        used = (cores_was >= cores) & (was[1] >= mib)
        use = (cores_now >= cores) & (now[1] >= mib)
        s.fits_with[k] += ((1 if use else 0) - (1 if used else 0)) * cards
        s.frag_with[k] += ((0 if use else amount_now) - (0 if used else amount_was)) * cards


@part
def sum_fragments(
    typical: c.Typical,
    close: c.Ints,
    row: int,
    cpu: int,
    idle: int,
    counted: tuple[c.Ints, c.Ints],
    credit: bool,
) -> int:
    """Sum weight · fragment of a node with so much idle, in weight · milli-GPU; ``cpu`` milli are free. O(K).

    ``counted`` are fits and frag. With ``credit`` for being ``close``, see ``Demand``; without as published.
    """
    fits_on, frag = counted
    found = 0
    left = max(0, cpu)
    for k in range(typical.weight.size):
        lost = idle
        if credit:
            lost -= (idle * find_credit(typical, close, left, k, fits_on)) >> _HALF_SHIFT
        found += typical.weight[k] * (frag[k] if fits(typical, row, cpu, k, fits_on) else lost)
    return found


@part
def fits(typical: c.Typical, row: int, cpu: int, k: int, fits_on: c.Ints) -> bool:
    """Whether typical pod k fits where it can use ``fits_on`` [k] cards."""
    found = (cpu >= typical.cpu[k]) & (fits_on[k] >= typical.cards[k])
    if typical.allowed.size > 0:
        found &= typical.allowed[row, k]
    return bool(found)


@part
def find_credit(typical: c.Typical, close: c.Ints, left: int, k: int, fits_on: c.Ints) -> int:
    """Return for how much of typical pod k there is room with ``left`` milli-CPU, in parts of PER_WHOLE."""
    # No branch and no division: as many shapes at once as the machine has lanes.
    of_cards = (min(fits_on[k], typical.cards[k]) * close[0, k]) >> c.PER_SHIFT
    of_cpu = (left * close[1, k]) >> c.PER_SHIFT
    return int(min(of_cards, of_cpu if left < typical.cpu[k] else c.PER_WHOLE))


@kernel
def measure_rows(world: World, rows: Ints1, out: Floats1) -> None:
    """Measure the fragments of the first pools of some nodes into ``out`` [N], in weight · milli-GPU; reads all but the scratch."""
    nodes, cards, demand, s = world.tables.nodes, world.tables.cards, world.demand, world.scratch
    for i in range(rows.size):
        row = rows[i]
        n = free.read_cards(nodes, cards, pools.find_first(nodes, row), row, s)
        idle, cpu = free.sum_idle(s.states, n), free.find_free_cpu(nodes, row)
        count_cards(demand.fgd, n, s)
        out[row] = sum_fragments(demand.fgd, demand.close, row, cpu, idle, (s.fits, s.frag), False)
