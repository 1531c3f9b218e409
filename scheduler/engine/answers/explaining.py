"""Answers for explaining a pod or a node to people."""

from __future__ import annotations

from typing import Any

from scheduler.engine.answers.inside import Inside
from scheduler.engine.questions import explaining as ask
from scheduler.state.entities import Entity
from scheduler.state.pods import PodRecord
from scheduler.telling import groups as words
from scheduler.telling.advice.advise import ObjectFacts
from scheduler.telling.advice.asking import Asking
from scheduler.telling.explained import groups, nodes, pods
from scheduler.telling.explained.scene import Scene

Json = dict[str, Any]


def explain_pod(inside: Inside, question: ask.ExplainPod) -> Json:
    """Why a pod waits or runs where it runs."""

    def may_end(pod: PodRecord) -> bool:
        return pod.uid not in question.come_again

    facts = ObjectFacts(question.pod, question.nodes, may_end)
    return pods.explain_pod(_scene(inside), facts, question.node)


def explain_node(inside: Inside, question: ask.ExplainNode) -> Json:
    """What is on a node."""
    return nodes.explain_node(_scene(inside), question.name, question.schedulers)


def explain_group(inside: Inside, question: ask.ExplainGroup) -> Json:
    """Why a group waits, or where its pods are."""
    return groups.explain_group(_scene(inside), question.group, question.nodes)


def try_group(inside: Inside, question: ask.OutlookOf) -> ask.GroupOutlook | None:
    """What would become of the group of a waiting pod now."""
    entry = inside.pending.find_entry(question.uid)
    if entry is None or not isinstance(entry.entity, Entity):
        return None
    entity, name = entry.entity, str(entry.entity.key)
    if entity.problem is not None or entity.lacks:
        return ask.GroupOutlook(name, fits=False, message=str(entity.problem or entity.lacks))
    inside.cycle.learn()
    with inside.cluster.trial():
        plan = inside.cycle.decide_for_group(entity)
    if plan is None or plan.group is None:
        return None
    return ask.GroupOutlook(name, bool(plan.binds), words.count_fitting(plan.group))


def _scene(inside: Inside) -> Scene:
    inside.cycle.learn()
    asking = Asking(inside.cluster, inside.cycle)
    return Scene(asking, inside.cycle, inside.pending, inside.shares, inside.spaces)
