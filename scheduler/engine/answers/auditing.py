"""Answers for judging a cluster as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from scheduler.api.groups.definitions import Disruption, GroupKey
from scheduler.engine.answers.inside import Inside
from scheduler.engine.questions import auditing as ask
from scheduler.measure import cards, figures, shares, typical
from scheduler.measure.figures import Figures
from scheduler.measure.shares import Shares
from scheduler.measure.typical import Typical
from scheduler.plugins.rules import node_affinity
from scheduler.schema import columns as c
from scheduler.telling import unused
from scheduler.telling.advice import best
from scheduler.telling.advice.asking import Asking
from scheduler.telling.unused import UnusedDevices


def find_typical(inside: Inside, question: ask.TypicalPods) -> Typical:
    """The typical pods."""
    return typical.find_typical(inside.cluster, question.own)


def measure_by(inside: Inside, question: ask.FiguresBy) -> Figures:
    """What every node has in use, free and stranded."""
    return figures.measure_cluster(inside.cluster, question.typical)


def list_judged(inside: Inside, _: ask.JudgedNodes) -> list[str]:
    """The names of the nodes that are judged."""
    return figures.list_node_names(inside.cluster)


def count_empty(inside: Inside, question: ask.EmptyNodes) -> int:
    """How many nodes have no pod but their own."""
    table, pods_on = inside.cluster.nodes, inside.cluster.pods_on
    return sum(
        bool(table.columns.valid[row]) and all(uid in question.own for uid in pods_on.get(name, ()))
        for name, row in table.rows.items()
    )


def share_out(inside: Inside, question: ask.SharesOf) -> Shares:
    """What every pod has of some nodes."""
    return shares.measure_shares(inside.cluster, question.nodes)


def find_groups(inside: Inside, _: ask.GroupOfPods) -> Mapping[str, GroupKey]:
    """By the uid of a pod: the group with which it would move."""
    groups = inside.cluster.groups
    moving = [
        root
        for root in groups.list_roots().values()
        if (said := groups.find_definition(root)) is None or said.disruption != Disruption.SINGLE
    ]
    return {pod.uid: root for root in moving for pod in groups.list_pods(root)}


def read_devices(inside: Inside, question: ask.DevicesOn) -> ask.NodeDevices:
    """The devices of some nodes."""
    cluster, rows = inside.cluster, _rows(inside, question.nodes)
    return ask.NodeDevices(
        cards.read_cards(cluster, rows),
        cluster.nodes.columns.has_gpu[rows],
        cluster.cards.models.values,
        tuple(cluster.registers.devices.families),
    )


def list_uncounted(inside: Inside, question: ask.UncountedOffer) -> Mapping[str, int]:
    """How many devices a node offers that no driver counts, or of which nothing says how many GPUs they are."""
    registers, pools = inside.cluster.registers, inside.cluster.nodes.columns.pools
    facts, devices = inside.cluster.find_facts(question.node), registers.devices
    unknown = {
        devices.families[int(pools.family[pool])]
        for pool in registers.list_pools(inside.cluster.nodes.find_row(question.node))
        if not pools.managed[pool] and pools.part[c.PART_GPUS, pool] == 0
    }
    offered = facts.offered if facts is not None else ()
    return {
        one: amount
        for one, amount in offered
        if amount and (one in unknown or devices.are_marked({}, (one,)))
    }


def compare_labels(inside: Inside, question: ask.WrongLabels) -> tuple[bool, ...]:
    """Whether the labels of a node are not those that shapes select."""
    nodes, row = inside.cluster.nodes, _rows(inside, [question.node])
    return tuple(
        bool(node_affinity.find_refused((shape.selector, shape.required), nodes, row)[0])
        for shape in question.shapes
    )


def judge_return(inside: Inside, question: ask.ReturnOf) -> ask.Return:
    """What keeps a pod from being placed on its node again."""
    pod = inside.cluster.pods[question.uid]
    return ask.Return(
        inside.cluster.find_claim_problem(pod) is not None,
        inside.cycle.keys.find_problem(pod) is not None,
        inside.cycle.find_objection(pod, pod.node),
    )


def find_best(inside: Inside, question: ask.BestNodesFor) -> ask.BestNodes:
    """Where a pod would go."""
    cluster = inside.cluster
    cluster.nodes.refresh_ranks()
    inside.cycle.learn()
    pod = cluster.read_as_if(question.pod)
    found = best.find_best(Asking(cluster, inside.cycle), pod, question.most)
    nodes = tuple(
        ask.BestNode(cluster.nodes.find_name(one.row), one.preference, one.scores, one.loss)
        for one in found.nodes
    )
    requests = dict(pod.template.requests.amounts)
    return ask.BestNodes(requests, nodes, found.n_fitting, found.weights, found.objective)


def find_unused(inside: Inside, _: ask.UnusedClaimDevices) -> UnusedDevices:
    """Which devices usual pods with claims can get."""
    inside.cluster.nodes.refresh_ranks()
    inside.cycle.learn()
    return unused.find_unused(Asking(inside.cluster, inside.cycle))


def _rows(inside: Inside, nodes: Sequence[str]) -> c.Ints:
    return np.array([inside.cluster.nodes.find_row(name) for name in nodes], np.int64)
