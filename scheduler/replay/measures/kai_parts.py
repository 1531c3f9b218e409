"""Fair parts of teams in KAI's queues: level by level, first the quotas, then by priority and weight.

This is KAI's own rule with two differences: amounts are not rounded to whole cards, and usage before the moment does not
count. So a policy with usage is compared by what it makes of each moment.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.api import names
from scheduler.api.queues.kai import CARD, UNLIMITED, KaiQueue
from scheduler.replay import demand
from scheduler.replay.experiment import WHOLE, Floats, Trace
from scheduler.replay.kai_policies import list_children
from scheduler.replay.measures import fair
from scheduler.replay.policies import Policy

_MIB = 2**20


def find_parts(trace: Trace, policy: Policy, total: Floats, wanted: Floats) -> Floats:
    """Find [T, S] the fair parts of teams, of [S] totals and [T, S] wants."""
    of_team = {team: wanted[k] for k, team in enumerate(trace.teams)}
    load = demand.read_demand(trace).load_name
    found = {}
    waiting = [("", total)]
    while waiting:
        above, amounts = waiting.pop()
        queues = list_children(policy.kai, above)
        if not queues:
            found[above] = amounts
            continue
        own = np.array([_sum_wanted(policy, one.name, of_team, total) for one in queues])
        parts = _divide(load, queues, amounts, own)
        waiting += [(one.name, part) for one, part in zip(queues, parts, strict=True)]
    nothing = np.zeros_like(total)
    return np.array([found.get(team, nothing) for team in trace.teams])


def _sum_wanted(policy: Policy, queue: str, of_team: dict[str, Floats], total: Floats) -> Floats:
    """Sum up what the teams in a queue and below it want."""
    wanted = of_team.get(queue, np.zeros_like(total))
    for one in list_children(policy.kai, queue):
        wanted = wanted + _sum_wanted(policy, one.name, of_team, total)
    return wanted


def _divide(load: str, queues: Sequence[KaiQueue], total: Floats, wanted: Floats) -> Floats:
    """Divide [S] totals among queues of one level."""
    owed, most, weights = (np.array(column) for column in zip(*(_read(load, one) for one in queues), strict=True))  # fmt: skip
    wanted = np.minimum(wanted, most[:, None])
    # Quotas may be more than there is: then each gets its share of them.
    owed = np.minimum(owed, total.max(initial=0.0))
    parts = fair.divide(total, np.minimum(wanted, owed[:, None]), owed)
    for priority in sorted({one.priority for one in queues}, reverse=True):
        own = np.array([one.priority == priority for one in queues])
        left = total - parts.sum(axis=0)
        parts[own] += fair.divide(left, wanted[own] - parts[own], weights[own])
    return parts


def _read(load: str, queue: KaiQueue) -> tuple[float, float, float]:
    """Read the quota, the limit and the weight of a queue, in the units of a trace."""
    if load not in {names.CPU, names.MEMORY, demand.GPU}:
        # KAI has no quotas of other resources.
        return 0.0, np.inf, 1.0
    i, unit = {
        names.CPU: (0, 1.0),
        names.MEMORY: (1, 1.0 / _MIB),
        demand.GPU: (2, WHOLE / CARD),
    }[load]
    quota, limit = (
        np.inf if one == UNLIMITED else one * unit for one in (queue.quota[i], queue.limit[i])
    )
    return quota, limit, queue.weights[i]
