"""Answers about the pods that wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from scheduler.api import kinds
from scheduler.api.groups import table
from scheduler.api.groups.definitions import GroupKey
from scheduler.engine.answers.inside import Inside
from scheduler.engine.questions import waiting as ask
from scheduler.state.entities import Entity
from scheduler.waiting.entries import Where

_IN_VAIN = frozenset({Where.UNSCHEDULABLE, Where.BACKOFF})


def is_parked(inside: Inside, question: ask.IsParked) -> bool:
    """Whether a pod waits for a change."""
    return inside.pending.is_parked(question.uid)


def find_wait(inside: Inside, question: ask.WaitOf) -> ask.Wait | None:
    """How a pod waits."""
    entry = inside.pending.find_entry(question.uid)
    return None if entry is None else ask.Wait(entry.since, entry.attempts, entry.waited)


def find_lasting_place(inside: Inside, question: ask.LastingPlace) -> ask.Place:
    """The place of a pod in the order of waiting pods, without the number of its arrival."""
    pod = inside.cluster.pods[question.uid]
    urgency, between, created, _ = inside.pending.order.find_place(pod)
    return urgency, between, created, pod.key


def find_tried(inside: Inside, question: ask.TriedInVain) -> Mapping[str, str]:
    """Those of some pods that wait because they fit nowhere."""
    entry_of = inside.pending.find_entry
    return {
        uid: entry.pod.profile
        for uid in question.uids
        if (entry := entry_of(uid)) is not None and entry.where in _IN_VAIN
    }


def read_queue(inside: Inside, _: ask.Queue) -> ask.QueueState:
    """Whether pods wait, and until when."""
    return ask.QueueState(len(inside.pending), inside.pending.find_next_due())


def list_unplaced(inside: Inside, _: ask.WhatWaits) -> Sequence[ask.Unplaced]:
    """Everything that waits, and why."""
    found = []
    for entry in inside.pending.list_entries():
        entity = entry.entity
        pods = [inside.cluster.pods[pod.uid] for pod in entity.members]
        waiting = [pod for pod in pods if not pod.node]
        group, least = None, 1
        if isinstance(entity, Entity):
            group, least = entity.key, entity.team.count_least()
        held = entry.held.why if entry.held is not None else ""
        if waiting:
            found.append(ask.Unplaced(waiting, group, least, held, entry.result, entry.why))
    return found


def list_objects(inside: Inside, question: ask.ObjectsOf) -> Sequence[ask.GroupFacts]:
    """The objects of a group."""
    return [
        ask.GroupFacts(
            kinds.read_kind_name(one),
            one.metadata.namespace,
            one.metadata.name,
            one.metadata.uid,
            one.metadata.generation,
            table.was_placed(one),
        )
        for one in inside.cluster.groups.list_objects_of(question.group)
    ]


def list_groups(inside: Inside, _: ask.AllGroups) -> Mapping[GroupKey, GroupKey]:
    """All groups with pods."""
    return inside.cluster.groups.list_roots()


def count_queue(inside: Inside, _: ask.QueueCounts) -> ask.QueueFigures:
    """The parts of the queue in figures."""
    pending = inside.pending
    return ask.QueueFigures(
        {str(where): n for where, n in pending.count_pods().items()},
        {str(where): n for where, n in pending.count_groups().items()},
        {(str(where), str(why)): n for (where, why), n in pending.came.items()},
        len(inside.cluster.groups.shortages.below),
    )


def sum_waits(inside: Inside, _: ask.WaitsByNamespace) -> Mapping[str, ask.NamespaceWait]:
    """How many pods wait in each namespace."""
    counts: Counter[str] = Counter()
    since: dict[str, float] = {}
    for entry in inside.pending.list_entries():
        if entry.where != Where.GATED and entry.since is not None:
            namespace = entry.pod.namespace
            counts[namespace] += 1
            since[namespace] = min(entry.since, since.get(namespace, entry.since))
    return {name: ask.NamespaceWait(n, since[name]) for name, n in counts.items()}
