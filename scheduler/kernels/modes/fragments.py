"""FGD's fragment measure of a node: how much of its idle GPU the typical pods cannot use.

Source: Weng et al., "Beware of Fragmentation", USENIX ATC 2023, and its artifact. Per typical pod with
weight w, everything idle counts where the pod does not fit (CPU, number of cards, model) or asks no GPU;
where it fits, what is idle on cards that are too small for it. In whole numbers, so that equal nodes
have equal measures.

Ours is the credit for being close: where pods come and go, a node that lacks one card of eight is soon one
that has them, and one that lacks seven is not. So a node where the pod does not fit is forgiven half of what
is idle, times the part of the pod's cards or of its CPU that is there, whichever is less. It makes nodes that
are almost empty become empty, and CPU stay together for pods that ask much of it.
"""

from __future__ import annotations

from scheduler.kernels._jit import inlined, kernel
from scheduler.kernels.devices import free
from scheduler.schema import columns as c


@inlined
def fragments(
    typical: c.Typical,
    kind: int,
    row: int,
    cpu: int,
    states: c.Ints,
    n: int,
    s: c.Scratch,
    close: c.Ints,
    credit: bool,
) -> int:
    """Σ weight · fragment of one node, in weight · milli-GPU; ``cpu`` milli are free. O(n · K).

    With ``credit`` for being ``close``, see ``Demand``; without as published.
    """
    k_shapes = typical.weight.size
    idle = 0
    for k in range(k_shapes):
        s.fits[k] = 0
        s.frag[k] = 0
    for i in range(n):
        cores, mib, count = states[0, i], states[1, i], states[2, i]
        amount = min(cores, mib) * count
        idle += amount
        for k in range(k_shapes):
            usable = (cores >= typical.cores[kind, k]) & (mib >= typical.mib[kind, k])
            s.fits[k] += count if usable else 0
            s.frag[k] += 0 if usable else amount
    total = 0
    anywhere = typical.allowed.size == 0
    left = max(0, cpu)
    for k in range(k_shapes):
        fits = (cpu >= typical.cpu[k]) & (s.fits[k] >= typical.cards[k])
        if not anywhere:
            fits &= typical.allowed[row, k]
        lost = idle
        if credit:
            # No branch and no division: as many shapes at once as the machine has lanes.
            of_cards = (min(s.fits[k], typical.cards[k]) * close[0, k]) >> c.PER_SHIFT
            of_cpu = (left * close[1, k]) >> c.PER_SHIFT
            there = min(of_cards, of_cpu if left < typical.cpu[k] else c.PER_WHOLE)
            lost -= (idle * there) // (2 * c.PER_WHOLE)
        total += typical.weight[k] * (s.frag[k] if fits else lost)
    return total


@kernel
def of_rows(
    nodes: c.Nodes,
    cards: c.Cards,
    demand: c.Demand,
    rows: c.Ints,
    out: c.Floats,
    s: c.Scratch,
) -> None:
    """The measure of some nodes into ``out`` [N], in weight · milli-GPU; reads all but the scratch."""
    for i in range(rows.size):
        row = rows[i]
        n = free.read(nodes, cards, row, s)
        cpu = free.cpu(nodes, row)
        out[row] = fragments(
            demand.fgd, nodes.kind[row], row, cpu, s.states, n, s, demand.close, False
        )
