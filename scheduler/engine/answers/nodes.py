"""Answers about nodes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scheduler.api import plugin_parts
from scheduler.api.admission.backends import ANY_SIZE, Backend
from scheduler.api.plugin_parts import Part
from scheduler.devices.contract import CardDriver
from scheduler.engine.answers.inside import Inside
from scheduler.engine.questions import nodes as ask
from scheduler.measure.cards import list_run_rows
from scheduler.schema import columns as c
from scheduler.state import checks
from scheduler.state.nodes import NodeFacts


def find_node(inside: Inside, question: ask.KnownNode) -> NodeFacts | None:
    """What was last read of a node."""
    return inside.cluster.find_facts(question.name)


def list_nodes(inside: Inside, _: ask.KnownNodes) -> Mapping[str, NodeFacts]:
    """What was last read of every node."""
    return {facts.name: facts for facts in inside.cluster.nodes.facts if facts is not None}


def count_nodes(inside: Inside, _: ask.NodeCounts) -> ask.NodeFigures:
    """How many nodes there are, and how many are closed."""
    cluster = inside.cluster
    return ask.NodeFigures(len(cluster.nodes.rows), checks.count_closed_nodes(cluster))


def list_notices(inside: Inside, question: ask.DriverNotices) -> tuple[ask.DriverNotice, ...]:
    """What there is to say of the drivers of a node."""
    facts, registers = inside.cluster.find_facts(question.node), inside.cluster.registers
    return tuple(
        ask.DriverNotice(driver.name, *driver.notice)
        for number, driver in registers.devices.cards.items()
        if facts is not None
        and facts.devices[number].is_told
        and not registers.devices.is_configured
    )


def list_drivers(inside: Inside, _: ask.CardDrivers) -> Mapping[str, CardDriver]:
    """The drivers of cards."""
    return inside.cluster.registers.devices.by_name


def list_backends(inside: Inside, question: ask.SharedGpus) -> tuple[Backend, ...]:
    """The ways in which nodes share GPUs, without the cards that another scheduler allocates.

    The thread of the webhook asks while the main loop may replace columns by longer ones: only rows that all have are read.
    """
    cluster = inside.cluster
    pools, devices = cluster.nodes.columns.pools, cluster.registers.devices
    total, columns = cluster.cards.columns.total, (pools.family, pools.node, pools.managed, pools.count, pools.start)  # fmt: skip
    part, found = pools.part, list[Backend]()
    n = min(part.shape[1], *(column.size for column in columns))
    family, node, managed = (column[:n] for column in columns[:3])
    part = part[:, :n]
    wanted = devices.find_family(question.cards)
    foreign = cluster.nodes.foreign
    own = np.flatnonzero((family == wanted) & managed & (node >= 0) & (node < foreign.size))
    own = own[~foreign[node[own]]]
    rows = list_run_rows(pools.start[own], pools.count[own])
    mib = int(total[c.MIB, rows[rows < total.shape[1]]].max(initial=0))
    if wanted >= 0 and mib:
        found.append(Backend(ANY_SIZE, question.cards, 1.0, mib))
    is_part = (part[c.PART_WAY] > 0) & (part[c.PART_GPUS] > 0)
    counted = np.flatnonzero(~managed & (node >= 0) & is_part)
    _sizes, first = np.unique(
        np.vstack((family[counted], part[:, counted])), axis=1, return_index=True
    )
    for pool in counted[first].tolist():
        facts = cluster.nodes.facts[int(node[pool])]
        gpus, mib, way = part[:, pool].tolist()
        resource = devices.families[int(family[pool])]
        labels = facts.labels if facts else {}
        one = Part(gpus, int(mib), plugin_parts.WAYS[int(way)])
        marks = plugin_parts.list_marks(resource, labels)
        memory = plugin_parts.read_memory_part(resource, labels, one)
        found.append(Backend(one.way, resource, gpus, one.mib, marks, memory))
    return tuple(found)
