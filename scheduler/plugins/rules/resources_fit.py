"""NodeResourcesFit: what the pod asks is free on the node, of every resource."""

from __future__ import annotations

import numpy as np

from scheduler.api import names
from scheduler.devices.table import INNER_RESOURCES
from scheduler.plugins.contract import Asked, Change, Compiled, Judged, Reason, Row, Rule, Told
from scheduler.schema import columns as c
from scheduler.schema import shared
from scheduler.state.cluster import Cluster


def asked_names(asked: Asked) -> tuple[str, ...]:
    """Names of what a pod asks, in the order of ``Ask.resources``: the pod itself first."""
    return (names.PODS, *(resource for resource, _ in asked.template.requests.amounts))


def _compile(asked: Asked, cluster: Cluster) -> Compiled:
    requests, wanted = asked.template.requests, asked_names(asked)
    rows = [cluster.nodes.row_asked(resource) for resource in wanted]
    return Compiled(
        {
            "charge": np.array([cluster.ledger.charges.number(asked.template)], np.int64),
            "resources": shared.ints(*rows),
            "amounts": np.array([1, *(amount for _, amount in requests.amounts)], np.int64),
            "by_cards": shared.ints(*(INNER_RESOURCES.get(name, -1) for name in wanted)),
            "nonzero": np.array([requests.nonzero_cpu, requests.nonzero_memory], np.int64),
        }
    )


def _tell(judged: Judged) -> Told:
    """Every resource that is short; where a request is more than the whole node has, no eviction helps."""
    ask, rows = judged.ask, judged.rows
    bits = ask.bits[c.BIT_FIRST_RESOURCE] + np.arange(ask.resources.size)
    short: c.Flags = ((judged.bits[bits // c.WORD] >> (bits % c.WORD)[:, None]) & 1).T == 1
    allocatable = judged.cluster.nodes.columns.allocatable[np.ix_(ask.resources, rows)].T
    beyond: c.Flags = np.logical_or.reduce(short & (ask.amounts > allocatable), axis=1)
    return Told(tuple(map(_text, asked_names(judged.asked))), short, beyond)


def _text(resource: str) -> str:
    return "Too many pods" if resource == names.PODS else f"Insufficient {resource}"


RULE = Rule(
    name="NodeResourcesFit",
    reasons=(Reason("Insufficient resources"),),
    row=Row(compile=_compile, bit=c.BIT_RESOURCES),
    tell=_tell,
    helped_by=Change.NODE_ADDED | Change.NODE_CAPACITY | Change.POD_LEFT,
)
