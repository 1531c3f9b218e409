"""Answers about pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from scheduler.api import kinds
from scheduler.api.cards import list_uses
from scheduler.engine.answers.inside import Inside
from scheduler.engine.questions import pods as ask
from scheduler.engine.questions.contract import Steps
from scheduler.errors import Mistake
from scheduler.state.pods import PodRecord
from scheduler.telling import placements

# So many pods of ours are counted in one step.
_COUNTED = 500


def find_pod(inside: Inside, question: ask.KnownPod) -> PodRecord | None:
    """What is known of a pod."""
    return inside.cluster.pods.get(question.uid)


def get_pod(inside: Inside, question: ask.NamedPod) -> PodRecord:
    """What is known of a pod that was named."""
    return inside.cluster.pods[question.uid]


def list_pods(inside: Inside, _: ask.KnownPods) -> Mapping[str, PodRecord]:
    """All pods."""
    return dict(inside.cluster.pods)


def read_version(inside: Inside, question: ask.PodVersion) -> str:
    """The last version seen of a pod."""
    return inside.cluster.find_version(question.uid)


def find_objection(inside: Inside, question: ask.BindObjection) -> str:
    """Why a decision may no longer be carried out."""
    bind, cluster = question.bind, inside.cluster
    uuids = {use.uuid for use in list_uses(bind.devices)}
    row = cluster.nodes.find_row(bind.node)
    is_usable = row >= 0 and bool(cluster.nodes.columns.valid[row])
    if not (is_usable and cluster.registers.are_usable(row, uuids)):
        return f"node {bind.node} or a card on it is gone or over-full"
    pod = cluster.pods.get(bind.uid)
    objection = inside.cycle.find_objection(pod, bind.node) if pod and bind.devices else ""
    return f"{bind.node}: {objection}" if objection else ""


def find_missing(inside: Inside, question: ask.MissingKeys) -> list[str]:
    """Keys of known objects that are not among those present."""
    kind, present, scheduler = question.kind, question.present, question.scheduler
    if kind != kinds.PODS.name:
        # Where a stream has one object, it says nothing of others.
        keys = (key for key in inside.keepers[kind].get_keys() if scheduler in {"", key})
        return [key for key in keys if key not in present]
    known = inside.cluster.pods
    missing = inside.cluster.list_missing(present, scheduler)
    # Stand-ins are in no list: they do not exist yet.
    found = {uid: None for uid in missing if uid not in inside.cluster.stand_ins}
    if scheduler:
        found.update(dict.fromkeys(inside.intake.list_missing(present, scheduler)))
        waiting = (pod for pod in inside.pending.list_pods() if pod.profile == scheduler)
        found |= {pod.uid: None for pod in waiting if pod.uid not in known}
    return list(found)


def find_mistake(inside: Inside, question: ask.ToldCardsMistake) -> Mistake | None:
    """What is wrong with what a pod tells of its cards."""
    return inside.cluster.find_claim_problem(inside.cluster.pods[question.uid])


def say_how(inside: Inside, question: ask.HowPlaced) -> str:
    """By which mode and whose wish a pod is placed."""
    pod = inside.cluster.pods[question.uid]
    return placements.say_how(pod, inside.policies.resolve(pod))


def write_note(inside: Inside, question: ask.PlacedNote) -> str:
    """Where a pod went."""
    cluster = inside.cluster
    return placements.write_note(cluster, cluster.pods[question.uid], question.how)


def find_nomination(inside: Inside, question: ask.NominatedNode) -> str:
    """The node that a pod is nominated to."""
    return inside.cluster.nominations.find_node(question.uid)


def find_governing(inside: Inside, question: ask.WhoGoverns) -> ask.Governing:
    """Who decides where a pod goes."""
    resolved = inside.policies.resolve(inside.cluster.pods[question.uid])
    placement = resolved.placement
    return ask.Governing(placement.node_policy or placement.mode, resolved.policy)


def count_governed(inside: Inside, _: ask.GovernedPods) -> Steps[Mapping[str, int]]:
    """How many pods each policy governs."""
    counts: Counter[str] = Counter()
    ours = [pod for pod in inside.cluster.pods.values() if pod.ours]
    for i, pod in enumerate(ours):
        counts[inside.policies.resolve(pod).policy] += 1
        if i % _COUNTED == 0:
            yield
    return counts
