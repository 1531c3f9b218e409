"""Whose place a pod of higher priority may take: all who may go from a place are taken away, then put back in order.

Nothing is copied: what pods hold is taken off the totals and added again by ``charge``, so a node has in the end
exactly what it had. Who may go, and at what cost, is found out before: the search reads columns of units.
"""

from __future__ import annotations

from scheduler.kernels import charge, domains, fit, judging
from scheduler.kernels._jit import kernel, part
from scheduler.schema import columns as c
from scheduler.schema import domains as of_domains
from scheduler.schema import preempting as p
from scheduler.schema.handles import Flags1, Ints1
from scheduler.schema.world import World

# Added to every priority, so that more victims of a negative one do not sum up to less.
_LEAST_PRIORITY = 1 << 31


@kernel
def sort_by_place(node: Ints1, place_of: Ints1, first: Ints1, pods: Ints1) -> None:
    """Sort the rows of pods by place into ``pods``; ``first`` [n + 1] says where the pods of each place begin. O(M + n).

    ``node`` [M] is the node row of each pod; ``place_of`` [N] says which of the n places a node row is, -1 for none.
    """
    for i in range(first.size):
        first[i] = 0
    for i in range(node.size):
        if node[i] >= 0 and place_of[node[i]] >= 0:
            first[place_of[node[i]] + 1] += 1
    for i in range(1, first.size):
        first[i] += first[i - 1]
    for i in range(node.size):
        if node[i] >= 0 and place_of[node[i]] >= 0:
            place = place_of[node[i]]
            pods[first[place]] = i
            first[place] += 1
    for i in range(first.size - 1, 0, -1):
        first[i] = first[i - 1]
    first[0] = 0


@kernel
def gather_units(
    tables: c.Tables, first: Ints1, pods: Ints1, may_go: Flags1, units: p.Units
) -> None:
    """Fill in ``units``: each of the pods [k] that ``may_go`` is a unit; the units of a place are sorted by importance.

    ``first`` [n + 1] says where the pods of each place begin.
    """
    n = 0
    for place in range(first.size - 1):
        units.first[place] = n
        for i in range(first[place], first[place + 1]):
            if not may_go[i]:
                continue
            k = n
            while k > units.first[place] and _is_before(tables, pods[i], units.pods[k - 1]):
                units.pods[k] = units.pods[k - 1]
                k -= 1
            units.pods[k] = pods[i]
            n += 1
    units.first[first.size - 1] = n
    for k in range(n):
        units.begins[k] = k
        units.cost[k] = 0
    units.begins[n] = n


@part
def _is_before(tables: c.Tables, a: int, b: int) -> bool:
    """Whether a pod is more important: by priority, then by how long it runs; ties stay as they are."""
    if tables.pods.priority[a] != tables.pods.priority[b]:
        return bool(tables.pods.priority[a] > tables.pods.priority[b])
    return bool(tables.pods.start[a] < tables.pods.start[b])


@kernel
def use_up_budgets(units: p.Units, begin: int, end: int, budgets: p.BudgetSets) -> None:
    """Add 1 to the cost of units whose going violates a budget, on the places from ``begin`` to ``end``.

    On each place the budgets are used up in the order of importance; a pod that violates one uses up no further one.
    Source: kube-scheduler 1.37.1, ``preemption.FilterVictimsWithPDBViolation``.
    """
    for place in range(begin, end):
        first, last = units.first[place], units.first[place + 1]
        for i in range(units.begins[first], units.begins[last]):
            run = budgets.sets[units.pods[i]]
            if run >= 0:
                for k in range(budgets.runs[0, run], budgets.runs[0, run] + budgets.runs[1, run]):
                    budgets.left[budgets.budgets[k]] = budgets.allowed[budgets.budgets[k]]
        for unit in range(first, last):
            for i in range(units.begins[unit], units.begins[unit + 1]):
                units.cost[unit] += _violates(budgets, units.pods[i])


@part
def _violates(budgets: p.BudgetSets, pod: int) -> int:
    """Use up the budgets of a pod; return 1 if one of them allows nobody any more, else 0."""
    run = budgets.sets[pod]
    if run < 0:
        return 0
    for k in range(budgets.runs[0, run], budgets.runs[0, run] + budgets.runs[1, run]):
        budgets.left[budgets.budgets[k]] -= 1
        if budgets.left[budgets.budgets[k]] < 0:
            return 1
    return 0


@kernel
def search_places(
    world: World, ask: c.Ask, d: of_domains.Domains, units: p.Units, found: p.Search
) -> None:
    """Find who would have to go from each place.

    Writes who goes, the figures, and the bits of places where it is not enough that all go. Totals, cards and counts
    are as before when it returns. Pods of a unit that are on other nodes leave these as well.

    Cost: O(pods · (resources + cards² + tallies)) for a place.
    """
    tables = world.tables
    if d.tallies.shape[0] > 0:
        domains.prepare_tallies(d)
    for place in range(units.rows.size):
        row = units.rows[place]
        begin, end = units.first[place], units.first[place + 1]
        if begin == end:
            found.figures[p.PLACE_CODE, row] = p.NONE
            continue
        is_wide = d.tallies.shape[0] > 0 and _is_wide(tables, units, place)
        for t in range(d.tallies.shape[0]):
            found.fewest[t] = -1 if is_wide else d.tallies[t, of_domains.TALLY_FEWEST]
        for unit in range(begin, end):
            _move_unit(tables, d, units, found, unit, -1)
        for word in range(found.refused.shape[0]):
            found.refused[word, row] = 0
        found.refused[0, row] = found.words[place] | _find_bits(world, ask, d, row)
        if found.refused[0, row] != 0:
            if found.refused[0, row] & 1 << ask.prefers.bits[c.BIT_RESOURCES]:
                fit.note_short(tables.nodes, ask, row, row, found.refused)
            found.figures[p.PLACE_CODE, row] = p.NOT_ENOUGH
            for unit in range(begin, end):
                found.goes[unit] = False
                _move_unit(tables, d, units, found, unit, 1)
            continue
        _sort_units(units, found, begin, end)
        for k in range(begin, end):
            unit = found.order[k]
            _move_unit(tables, d, units, found, unit, 1)
            found.goes[unit] = _find_bits(world, ask, d, row) != 0
            if found.goes[unit]:
                _move_unit(tables, d, units, found, unit, -1)
        _sum_up(tables, d, units, found, place)


@part
def _is_wide(tables: c.Tables, units: p.Units, place: int) -> bool:
    """Whether a unit of a place has pods on other nodes."""
    first, last = units.first[place], units.first[place + 1]
    for i in range(units.begins[first], units.begins[last]):
        if tables.pods.node[units.pods[i]] != units.rows[place]:
            return True
    return False


@part
def _sort_units(units: p.Units, found: p.Search, begin: int, end: int) -> None:
    """Those whose going costs anything are put back first; of these, and of the others, the most important."""
    at = begin
    for has_cost in (True, False):
        for unit in range(begin, end):
            if (units.cost[unit] > 0) == has_cost:
                found.order[at] = unit
                at += 1


@part
def _sum_up(
    tables: c.Tables, d: of_domains.Domains, units: p.Units, found: p.Search, place: int
) -> None:
    """Put back who goes from a place, and write its figures."""
    figures, row = found.figures, units.rows[place]
    for figure in range(p.N_FIGURES):
        figures[figure, row] = 0
    n_pods, highest = 0, 0
    for unit in range(units.first[place], units.first[place + 1]):
        if not found.goes[unit]:
            continue
        _move_unit(tables, d, units, found, unit, 1)
        figures[p.PLACE_COST, row] += units.cost[unit]
        for i in range(units.begins[unit], units.begins[unit + 1]):
            pod = units.pods[i]
            priority, start = tables.pods.priority[pod], tables.pods.start[pod]
            figures[p.PLACE_SUM, row] += priority + _LEAST_PRIORITY
            if n_pods == 0:
                figures[p.PLACE_TOP, row] = priority
            if n_pods == 0 or priority > highest:
                highest = priority
                figures[p.PLACE_START, row] = start
            elif priority == highest:
                figures[p.PLACE_START, row] = min(figures[p.PLACE_START, row], start)
            n_pods += 1
    figures[p.PLACE_COUNT, row] = n_pods
    # Where nobody has to go there is nothing to gain.
    figures[p.PLACE_CODE, row] = p.ENOUGH if n_pods > 0 else p.NOT_ASKED


@part
def _move_unit(
    tables: c.Tables, d: of_domains.Domains, units: p.Units, found: p.Search, unit: int, sign: int
) -> None:
    """Take a unit away from its nodes (-1), or put it back (1), with what is counted of its pods."""
    for i in range(units.begins[unit], units.begins[unit + 1]):
        pod = units.pods[i]
        charge.add_charge(tables, pod, sign)
        for t in range(d.tallies.shape[0]):
            _count_pod(d, found, tables.pods.node[pod], t, sign * found.gains[t, pod])


@part
def _count_pod(d: of_domains.Domains, found: p.Search, row: int, t: int, gain: int) -> None:
    """A tally counts so many more on a row."""
    mask = d.tallies[t, of_domains.TALLY_MASK]
    if gain == 0 or (mask >= 0 and not d.counted[mask, row]):
        return
    v = domains.find_domain(d, t, row)
    if v < 0:
        return
    d.counts[t, v] += gain
    kind = d.tallies[t, of_domains.TALLY_KIND]
    if kind == of_domains.NEAR:
        d.figures[of_domains.FIGURE_NEAR] += gain
    elif kind == of_domains.EVEN and d.there[t, v]:
        if found.fewest[t] < 0:
            d.tallies[t, of_domains.TALLY_FEWEST] = domains.count_fewest(d, t)
        else:
            # Nothing but this domain has changed, and it has no more than it had.
            d.tallies[t, of_domains.TALLY_FEWEST] = min(found.fewest[t], d.counts[t, v])


@part
def _find_bits(world: World, ask: c.Ask, d: of_domains.Domains, row: int) -> int:
    """Why the pod does not fit on a row as it is now, by what pods on nodes decide; 0 where it does."""
    bits = judging.judge_row(world, ask, row)
    if d.tallies.shape[0] > 0:
        bits |= domains.find_bits(d, row)
    return int(bits)
