"""NodeResourcesFit: the node has enough free of every resource that the pod requests."""

from __future__ import annotations

import numpy as np

from scheduler.api import names
from scheduler.api.door.decisions import Detail
from scheduler.devices.table import INNER_RESOURCES, place_of
from scheduler.plugins import words
from scheduler.plugins.contract import (
    Asked,
    Compiled,
    Held,
    Hint,
    Judged,
    Reason,
    Row,
    RowReasons,
    Rule,
    Summary,
    summary,
)
from scheduler.schema import columns as c
from scheduler.schema import shared
from scheduler.state.cluster import Cluster

# The others are only named: a pod may request hundreds. So are resources that only cards have: reasons of cards
# say more.
_DETAILS_MAX = 8
_TOO_MANY, _INSUFFICIENT = "Too many pods", "Insufficient {}"


def asked_names(asked: Asked) -> tuple[str, ...]:
    """Names of the requested resources that a node must have, in the order of ``Ask.resources``: the pod itself first."""
    return tuple(resource for resource, _ in wanted(asked))


def wanted(asked: Asked) -> tuple[tuple[str, int], ...]:
    """The requested resources that a node must have, with their amounts, in the order of ``Ask.resources``."""
    amounts = ((names.PODS, 1), *asked.template.requests.amounts)
    plugins = asked.placement.plugins
    if plugins is None:
        return amounts
    return tuple(one for one in amounts if not plugins.ignores(one[0]))


def _compile(asked: Asked, cluster: Cluster) -> Compiled:
    requests, amounts = asked.template.requests, wanted(asked)
    rows = [cluster.nodes.find_row_asked(resource) for resource, _ in amounts]
    return Compiled(
        {
            "charge": cluster.ledger.charges.number_template(asked.template),
            "resources": shared.ints(*rows),
            "amounts": np.array([amount for _, amount in amounts], np.int64),
            "by_cards": shared.ints(*(INNER_RESOURCES.get(name, -1) for name, _ in amounts)),
            "nonzero": np.array([requests.nonzero_cpu, requests.nonzero_memory], np.int64),
        }
    )


def _tell(judged: Judged) -> RowReasons:
    """Every resource that is short; where a request is more than the whole node has, no eviction helps."""
    short = _short(judged)
    return RowReasons(tuple(map(_text, asked_names(judged.asked))), short, _beyond(judged, short))


def _short(judged: Judged) -> c.Flags:
    """[n, k] whether a row has too little of each requested resource."""
    bits = judged.ask.prefers.bits[c.BIT_FIRST_RESOURCE] + np.arange(judged.ask.resources.size)
    short: c.Flags = ((judged.bits[bits // c.WORD] >> (bits % c.WORD)[:, None]) & 1).T == 1
    return short


def _beyond(judged: Judged, short: c.Flags) -> c.Flags:
    """[n] whether more of a resource is requested than the whole node has."""
    ask, rows = judged.ask, judged.rows
    allocatable = judged.cluster.nodes.columns.allocatable[np.ix_(ask.resources, rows)].T
    # The pod itself comes first: of too many pods kube-scheduler always says that eviction may help.
    beyond: c.Flags = np.logical_or.reduce((short & (ask.amounts > allocatable))[:, 1:], axis=1)
    return beyond


def _lasting(judged: Judged) -> c.Flags:
    return _beyond(judged, _short(judged))


def _sum_up(judged: Judged) -> Summary:
    """Also how much is free of those resources of which most nodes are short."""
    told = _tell(judged)
    counts = told.which.sum(axis=0)
    by_cards = judged.ask.by_cards
    telling = [
        k for k in np.argsort(-counts, kind="stable").tolist() if counts[k] and by_cards[k] < 0
    ]
    details = [
        Detail(told.texts[k], f"{told.texts[k]}: {_figures(judged, told, k)}")
        for k in telling[:_DETAILS_MAX]
    ]
    return summary(told)._replace(details=tuple(details))


def _figures(judged: Judged, told: RowReasons, k: int) -> str:
    """The requested amount of a resource, and the most that is free on nodes with too little of it."""
    nodes, resource = judged.cluster.nodes, asked_names(judged.asked)[k]
    at, rows = int(judged.ask.resources[k]), judged.rows[told.which[:, k]]
    rows, shares = _comparable(nodes.columns, place_of(resource), at, rows)
    total, used = nodes.columns.allocatable[at, rows], nodes.columns.requested[at, rows]
    best = int(np.argmax(total - used))
    node, free = nodes.name_of(int(rows[best])), int(total[best] - used[best])
    amount = int(judged.ask.amounts[k])
    asked, left = words.pair(resource, amount, max(0, free))
    if free >= amount:
        return f"requested {asked}, what is free on {node} is promised to pods ahead of it"
    if resource == names.PODS:
        return f"{node} has {used[best]} of at most {total[best]}"
    if free > 0:
        return f"requested {asked}, the most free is {left}{shares} on {node}"
    if total.any():
        return f"requested {asked}, none is free on these nodes"
    return f"requested {asked}, none of these nodes offers it"


def _comparable(nodes: c.Nodes, family: int, at: int, rows: c.Ints) -> tuple[c.Ints, str]:
    """If devices are allocated one by one, the node offers shares of them: whole devices are reported first."""
    if family < 0:
        return rows, ""
    by_cards = nodes.managed[family, rows]
    whole = rows[~by_cards & (nodes.allocatable[at, rows] > 0)]
    if whole.size or not by_cards.any():
        return (whole if whole.size else rows), ""
    return rows[by_cards], " shares"


def _text(resource: str) -> str:
    return _TOO_MANY if resource == names.PODS else _INSUFFICIENT.format(resource)


def _hint(held: Held) -> Hint:
    return Hint(amounts=held.short)


RULE = Rule(
    name="NodeResourcesFit",
    reasons=(Reason("Insufficient resources"),),
    row=Row(compile=_compile, bit=c.BIT_RESOURCES),
    tell=_tell,
    sum_up=_sum_up,
    lasting=_lasting,
    texts=(_TOO_MANY, _INSUFFICIENT),
    hint=_hint,
)
