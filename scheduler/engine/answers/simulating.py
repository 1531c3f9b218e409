"""Answers for deciding for manifests, and for explaining the decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from scheduler.api.cards import list_uses
from scheduler.api.groups import table as groups
from scheduler.api.groups.definitions import GroupKey
from scheduler.api.pods import templates
from scheduler.engine.answers.inside import Inside
from scheduler.engine.questions import simulating as ask
from scheduler.errors import Mistake
from scheduler.plugins.contract import Rule
from scheduler.plugins.rules import node_affinity, taints
from scheduler.state.entities import Entity
from scheduler.telling import placements, verdicts

# The rules that a DaemonSet's controller evaluates itself.
_OF_CONTROLLER: tuple[Rule, ...] = (node_affinity.RULE, taints.RULE)


def list_mistakes(inside: Inside, _: ask.MistakesOfWaiting) -> tuple[ask.PodMistake, ...]:
    """The mistakes in pods that are to be tried."""
    find_problem = inside.cycle.keys.find_problem
    return tuple(
        ask.PodMistake(pod.uid, problem)
        for pod in inside.pending.list_active()
        if (problem := find_problem(pod))
    )


def list_group_mistakes(inside: Inside, _: ask.MistakesOfGroups) -> tuple[ask.GroupMistake, ...]:
    """The mistakes for which groups are held."""
    entities = (entry.entity for entry in inside.pending.list_entries())
    return tuple(
        mistake
        for one in entities
        if isinstance(one, Entity) and one.problem is not None
        for mistake in _list_of_group(inside, one, one.problem)
    )


def list_by_group(inside: Inside, _: ask.PodsByGroup) -> Mapping[GroupKey, Sequence[str]]:
    """The uids of the pods of each group."""
    known = inside.cluster.groups
    roots = dict.fromkeys(known.list_roots().values())
    return {root: [pod.uid for pod in known.list_pods(root)] for root in roots}


def _list_of_group(inside: Inside, entity: Entity, problem: Mistake) -> list[ask.GroupMistake]:
    """List the mistakes in the pods of a group and in its objects; ``problem`` if it is in several of them together."""
    find_definition = inside.cluster.groups.find_definition
    # Each group with one of its pods, and the groups above.
    there: dict[GroupKey, str] = {}
    found: list[ask.GroupMistake] = []
    for pod in entity.members:
        says = pod.member or pod.owned
        if says is None:
            continue
        if says.problem is not None:
            found.append(ask.GroupMistake(pod.uid, None, says.problem))
        key: GroupKey | None = says.group
        while key is not None and key not in there:
            there[key] = pod.uid
            definition = find_definition(key)
            key = definition.parent if definition is not None else None
    for key, uid in there.items():
        definition = find_definition(key)
        if definition is not None and definition.problem is not None:
            found.append(ask.GroupMistake(uid, groups.find_object(key), definition.problem))
    return found or [ask.GroupMistake(entity.members[0].uid, None, problem)]


def look_ahead(inside: Inside, question: ask.NextDecision) -> ask.BeforeDecision | None:
    """What there is to know before the next decision."""
    cluster, cycle = inside.cluster, inside.cycle
    pod = inside.pending.peek(question.at)
    if pod is None:
        return None
    cycle.learn()
    told, shape = verdicts.judge_nodes(cluster, cycle, pod), cycle.get_shape(pod)
    by = placements.say_card_order(shape) if shape is not None else ""
    return ask.BeforeDecision(pod.uid, told, by, cluster.cards.columns.used.copy())


def list_suited(inside: Inside, question: ask.SuitedNodes) -> tuple[str, ...]:
    """The nodes that a DaemonSet's controller makes a pod for."""
    nodes = inside.cluster.nodes
    names = sorted(nodes.rows)
    rows = np.array([nodes.find_row(name) for name in names], np.int64)
    refused = np.zeros(rows.size, np.bool_)
    template = templates.make_template(question.pod)
    for rule in _OF_CONTROLLER:
        needs = rule.filter and rule.filter.needs(template)
        if rule.filter is not None and needs is not None:
            refused |= rule.filter.refuses(needs, nodes, rows)
    return tuple(names[i] for i in np.flatnonzero(~refused).tolist())


def list_held(inside: Inside, question: ask.HeldCards) -> tuple[ask.HeldCard, ...]:
    """List the cards that a pod holds, of those that its node still reports."""
    cluster = inside.cluster
    pod = cluster.pods[question.uid]
    uuids = {use.uuid for use in list_uses(pod.claim)}
    if not (pod.node and uuids):
        return ()
    row, columns = cluster.nodes.find_row(pod.node), cluster.cards.columns
    there = cluster.registers.list_all_cards(pod.uid, row)
    return tuple(
        ask.HeldCard(
            d, cluster.cards.find_uuid(d), int(columns.position[d]), columns.total[:, d].copy()
        )
        for d in sorted(there[uuid] for uuid in uuids if uuid in there)
    )


def find_indices(inside: Inside, question: ask.CardIndices) -> Mapping[str, int]:
    """The index of each card of a node."""
    facts = inside.cluster.find_facts(question.node)
    return {
        card.id: card.index
        for number, driver in inside.cluster.registers.devices.cards.items()
        if facts is not None and driver.name == question.driver
        for card in driver.list_cards(facts.find_reading(number).words)
    }
