"""Why a pod waits, or why it runs on its node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from msgspec import structs

from scheduler.api import wire
from scheduler.api.cards import list_uses
from scheduler.api.door.decisions import Diagnosis
from scheduler.disruption.attempts import Made
from scheduler.plugins import cards_seen
from scheduler.state.pods import PodRecord
from scheduler.state.space_quotas import Excess, SpaceQuotas
from scheduler.telling import sayings
from scheduler.telling.advice import advise, best, blocking, nearest, weighed
from scheduler.telling.advice.advise import ObjectFacts
from scheduler.telling.explained import claims, devices, sentences
from scheduler.telling.explained.scene import Scene
from scheduler.tenancy.kai.rules import find_over, make_taker
from scheduler.waiting.admissions import InQueue

Json = dict[str, Any]
# The most names of nodes for each reason, the most nodes with scores, and the most pods ahead in the queue.
_NAMES, _BEST, _AHEAD = 20, 3, 5


def explain_pod(scene: Scene, facts: ObjectFacts, node: str) -> Json:
    """Explain a pod from its object; ``node`` is the node on which it runs, empty while it waits."""
    words = facts.pod
    pod = scene.asking.cluster.read_as_if(words)
    # The request of the shape is compiled here, because it should not be compiled within a trial.
    scene.asking.make_shape(pod)
    found: Json = {"priority": pod.priority, "node": node or None, "queue": None}
    if node:
        with scene.asking.cluster.trial() as trial:
            trial.take_away(pod.uid)
            found |= _judge_node(scene, pod, facts, node)
    else:
        found |= {"queue": _describe_queue(scene, words, pod)} | _judge_node(scene, pod, facts, "")
    return found | {"state": _name_state(words, pod, found)}


def _name_state(words: wire.Pod, pod: PodRecord, found: Json) -> str:
    states = (
        ("bound", found["node"]),
        ("deleting", pod.deleting),
        ("gated", words.spec.scheduling_gates),
        ("held", found["problem"]),
        ("queued", found["queue"] and found["queue"]["heldBy"]),
        ("preempts", found["preemption"] and not found["preemption"]["notDone"]),
        ("fits", found["nodes"]["fitting"]),
    )
    return next((name for name, is_so in states if is_so), "waits")


def _judge_node(scene: Scene, pod: PodRecord, facts: ObjectFacts, node: str) -> Json:
    """Evaluate the pod on all nodes now; a pod that runs is evaluated as if it came now."""
    asking = scene.asking
    hold, shape = asking.find_hold(pod), asking.make_shape(pod)
    made = (
        None
        if node or not (hold and hold.diagnosis)
        else _try_preemption(scene, pod, hold.diagnosis)
    )
    if hold and made:
        hold = replace(hold, attempt=made.attempt)
    saying = sayings.say_why(hold) if hold else None
    problem = str(hold.problem) if hold and hold.problem else None
    judged = asking.judge_rows(shape, pod=pod) if shape else None
    rows = asking.find_fitting(pod)
    found: Json = {
        "message": saying.message if saying else "",
        "problem": problem,
        "ofPod": hold.diagnosis.of_pod or None if hold and hold.diagnosis else None,
        "nodes": {
            "total": len(asking.cluster.nodes.rows),
            "fitting": int(rows.size),
            "names": asking.list_names(rows[:_NAMES]),
        },
        "reasons": [
            {
                "rule": one.rule,
                "reason": one.text,
                "nodes": int(one.rows.size),
                "evictionCouldHelp": one.resolvable,
                "names": asking.list_names(one.rows[:_NAMES]),
            }
            for one in (asking.find_refusals(judged) if judged is not None else ())
        ],
        "details": [one.text for one in hold.diagnosis.details] if hold and hold.diagnosis else [],
        "claims": claims.list_claims(asking, pod, judged),
        "preemption": _describe_preemption(scene, pod, made),
        "nearest": None,
        "advice": [],
        "now": None,
        "best": [],
        "weights": {},
        "objective": "",
    }
    if rows.size:
        found |= _describe_best(scene, pod, node) | {"now": _describe_decision(scene, pod)}
    if not rows.size or node:
        found["nearest"] = _describe_nearest(scene, pod, node)
    if not rows.size and not node:
        found["advice"] = [
            sentences.write_advice(scene.asking, one)
            for one in advise.find_advice(asking, pod, facts)
        ]
    return found


def _try_preemption(scene: Scene, pod: PodRecord, why: Diagnosis) -> Made | None:
    return scene.cycle.try_to_make_room(pod, why)


def _describe_preemption(scene: Scene, pod: PodRecord, made: Made | None) -> Json | None:
    """Describe which pods the pod could replace, and why it does not; None if that would not help or is not needed."""
    why = ""
    if made is not None and made.evict is None and not pod.preempts:
        made = scene.cycle.try_to_make_room(structs.replace(pod, preempts=True), None)
        why = "its preemptionPolicy is Never"
    if made is None or made.evict is None:
        return None
    victims = (scene.asking.cluster.pods[uid] for uid in made.evict.victims)
    return {
        "node": made.evict.node,
        "victims": [sentences.describe_pod(one) for one in victims],
        "notDone": why or None,
    }


def _describe_decision(scene: Scene, pod: PodRecord) -> Json | None:
    """Describe the node and the cards that the cycle would choose for the pod now, without other pods."""
    cluster = scene.asking.cluster
    # The outcome is described before the trial is undone.
    with cluster.trial():
        for bind in scene.cycle.schedule([pod], explain=False).binds:
            row = cluster.nodes.find_row(bind.node)
            uses = list_uses(bind.devices)
            there = cluster.registers.list_all_cards(bind.uid, row)
            return {
                "node": bind.node,
                "devices": [
                    {
                        "id": use.uuid,
                        "index": int(cluster.cards.columns.position[there[use.uuid]]),
                        "memoryMiB": use.mem_mib,
                        "cores": use.cores,
                    }
                    for use in uses
                ],
                "claims": [
                    claims.describe_given(one) for each in bind.allotted for one in each.given
                ],
            }
    return None


def _describe_best(scene: Scene, pod: PodRecord, node: str) -> Json:
    asking = scene.asking
    row = asking.cluster.nodes.find_row(node) if node else -1
    found = best.find_best(asking, pod, _BEST, row)
    return {
        "best": [
            {
                "node": asking.cluster.nodes.find_name(one.row),
                "place": one.place,
                "preference": one.preference,
                **one.scores,
                "loss": weighed.make_values(one.loss) if one.loss else None,
                "after": [usage._asdict() for usage in one.after],
            }
            for one in found.nodes
        ],
        "weights": found.weights,
        "objective": found.objective,
    }


def _describe_nearest(scene: Scene, pod: PodRecord, node: str) -> Json | None:
    """Describe the closest node; for a pod that runs, its own node, if the node would refuse the pod now."""
    asking = scene.asking
    found = nearest.order_nodes(asking, pod)
    if found is None or not found.order.size:
        return None
    judged, order, _ = found
    at = int(order[0])
    if node:
        there = (judged.rows == asking.cluster.nodes.find_row(node)).nonzero()[0]
        if not there.size:
            return None
        at = int(there[0])
    one = nearest.describe_node(asking, judged, at)
    names = cards_seen.name_codes(judged)
    facts, shape = asking.cluster.nodes.facts[one.row], asking.make_shape(pod)
    counted = blocking.find_blocking(asking, shape, one.row) if shape is not None else {}
    return {
        "node": asking.cluster.nodes.find_name(one.row),
        "cordoned": bool(facts and facts.unschedulable),
        "taints": [
            {"key": key, "value": value, "effect": effect}
            for key, value, effect in (facts.taints if facts else ())
        ],
        "lacks": [
            {
                "rule": lack.rule,
                "reasons": list(lack.texts),
                "counted": counted.get(lack.rule, []),
                "evictionCouldHelp": lack.resolvable,
            }
            for lack in one.lacks
        ],
        "resources": [short._asdict() for short in one.short],
        "cardsRequested": one.wanted,
        "cards": [
            devices.describe_card(asking.cluster, seen.row)
            | {
                "refusal": devices.name_refusal(seen.refusal, names),
                "wouldDo": seen.refusal is None,
            }
            for seen in one.cards
        ],
        "containers": [
            {
                "names": list(asked.names),
                "cardsRequested": asked.wanted,
                "wouldDo": asked.refusals.count(None),
                "refusals": [devices.name_refusal(code, names) for code in asked.refusals],
            }
            for asked in one.containers
        ],
        "together": _describe_together(one.together) if one.together else None,
        **claims.describe_near(asking, pod, judged._replace(rows=judged.rows[[at]])),
    }


def _describe_together(one: nearest.TogetherSeen) -> Json:
    return {
        "container": one.name,
        "after": list(one.before),
        "cardsRequested": one.wanted,
        "wouldDo": one.fitting,
    }


def _describe_queue(scene: Scene, words: wire.Pod, pod: PodRecord) -> Json | None:
    """Describe the pod's place in the queue by priority and age; None if the pod is in no queue of this scheduler.

    A pod with a mistake that must be corrected is held, and does not count in the queue.
    """
    gates = [gate.name for gate in words.spec.scheduling_gates or ()]
    find_problem = scene.cycle.keys.find_problem
    active = [one for one in scene.pending.list_active() if find_problem(one) is None]
    place = next((i for i, one in enumerate(active, 1) if one.uid == pod.uid), None)
    held = _find_hold_of_queue(scene, pod)
    if place is None and not gates and held is None:
        return None
    ahead = active[: place - 1] if place else []
    return {
        "place": place,
        "of": len(active),
        "ahead": [one.key for one in ahead[-_AHEAD:]],
        "gates": gates,
        "heldBy": held,
    }


def _find_hold_of_queue(scene: Scene, pod: PodRecord) -> str | None:
    """Find why a pod may not be tried by the quotas of its namespace or the rules of KAI's queues; None if it may."""
    entry, accounts = scene.pending.find_entry(pod.uid), scene.shares
    if entry is not None and (excess := _find_excess(scene.spaces, pod)) is not None:
        return str(excess)
    if entry is None or not accounts.is_queued(pod):
        return None
    if (held := InQueue(accounts).judge(entry.entity)) is not None:
        return held.why
    accounts.settle_shares()
    with accounts.lift_promises(entry.entity):
        taker = make_taker(accounts, entry.entity)
        over = None if taker is None else find_over(taker)
    return None if over is None else over.describe()


def _find_excess(spaces: SpaceQuotas, pod: PodRecord) -> Excess | None:
    """Find the limit of its namespace that a pod would exceed wherever it went; None if there is none."""
    excess = spaces.find_excess(pod, spaces.find_least(pod))
    if excess is not None:
        return excess
    _, beyond = spaces.find_rows(pod) or (None, None)
    return beyond
