"""FGD's fragment measure of a node: how much of its idle GPU the typical pods cannot use.

Source: Weng et al., "Beware of Fragmentation", USENIX ATC 2023, and its artifact. Per typical pod with
weight w, everything idle counts where the pod does not fit (CPU, number of cards, model) or asks no GPU;
where it fits, what is idle on cards that are too small for it. In whole numbers, so that equal nodes
have equal measures.
"""

from __future__ import annotations

from scheduler.kernels import columns as c
from scheduler.kernels import free
from scheduler.kernels._jit import inlined, kernel


@inlined
def fragments(
    typical: c.Typical, kind: int, row: int, cpu: int, states: c.Ints, n: int, s: c.Scratch
) -> int:
    """Σ weight · fragment of one node, in weight · milli-GPU; ``cpu`` milli are free. O(n · K)."""
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
    for k in range(k_shapes):
        fits = (cpu >= typical.cpu[k]) & (s.fits[k] >= typical.cards[k])
        if not anywhere:
            fits &= typical.allowed[row, k]
        total += typical.weight[k] * (s.frag[k] if fits else idle)
    return total


@kernel
def of_rows(
    nodes: c.Nodes,
    cards: c.Cards,
    typical: c.Typical,
    rows: c.Ints,
    out: c.Floats,
    s: c.Scratch,
) -> None:
    """The measure of some nodes into ``out`` [N], in weight · milli-GPU; reads all but the scratch."""
    for i in range(rows.size):
        row = rows[i]
        n = free.read(nodes, cards, row, s)
        cpu = free.cpu(nodes, row)
        out[row] = fragments(typical, nodes.kind[row], row, cpu, s.states, n, s)
