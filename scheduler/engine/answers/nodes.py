"""Answers about nodes."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.devices.contract import CardDriver
from scheduler.engine.answers.inside import Inside
from scheduler.engine.questions import nodes as ask
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
