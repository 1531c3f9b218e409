"""Why not: the same checks as when placing, without stopping at the first node that fits."""

from __future__ import annotations

from scheduler.kernels import fit
from scheduler.kernels._jit import kernel
from scheduler.kernels.devices import gpus
from scheduler.schema import columns as c

FITS, RESOURCES, CARDS = 0, 6, 7  # api/reasons.py Refusal


@kernel
def diagnose(
    nodes: c.Nodes,
    cards: c.Cards,
    ask: c.Ask,
    rows: c.Ints,
    s: c.Scratch,
    short: c.Flags,
    codes: c.Ints,
    verdict: c.Ints,
) -> None:
    """Judge each of ``rows`` [n]: resources short into ``short`` [n, k], HAMi's card counts into ``codes`` [n, 13].

    ``verdict`` [n] is 0 where the pod fits, else the Refusal. O(n · (k + cards²)).
    """
    for i in range(rows.size):
        row = rows[i]
        for code in range(c.N_CARD_CODES):
            codes[i, code] = 0
        verdict[i] = FITS
        if fit.refused_resources(nodes, ask, row, short[i]):
            verdict[i] = RESOURCES
        elif (
            ask.containers.shape[1] > 0
            and nodes.managed[row]
            and gpus.choose(nodes, cards, ask, row, s) < 0
        ):
            verdict[i] = CARDS
            for code in range(c.N_CARD_CODES):
                codes[i, code] = s.codes[code]
