"""The ``keel`` mode: what a placement loses, in milli-GPU (1000 is one whole GPU).

    lost GPU = price · taken + 0.3 · Δshort + 0.3 · left + 3 · cut + 0.07 · rest + 2 · D · ΔF

- taken: idle milli-GPU of the cards that the pod takes away. A card gives the lesser of its free cores and
  its free memory, so a pod that fills up the dimension that is left over takes little.
- price: what a milli-GPU of this node is worth to pods that can go to few nodes, 0..1.
- short: idle milli-GPU for which the node has no CPU left, no memory, or none of another resource that the pods
  ask. It counts less where one of these is scarce for the pods as a whole, and nothing where GPUs must be left
  over whatever one does.
- left: milli-GPU of which the node keeps the CPU: best fit by CPU. It counts as much as short counts less:
  where CPU is what runs out, nodes are to be filled up with it. Where memory runs out, and before the demand is
  known in clusters of less than 1,000 cards, the milli-GPU that are left count as well: best fit by both.
- cut, shares only: value(before) − value(after) − value(size), where value(x) is the most that shares of
  the sizes seen can make of x: what the best filling of the remainder loses by this cut.
- rest, shares only: what is left on the card: best fit among equals.
- F: FGD's fragment measure, with credit for being close, weighed by D, departures per arrival: holes are worth
  keeping usable only where they come back.

Scores fall by one step for every 30 milli-GPU lost: less is noise. All figures that are learnt come from
``Demand``; the formula was found by simulation on the openb trace, see ``modes/demand_tables.py``.
"""

from __future__ import annotations

import math

from scheduler.kernels._jit import part, tiny
from scheduler.kernels.devices import free
from scheduler.schema import columns as c
from scheduler.schema.places import ANY

LEFT_WEIGHT, CUT_WEIGHT, REST_WEIGHT, FRAGMENT_WEIGHT = 0.3, 3.0, 0.07, 2.0
STEP = 30.0
# A step is worth this many milli-points around the middle of a mode's range 0..100,000.
STEP_POINTS, MIDDLE_POINTS = 10, 50_000
# A loss of exactly so many steps must not fall short by its last bit.
_EPSILON = 1e-9


@tiny
def score_loss(lost: float) -> int:
    """Return the milli-points of a loss: 10 less for every 30 milli-GPU, within 0..100,000."""
    steps = math.floor(-lost / STEP + _EPSILON)
    return max(0, min(2 * MIDDLE_POINTS, MIDDLE_POINTS + STEP_POINTS * int(steps)))


@part
def find_loss(demand: c.Demand, row: int, s: c.Scratch, idle: int, cpu: int, measure: int) -> float:
    """Return what a pod costs that leaves so much GPU and CPU idle and so many fragments, without the cut of a card.

    What the node has without the pod stands in ``Scratch.was`` and ``Scratch.served``; measures in weight · milli-GPU.
    """
    was = s.was
    cost = demand.price[row] * (was[c.WAS_IDLE] - idle)
    short_before = find_unserved(was[c.WAS_IDLE], s.served[0])
    cost += demand.rates[c.RATE_SHORT] * (find_unserved(idle, s.served[1]) - short_before)
    rate = demand.rates[c.RATE_KEEL]
    cost += (
        FRAGMENT_WEIGHT
        * demand.rates[c.RATE_DEPARTURES]
        * (measure / rate - was[c.WAS_MEASURE] / rate)
    )
    cost += demand.rates[c.RATE_LEFT] * idle
    cost += demand.rates[c.RATE_LEFT_CPU] * cpu
    return float(cost)


@part
def find_cut(
    cards: c.Cards, value: c.Floats, d: int, held: tuple[int, int], was: int, rest: int
) -> float:
    """Return what a share loses on the card from which it is cut; nothing for whole cards.

    ``value`` is that of the card's kind, ``held`` the cores and MiB of the pod; the card can give ``was`` before
    the pod and ``rest`` with it.
    """
    size = max(
        free.convert_to_milli(cards, c.CORES, d, held[0]) if cards.milli[c.CORES, d] > 0 else 0,
        free.convert_to_milli(cards, c.MIB, d, held[1]) if cards.milli[c.MIB, d] > 0 else 0,
    )
    if size >= c.WHOLE:
        return 0.0
    loss = max(0.0, float(value[was] - value[rest] - value[size]))
    return CUT_WEIGHT * loss + REST_WEIGHT * rest


@tiny
def find_unserved(idle: float, served: float) -> float:
    """Return the idle milli-GPU beyond those that can be served."""
    return max(0.0, idle - served)


@tiny
def find_served(nodes: c.Nodes, ask: c.Ask, demand: c.Demand, row: int) -> tuple[float, float]:
    """Find how many milli-GPU the other resources of a node can serve, before a pod and with it. O(R · resources asked)."""
    before = after = ANY
    rate = demand.rates[c.RATE_CPU]
    if rate > 0:
        cpu = free.find_free_cpu(nodes, row)
        before, after = cpu * rate, (cpu - ask.dim_amounts[0]) * rate
    for i in range(demand.serving.size):
        r = demand.serving[i]
        left = nodes.allocatable[r, row] - nodes.requested[r, row]
        before = min(before, left * demand.served[i])
        for k in range(ask.resources.size):
            if ask.resources[k] == r:
                left -= ask.amounts[k]
        after = min(after, left * demand.served[i])
    return before, after
