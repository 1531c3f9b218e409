"""NodeResourcesFit: enough of every resource that the pod requests is free on the node."""

from __future__ import annotations

import numpy as np

from scheduler.api import names
from scheduler.api.door.decisions import Detail
from scheduler.api.pods import gpus
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
    count_texts,
)
from scheduler.schema import columns as c
from scheduler.schema import shared
from scheduler.state.cluster import Cluster

# The most resources with figures; further resources are only named, because a pod may request hundreds. Resources that
# only cards have get no figures either, because the reasons about cards say more.
_DETAILS_MAX = 8
_TOO_MANY, _INSUFFICIENT = "Too many pods", "Insufficient {}"


def list_names(asked: Asked) -> tuple[str, ...]:
    """List the requested resources that a node must have, in the order of ``Ask.resources``, with the pod itself first."""
    return tuple(resource for resource, _ in list_amounts(asked))


def list_amounts(asked: Asked) -> tuple[tuple[str, int], ...]:
    """List the requested resources that a node must have, with their amounts, in the order of ``Ask.resources``."""
    amounts = ((names.PODS, 1), *asked.template.requests.amounts)
    plugins = asked.placement.plugins
    if plugins is None:
        return amounts
    return tuple(one for one in amounts if not plugins.is_ignored(one[0]))


def _compile_request(asked: Asked, cluster: Cluster) -> Compiled:
    requests, amounts = asked.template.requests, list_amounts(asked)
    devices, find_row = cluster.nodes.devices, cluster.nodes.find_row_asked
    rows = [find_row(resource) for resource, _ in amounts]
    find_inner = devices.inner_families.get
    by_cards = [find_inner(resource, -1) for resource, _ in amounts]
    counted = [amount for _, amount in amounts]
    family = asked.template.family
    own = devices.find_family(family)
    if own >= 0 and own in by_cards and gpus.asks_whole(asked.template.gpu):
        # "All cores of a GPU" is no more than a GPU, which a node without cards may have, too.
        counted = [
            0 if of == own and name != family else amount
            for of, (name, amount) in zip(by_cards, amounts, strict=True)
        ]
    return Compiled(
        {
            "charge": cluster.ledger.charges.number_template(asked.template),
            "resources": shared.make_ints(*rows),
            "amounts": np.array(counted, np.int64),
            "by_cards": shared.make_ints(*by_cards),
            "nonzero": np.array([requests.nonzero_cpu, requests.nonzero_memory], np.int64),
        }
    )


def _tell_reasons(judged: Judged) -> RowReasons:
    """Report every resource that is short; if a request is more than the whole node has, no eviction helps."""
    short = _find_short(judged)
    return RowReasons(
        tuple(map(_make_text, list_names(judged.asked))), short, _find_beyond(judged, short)
    )


def _find_short(judged: Judged) -> c.Flags:
    """Find whether each row has too little of each requested resource [n, k]."""
    bits = judged.ask.prefers.bits[c.BIT_FIRST_RESOURCE] + np.arange(judged.ask.resources.size)
    short: c.Flags = ((judged.bits[bits // c.WORD] >> (bits % c.WORD)[:, None]) & 1).T == 1
    return short


def _find_beyond(judged: Judged, short: c.Flags) -> c.Flags:
    """Find the rows [n] where more of a resource is requested than the whole node has."""
    ask, rows = judged.ask, judged.rows
    allocatable = judged.cluster.nodes.columns.allocatable[np.ix_(ask.resources, rows)].T
    # The pod itself comes first and is left out: kube-scheduler always says that eviction may help with too many pods.
    beyond: c.Flags = np.logical_or.reduce((short & (ask.amounts > allocatable))[:, 1:], axis=1)
    return beyond


def _find_lasting(judged: Judged) -> c.Flags:
    return _find_beyond(judged, _find_short(judged))


def _sum_up_reasons(judged: Judged) -> Summary:
    """Sum up the reasons, with figures for the resources of which the most nodes are short."""
    told = _tell_reasons(judged)
    counts = told.which.sum(axis=0)
    by_cards = judged.ask.by_cards
    telling = [
        k for k in np.argsort(-counts, kind="stable").tolist() if counts[k] and by_cards[k] < 0
    ]
    details = [
        Detail(told.texts[k], f"{told.texts[k]}: {_describe_figures(judged, told, k)}")
        for k in telling[:_DETAILS_MAX]
    ]
    return count_texts(told)._replace(details=tuple(details))


def _describe_figures(judged: Judged, told: RowReasons, k: int) -> str:
    """Describe the requested amount of a resource, and the most that is free on nodes with too little of it."""
    nodes, resource = judged.cluster.nodes, list_names(judged.asked)[k]
    at, rows = int(judged.ask.resources[k]), judged.rows[told.which[:, k]]
    managed = nodes.find_managed(nodes.devices.find_family(resource))
    rows, shares = _choose_comparable(nodes.columns, managed, at, rows)
    total, used = nodes.columns.allocatable[at, rows], nodes.columns.requested[at, rows]
    best = int(np.argmax(total - used))
    node, free = nodes.find_name(int(rows[best])), int(total[best] - used[best])
    amount = int(judged.ask.amounts[k])
    asked, left = words.write_pair(resource, amount, max(0, free))
    if free >= amount:
        return f"requested {asked}, what is free on {node} is promised to pods ahead of it"
    if resource == names.PODS:
        return f"{node} has {used[best]} of at most {total[best]}"
    if free > 0:
        return f"requested {asked}, the most free is {left}{shares} on {node}"
    if total.any():
        return f"requested {asked}, none is free on these nodes"
    return f"requested {asked}, none of these nodes offers it"


def _choose_comparable(
    nodes: c.Nodes, managed: c.Flags, at: int, rows: c.Ints
) -> tuple[c.Ints, str]:
    """Choose the rows to compare: nodes with whole devices, if there are any; otherwise nodes that offer shares of cards.

    ``managed`` [N] says where the resource's devices are allocated one by one. The returned text names what the
    figures count.
    """
    by_cards = managed[rows]
    whole = rows[~by_cards & (nodes.allocatable[at, rows] > 0)]
    if whole.size or not by_cards.any():
        return (whole if whole.size else rows), ""
    return rows[by_cards], " shares"


def _make_text(resource: str) -> str:
    return _TOO_MANY if resource == names.PODS else _INSUFFICIENT.format(resource)


def _make_hint(held: Held) -> Hint:
    return Hint(amounts=held.short)


RULE = Rule(
    name="NodeResourcesFit",
    reasons=(Reason("Insufficient resources"),),
    row=Row(compile=_compile_request, bit=c.BIT_RESOURCES),
    tell=_tell_reasons,
    sum_up=_sum_up_reasons,
    lasting=_find_lasting,
    texts=(_TOO_MANY, _INSUFFICIENT),
    hint=_make_hint,
)
