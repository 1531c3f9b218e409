"""Answers about nodes."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.devices.contract import CardDriver
from scheduler.engine.answers.inside import Inside
from scheduler.engine.questions import nodes as ask
from scheduler.schema import columns as c
from scheduler.state import checks
from scheduler.state.nodes import NodeFacts

_PERCENT = 100


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
        and facts.find_reading(number).is_told
        and not registers.devices.is_configured
    )


def list_drivers(inside: Inside, _: ask.CardDrivers) -> Mapping[str, CardDriver]:
    """The drivers of cards."""
    return inside.cluster.registers.devices.by_name


def sum_offered_parts(inside: Inside, question: ask.OfferedParts) -> ask.PartFigures:
    """What the cards of a node have together, in the units in which pods request parts of them."""
    cluster = inside.cluster
    table, total = cluster.nodes, cluster.cards.columns.total
    row, nodes = table.rows.get(question.node, -1), table.columns
    found: dict[str, int] = {}
    first, n_pools = (0, 0) if row < 0 else (int(nodes.first_pool[row]), int(nodes.n_pools[row]))
    for pool in range(first, first + n_pools):
        if table.foreign[row] or not nodes.pools.managed[pool]:
            continue
        driver = table.devices.cards[int(nodes.pools.driver[pool])]
        start, n = int(nodes.pools.start[pool]), int(nodes.pools.count[pool])
        for resource in driver.published if n else ():
            # What is no amount of a figure of the card is a percentage of the card, or a mark.
            figure, unit = driver.parts.get(resource, (-1, 1))
            if nodes.pools.carved[pool] and figure == c.CORES:
                # An instance has its own cores, however many were requested.
                continue
            there = _PERCENT * n if figure < 0 else int(total[figure, start : start + n].sum())
            found[resource] = found.get(resource, 0) + there // unit
    pods = (cluster.pods[uid] for uid in cluster.pods_on.get(question.node, ()))
    is_occupied = any(pod.template.most for pod in pods)
    return ask.PartFigures(found, is_occupied)
