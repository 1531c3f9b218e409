"""Figures of teams: what each uses, how long it waits, what is missing to its fair part, and what evictions cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler.api import names
from scheduler.api.queues.definitions import UNLIMITED
from scheduler.replay import demand, workloads
from scheduler.replay.experiment import WHOLE, Floats, Ints, Series, Trace, Workload
from scheduler.replay.measures import averages, fair, kai_parts, usage
from scheduler.replay.measures.averages import Record
from scheduler.replay.policies import Policy

# Use and fair parts are means over so many equal steps of time.
N_STEPS = 1000
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class TeamCurves:
    """What T teams use, and what their fair parts are, in percent of all there is, in S steps of time.

    Attributes:
        teams: the names of the teams.
        x: [S] the middle of each step, in seconds from the first arrival on.
        used, fair: [T, S] means over each step.
    """

    teams: tuple[str, ...]
    x: Floats
    used: Floats
    fair: Floats


def make_curves(
    trace: Trace, workload: Workload, series: Series, policy: Policy
) -> TeamCurves | None:
    """Make the lines of all teams over the time from the first arrival to the last; None if that is no time."""
    start, end = float(workload.at[0]), float(workload.at[-1])
    if end <= start:
        return None
    edges = np.linspace(start, end, N_STEPS + 1)
    amounts, capacity = workloads.read_load(trace)
    stays, amounts = usage.list_stays(workload, series), amounts[workload.pod]
    finish = usage.find_finish(len(workload.at), stays)
    teams = trace.teams
    of_team = _find_teams(trace, workload)
    used, wanted = np.zeros((2, len(teams), N_STEPS))
    for k in range(len(teams)):
        is_there = of_team[stays.arrival] == k
        used[k] = _measure(
            stays.start[is_there], stays.end[is_there], amounts[stays.arrival[is_there]], edges
        )
        is_own = of_team == k
        wanted[k] = _measure(workload.at[is_own], finish[is_own], amounts[is_own], edges)
    is_other = of_team[stays.arrival] < 0
    others = _measure(
        stays.start[is_other], stays.end[is_other], amounts[stays.arrival[is_other]], edges
    )
    find = kai_parts.find_parts if policy.kai else find_fair_parts
    parts = find(trace, policy, capacity - others, wanted)
    percent = 100.0 / capacity
    middles: Floats = (edges[:-1] + edges[1:]) / 2.0 - start
    return TeamCurves(teams, middles, used * percent, parts * percent)


def make_figures(
    trace: Trace, workload: Workload, series: Series, curves: TeamCurves | None
) -> Record:
    """Make the figures of teams.

    ``team_missing_*``: of the fair part over time, the part that the team did not use although it had work for it, in
    percent; ``teams_missing_percent`` of all teams. A pod waits while it has no place, also after an eviction.
    """
    stays = usage.list_stays(workload, series)
    waited = usage.find_waits(workload, stays)
    of_team = _find_teams(trace, workload)
    record: Record = {}
    for k, team in enumerate(trace.teams):
        own = waited[of_team == k]
        record |= {
            f"team_used_{team}_percent": None if curves is None else float(curves.used[k].mean()),
            f"team_missing_{team}_percent": None if curves is None else _find_missing(curves, k),
            f"team_wait_mean_{team}_seconds": averages.find_mean(own),
            f"team_wait_p95_{team}_seconds": averages.find_percentile(own, 95),
        }
    record["teams_missing_percent"] = None if curves is None else _find_missing(curves)
    amounts = workloads.read_load(trace)[0][workload.pod][stays.arrival]
    lasted = (np.minimum(stays.end, workload.at[-1]) - np.minimum(stays.start, workload.at[-1])) * amounts  # fmt: skip
    record["evicted_pods"] = int(stays.is_lost.sum())
    total = float(lasted.sum())
    record["evicted_work_percent"] = (
        100.0 * float(lasted[stays.is_lost].sum()) / total if total else None
    )
    return record


def _find_missing(curves: TeamCurves, team: int | slice = slice(None)) -> float | None:
    parts = curves.fair[team].sum()
    missing = np.maximum(0.0, curves.fair[team] - curves.used[team]).sum()
    return 100.0 * float(missing / parts) if parts > 0 else None


def find_fair_parts(trace: Trace, policy: Policy, total: Floats, wanted: Floats) -> Floats:
    """Find [T, S] the fair parts of teams: first of their ClusterQueues, then of the teams of each."""
    names_ = list(dict.fromkeys(policy.teams[team].queue for team in trace.teams))
    of_queue = np.array([names_.index(policy.teams[team].queue) for team in trace.teams])
    together = np.zeros((len(names_), total.size))
    np.add.at(together, of_queue, wanted)
    owed = np.array([read_owed(trace, policy, name) for name in names_])
    weights = np.array([policy.queues[name].weight for name in names_])
    parts_of_queues = fair.find_parts(total, together, owed, weights)
    parts = np.zeros_like(wanted)
    for k in range(len(names_)):
        own = np.flatnonzero(of_queue == k)
        of_teams = np.array([policy.teams[trace.teams[i]].weight for i in own])
        parts[own] = fair.find_parts(parts_of_queues[k], wanted[own], of_teams * 0.0, of_teams)
        # What is left is for teams without a weight.
        left = parts_of_queues[k] - parts[own].sum(axis=0)
        parts[own] += fair.divide(left, wanted[own] - parts[own], np.ones(own.size))
    return parts


def read_owed(trace: Trace, policy: Policy, queue: str) -> float:
    """Read what a ClusterQueue is owed of the load's resource, in its unit; of GPUs by their compute where that has quota."""
    load, capacity = demand.read_demand(trace).load_name, workloads.read_load(trace)[1]
    nominal: dict[str, float] = {}
    for group in policy.queues[queue].groups:
        for quotas in group.flavors:
            for resource, quota in zip(group.resources, quotas.quotas, strict=True):
                is_endless = quota.nominal == UNLIMITED
                amount = capacity if is_endless else _convert(load, resource, quota.nominal)
                nominal[resource] = nominal.get(resource, 0.0) + amount
    resources = (names.GPU_CORES, names.GPU) if load == demand.GPU else (load,)
    return min(capacity, next((nominal[one] for one in resources if one in nominal), 0.0))


def _convert(load: str, resource: str, amount: int) -> float:
    """Convert an amount of a quota to the unit of a trace."""
    if load == demand.GPU:
        # Compute is in percent of a GPU.
        return float(amount * WHOLE / 100 if resource == names.GPU_CORES else amount * WHOLE)
    return amount / _MIB if load == demand.MEMORY else float(amount)


def _find_teams(trace: Trace, workload: Workload) -> Ints:
    """Find [A] the index of the team of each arrival; -1 for none."""
    index = {team: k for k, team in enumerate(trace.teams)}
    of_pod = np.array([index.get(pod.queue, -1) for pod in trace.pods], np.int64)
    return of_pod[workload.pod]


def _measure(start: Floats, end: Floats, amounts: Ints, edges: Floats) -> Floats:
    """Measure what is there, in means over the steps between edges."""
    line = usage.make_line(np.concatenate([start, end]), np.concatenate([amounts, -amounts]))
    return line.list_means(edges)
