"""Whose place a pod of higher priority may take on a node: all who may go are taken away, then put back in order.

Nothing is copied: what pods hold is taken off the totals and added again by ``charge``, so a node has in the end
exactly what it had.
"""

from __future__ import annotations

from scheduler.kernels import charge, domains, fit, judging
from scheduler.kernels._jit import kernel, part
from scheduler.schema import columns as c
from scheduler.schema import preempting as p
from scheduler.schema.handles import Ints1
from scheduler.schema.world import World

# Added to every priority, so that more victims of a negative one do not sum up to less.
_LEAST_PRIORITY = 1 << 31


@kernel
def by_node(node: Ints1, first: Ints1, pods: Ints1) -> None:
    """The rows of pods ``node`` [M] node by node: ``first`` [N + 1] into ``pods`` [M]. O(M + N)."""
    for row in range(first.size):
        first[row] = 0
    for i in range(node.size):
        if node[i] >= 0:
            first[node[i] + 1] += 1
    for row in range(1, first.size):
        first[row] += first[row - 1]
    for i in range(node.size):
        if node[i] >= 0:
            pods[first[node[i]]] = i
            first[node[i]] += 1
    for row in range(first.size - 1, 0, -1):
        first[row] = first[row - 1]
    first[0] = 0


@kernel
def ask(world: World, ask: c.Ask, d: c.Domains, prey: p.Prey) -> int:
    """Ask ``prey.rows`` who would have to go. Writes the figures, and the bits of nodes where that is not enough.

    Totals, cards and counts are as before when it returns.

    Returns:
        How many pods go from the last row; they stand in ``prey.order``.

    Cost: O(pods · (resources + cards² + tallies)) for a row.
    """
    tables = world.tables
    n_victims = 0
    if d.tallies.shape[0] > 0:
        domains.prepare(d)
        for t in range(d.tallies.shape[0]):
            prey.fewest[t] = d.tallies[t, c.TALLY_FEWEST]
    for i in range(prey.rows.size):
        row = prey.rows[i]
        n_victims = 0
        n = _gather(tables, prey, row)
        if n == 0:
            prey.figures[p.PREY_CODE, row] = p.PREY_NONE
            continue
        for k in range(n):
            _move(tables, d, prey, row, prey.order[k], -1)
        for word in range(prey.refused.shape[0]):
            prey.refused[word, row] = 0
        prey.refused[0, row] = prey.words[i] | _bits(world, ask, d, row)
        if prey.refused[0, row] != 0:
            if prey.refused[0, row] & 1 << ask.prefers.bits[c.BIT_RESOURCES]:
                fit.note(tables.nodes, ask, row, row, prey.refused)
            prey.figures[p.PREY_CODE, row] = p.PREY_NOT_ENOUGH
            for k in range(n):
                _move(tables, d, prey, row, prey.order[k], 1)
            continue
        _split(prey, n)
        for turn in range(2):
            for k in range(n):
                if prey.violates[k] == (turn == 0):
                    _move(tables, d, prey, row, prey.order[k], 1)
                    prey.goes[k] = _bits(world, ask, d, row) != 0
                    if prey.goes[k]:
                        _move(tables, d, prey, row, prey.order[k], -1)
        n_victims = _sum_up(tables, d, prey, row, n)
    return int(n_victims)


@part
def _gather(tables: c.Tables, prey: p.Prey, row: int) -> int:
    """The pods of a node of a lower priority into ``order``, the most important first: how many there are."""
    n = 0
    for i in range(prey.first[row], prey.first[row + 1]):
        pod = prey.pods[i]
        if tables.pods.priority[pod] >= prey.priority:
            continue
        k = n
        while k > 0 and _is_before(tables, pod, prey.order[k - 1]):
            prey.order[k] = prey.order[k - 1]
            k -= 1
        prey.order[k] = pod
        n += 1
    return n


@part
def _is_before(tables: c.Tables, a: int, b: int) -> bool:
    """Whether a pod is more important: by priority, then by how long it runs; ties stay as they are."""
    if tables.pods.priority[a] != tables.pods.priority[b]:
        return bool(tables.pods.priority[a] > tables.pods.priority[b])
    return bool(tables.pods.start[a] < tables.pods.start[b])


@part
def _split(prey: p.Prey, n: int) -> None:
    """Whose going violates a budget: the budgets are used up in the order of importance."""
    for k in range(n):
        group = prey.sets[prey.order[k]]
        if group >= 0:
            for i in range(prey.runs[0, group], prey.runs[0, group] + prey.runs[1, group]):
                prey.left[prey.budgets[i]] = prey.allowed[prey.budgets[i]]
    for k in range(n):
        prey.violates[k] = False
        group = prey.sets[prey.order[k]]
        if group < 0:
            continue
        for i in range(prey.runs[0, group], prey.runs[0, group] + prey.runs[1, group]):
            prey.left[prey.budgets[i]] -= 1
            if prey.left[prey.budgets[i]] < 0:
                prey.violates[k] = True
                break


@part
def _sum_up(tables: c.Tables, d: c.Domains, prey: p.Prey, row: int, n: int) -> int:
    """Put back who goes, and leave only them in ``order``."""
    figures = prey.figures
    for figure in range(p.N_PREY):
        figures[figure, row] = 0
    n_victims = 0
    for k in range(n):
        if not prey.goes[k]:
            continue
        pod = prey.order[k]
        _move(tables, d, prey, row, pod, 1)
        priority, start = tables.pods.priority[pod], tables.pods.start[pod]
        figures[p.PREY_VIOLATIONS, row] += prey.violates[k]
        figures[p.PREY_SUM, row] += priority + _LEAST_PRIORITY
        if n_victims == 0:
            figures[p.PREY_TOP, row] = priority
            figures[p.PREY_START, row] = start
        elif priority == figures[p.PREY_TOP, row]:
            figures[p.PREY_START, row] = min(figures[p.PREY_START, row], start)
        prey.order[n_victims] = pod
        n_victims += 1
    figures[p.PREY_COUNT, row] = n_victims
    # Where nobody has to go there is nothing to gain.
    figures[p.PREY_CODE, row] = p.PREY_ENOUGH if n_victims > 0 else p.PREY_NOT_ASKED
    return n_victims


@part
def _move(tables: c.Tables, d: c.Domains, prey: p.Prey, row: int, pod: int, sign: int) -> None:
    """Take a pod away from its node (-1), or put it back (1), with what is counted of it."""
    charge.add(tables, pod, sign)
    for t in range(d.tallies.shape[0]):
        gain = sign * prey.gains[t, pod]
        mask = d.tallies[t, c.TALLY_MASK]
        if gain == 0 or (mask >= 0 and not d.counted[mask, row]):
            continue
        v = domains.domain_of(d, t, row)
        if v < 0:
            continue
        d.counts[t, v] += gain
        kind = d.tallies[t, c.TALLY_KIND]
        if kind == c.NEAR:
            d.figures[c.FIGURE_NEAR] += gain
        elif kind == c.EVEN and d.there[t, v]:
            # Nothing but this domain has changed, and it has no more than it had.
            d.tallies[t, c.TALLY_FEWEST] = min(prey.fewest[t], d.counts[t, v])


@part
def _bits(world: World, ask: c.Ask, d: c.Domains, row: int) -> int:
    """Why the pod does not fit on a row as it is now, by what pods on nodes decide; 0 where it does."""
    bits = judging.judge(world, ask, row)
    if d.tallies.shape[0] > 0:
        bits |= domains.bits_of(d, row)
    return int(bits)
