"""Why a group waits, or where its pods are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import structs

from scheduler.api import wire
from scheduler.api.door.decisions import Plan
from scheduler.api.groups.definitions import GroupKey
from scheduler.disruption import protectors
from scheduler.plugins import words
from scheduler.schema import columns as c
from scheduler.state.entities import Entity, Team, make_entity, make_uid, require_minimum
from scheduler.telling import groups as telling
from scheduler.telling import sayings
from scheduler.telling.advice import back
from scheduler.telling.explained import later, sentences
from scheduler.telling.explained.scene import Scene

Json = dict[str, Any]
# The most domains of each level that are tried.
_DOMAINS = 3
# The most nodes that an advice names.
_NAMES = 5
# So many priorities above that of the group are tried.
_PRIORITIES = 4


def explain_group(scene: Scene, key: GroupKey, nodes: Mapping[str, wire.Node]) -> Json:
    """Explain a group that is decided about as a whole; it has at least one pod.

    ``nodes`` are the node objects of the cluster by name.
    """
    entry = scene.pending.find_entry(make_uid(key))
    entity = entry.entity if entry is not None and isinstance(entry.entity, Entity) else None
    pods = scene.asking.cluster.groups.list_pods(key)
    on_nodes = [pod for pod in pods if pod.node]
    waiting = [pod for pod in pods if not pod.node]
    found: Json = {
        "kind": "Group",
        "group": {"kind": key.kind, "namespace": key.namespace, "name": key.name},
        "title": str(key),
        "state": "",
        "message": "",
        "minimum": _count_minimum(entity.team) if entity is not None else None,
        "pods": {
            "onNodes": [sentences.describe_pod(one) for one in on_nodes],
            "waiting": [sentences.describe_pod(one) for one in waiting],
        },
        "topology": None,
        "now": None,
        "levels": [],
        "preemption": None,
        "later": None,
        "noLater": None,
        "advice": [],
    }
    if entity is None:
        n_missing = scene.asking.cluster.groups.shortages.below.get(key, 0)
        if not n_missing:
            return found | {"state": "placed"}
        words = "pod is" if n_missing == 1 else "pods are"
        message = f"{n_missing} {words} missing that it needs, and none of them waits."
        return found | {"state": "below", "message": message}
    found["topology"] = _describe_topology(entity)
    if lack := entity.problem or entity.lacks or _find_gates(entity):
        return found | {"state": "held", "message": str(lack)}
    found |= _try_now(scene, entity)
    if found["state"] == "waits":
        found["advice"] = _find_advice(scene, entity, nodes)
    return found


def _count_minimum(team: Team) -> int:
    """Count the pods of a group that must have a node at once, those that are there among them."""
    if not team.teams:
        return team.minimum
    return sum(sorted(map(_count_minimum, team.teams))[: team.minimum])


def _find_gates(entity: Entity) -> str:
    gated = [pod for pod in entity.members if pod.gated]
    return f"pod {gated[0].key} has scheduling gates" if gated else ""


def _describe_topology(entity: Entity) -> Json | None:
    """Describe where the group, or the first of its parts that says so, is to be."""
    for team in entity.team.list_all():
        if (where := team.where) is not None:
            return {
                "part": "" if team is entity.team else team.name,
                "rule": str(where.rule),
                "required": where.labels[where.required] if where.required >= 0 else None,
                "preferred": [where.labels[level] for level in where.preferred],
                "levels": list(where.labels),
            }
    return None


def _try_now(scene: Scene, entity: Entity) -> Json:
    """Try the group in the cluster as it is: whole, then in the best domains of each level, then with other wishes."""
    cluster = scene.asking.cluster
    with cluster.trial():
        plan = scene.cycle.decide_for_group(entity) or Plan(entity.uid)
        evicted = [cluster.pods[uid] for evict in plan.evicts for uid in evict.victims]
        victims = [sentences.describe_pod(pod) for pod in evicted]
    found: Json = {
        "message": _write_message(plan),
        "levels": list(_describe_levels(scene, entity)),
    }
    if plan.binds:
        nodes = {bind.uid: bind.node for bind in plan.binds}
        found["now"] = {"pods": len(nodes), "nodes": sorted(set(nodes.values()))}
        return found | {"state": "fits"}
    if victims:
        nominated = sorted({one.node for one in plan.nominates if one.node})
        found["preemption"] = {"victims": victims, "nodes": nominated, "notDone": None}
        return found | {"state": "preempts"}
    why = _explain_no_eviction(scene, entity)
    found["preemption"] = {"victims": [], "nodes": [], "notDone": why}
    is_exact = plan.group is not None and bool(plan.group.leaves)
    return found | {"state": "waits", **later.describe_later(scene, entity, is_exact=is_exact)}


def _write_message(plan: Plan) -> str:
    """Say how much of the group fits, in kube-scheduler's words where its rules hold."""
    if plan.group is None:
        return ""
    return plan.group.status or telling.say_group(plan.group, plan.hold).message


def _explain_no_eviction(scene: Scene, entity: Entity) -> str:
    """Say why nobody is evicted for a group, although some pods may go for it, or because none may."""
    definition = entity.definition
    refuses = definition is not None and definition.preempts is False
    if refuses or not all(pod.preempts for pod in entity.members):
        return "its preemptionPolicy is Never"
    shortages = scene.asking.cluster.groups.shortages
    goes = shortages.goes_when_short(entity.key, definition)
    if goes and not require_minimum(entity).team.is_complete:
        return "it lacks pods that do not exist, and goes as a whole if it stays below its minimum"
    n_evictable = len(scene.cycle.list_evictable(entity))
    if not n_evictable:
        return "no pod on a node has a lower priority and may go"
    pods, them = words.count_nouns(n_evictable, "pod"), "it" if n_evictable == 1 else "them"
    return f"{pods} may go for it; without {them} the group would not fit either"


def _describe_levels(scene: Scene, entity: Entity) -> Iterator[Json]:
    """Describe at each level of its topology how many pods of the group fit in the domains that come closest."""
    own = [one.where.labels for one in entity.team.list_all() if one.where is not None]
    labels = own[0] if own else scene.asking.cluster.groups.default_labels
    free = _replace_team(entity, _make_free(entity.team))
    above: tuple[str, ...] = ()
    for label in labels:
        closest = scene.cycle.list_closest(entity, (*above, label), _DOMAINS)
        if not own and not closest.n_domains:
            # The group does not name this level, and the cluster does not have it.
            continue
        above = (*above, label)
        domains = [
            {"values": list(values), **_try_domain(scene, free, rows)}
            for values, rows in closest.domains
        ]
        domains.sort(key=lambda one: -one["fitting"])
        yield {"label": closest.label, "domains": closest.n_domains, "closest": domains}


def _make_free(team: Team) -> Team:
    """Make a team without a constraint, of which all pods are counted that fit; its parts keep theirs.

    Parts that have none are one: the first of them that does not fit would end the count.
    """
    if not team.teams or any(one.where is not None for one in team.list_all() if one is not team):
        return structs.replace(team, where=None)
    leaves = list(team.list_leaves())
    pods = tuple(pod for leaf in leaves for pod in leaf.pods)
    there = tuple(pod for leaf in leaves for pod in leaf.there)
    is_alike = all(pod.template is pods[0].template for pod in pods)
    template = pods[0].template if is_alike else None
    return Team(team.name, len(pods) + len(there), pods, there, template=template)


def _try_domain(scene: Scene, entity: Entity, rows: c.Flags) -> Json:
    """Find how many waiting pods of a group fit on the nodes of a domain, and what the next one lacks."""
    with scene.asking.cluster.trial():
        plan = scene.cycle.place_most(entity, rows)
    hold, result = plan.hold, plan.group
    n_fitting = len(plan.binds) or (result.n_placed if result is not None else 0)
    lacks = sayings.say_why(hold).message if hold is not None and hold.diagnosis else ""
    return {
        "nodes": int(rows.sum()),
        "fitting": n_fitting,
        "of": len(result.waiting) if result is not None else len(entity.members),
        "lacks": lacks,
    }


def _place(scene: Scene, entity: Entity) -> Plan:
    with scene.asking.cluster.trial():
        return scene.cycle.place_group(entity)


def _replace_team(entity: Entity, team: Team) -> Entity:
    return make_entity(entity.key, team, definition=entity.definition)


def _find_advice(scene: Scene, entity: Entity, nodes: Mapping[str, wire.Node]) -> list[Json]:
    """Find what would let the group in; each was tried."""
    with scene.asking.cluster.trial():
        most = scene.cycle.place_most(entity)
    found = [
        _write_advice(text, tried)
        for text, team in _list_wishes(entity.team, most)
        if (tried := _place(scene, _replace_team(entity, team))).binds
    ]
    found += _try_priorities(scene, entity)
    cluster = scene.asking.cluster
    plan, out = back.find_nodes_back_for_group(cluster, nodes, lambda: _place(scene, entity))
    if out:
        named = [f"{cluster.nodes.find_name(one.row)} ({', '.join(one.why)})" for one in out]
        more = len(named) - _NAMES
        text = f"bring back {', '.join(named[:_NAMES])}{f' and {more} more' if more > 0 else ''}"
        found.append(_write_advice(text, plan))
    return found


def _try_priorities(scene: Scene, entity: Entity) -> list[Json]:
    """Find the lowest priority by which others would go for a group; nothing if it takes nobody's place anyway."""
    definition, cluster = entity.definition, scene.asking.cluster
    if definition is None or definition.preempts is False:
        return []
    for priority in protectors.list_kept_priorities(cluster, entity.priority)[:_PRIORITIES]:
        raised = structs.replace(definition, priority=priority + 1)
        with cluster.trial():
            plan = scene.cycle.decide_for_group(structs.replace(entity, definition=raised))
        n_victims = sum(len(evict.victims) for evict in plan.evicts) if plan is not None else 0
        if plan is not None and n_victims:
            nodes = {one.node for one in plan.nominates if one.node}
            text = f"give it a priority above {priority}, by which {words.count_nouns(n_victims, 'pod')} would be evicted"
            n_pods = sum(bool(one.node) for one in plan.nominates)
            return [{"text": text, "pods": n_pods, "nodes": len(nodes)}]
    return []


def _write_advice(text: str, plan: Plan) -> Json:
    return {
        "text": text,
        "pods": len(plan.binds),
        "nodes": len({bind.node for bind in plan.binds}),
    }


def _list_wishes(team: Team, plan: Plan) -> Iterator[tuple[str, Team]]:
    """Yield less than what the group wants, the least change first."""
    where = team.where
    if where is not None and where.required >= 0:
        asked = where.labels[where.required]
        for level in range(where.required - 1, -1, -1):
            wider = structs.replace(where, required=level)
            text = f"require one {where.labels[level]} instead of one {asked}"
            yield text, structs.replace(team, where=wider)
        yield f"require no {asked}", structs.replace(team, where=None)
    n_placed = plan.group.n_placed if plan.group is not None else 0
    if n_placed and not team.teams:
        minimum = len(team.there) + n_placed
        text = f"lower the minimum from {team.minimum} to {minimum}"
        yield text, structs.replace(team, minimum=minimum)
