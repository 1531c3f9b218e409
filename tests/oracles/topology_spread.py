"""PodTopologySpread of kube-scheduler 1.37.1, one node and one pod at a time, from raw objects.

Sources: podtopologyspread/common.go, filtering.go, scoring.go, plugin.go, helper/spread.go. Raw Services,
ReplicationControllers, ReplicaSets and StatefulSets are the ``owners`` that implicit spread looks at.
"""

import math
from typing import Any

from tests.oracles import filters
from tests.oracles.selectors import is_empty, labels_of, matches, namespace_of, with_own_values

Json = dict[str, Any]
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
FITS = ("", "")
TOO_MANY = ("node(s) didn't match pod topology spread constraints", "unschedulable")
NO_LABEL = (f"{TOO_MANY[0]} (missing required label)", "unresolvable")
SYSTEM_DEFAULTS = (
    {"topologyKey": HOSTNAME, "maxSkew": 3, "whenUnsatisfiable": SOFT},
    {"topologyKey": ZONE, "maxSkew": 5, "whenUnsatisfiable": SOFT},
)


def refusals(
    pod: Json,
    nodes: list[Json],
    pods: list[Json],
    owners: list[Json] | None = None,
    defaults: list[Json] | None = None,
) -> dict[str, tuple[str, str]]:
    """(reason, status) of every node, both empty where the pod may go."""
    rules = constraints(pod, owners or [], HARD, defaults)
    found = {}
    for node in nodes:
        found[name(node)] = FITS
        for rule in rules:
            here = labels_of(node).get(rule["topologyKey"])
            if here is None:
                found[name(node)] = NO_LABEL
                break
            counts = _hard_counts(rule, rules, pod, nodes, pods)
            fewest = min(counts.values(), default=0)
            if len(counts) < (rule.get("minDomains") or 1):
                fewest = 0
            itself = 1 if matches(rule["labelSelector"], labels_of(pod)) else 0
            if counts.get(here, 0) + itself - fewest > rule["maxSkew"]:
                found[name(node)] = TOO_MANY
                break
    return found


def _hard_counts(
    rule: Json, rules: list[Json], pod: Json, nodes: list[Json], pods: list[Json]
) -> dict[str, int]:
    """Matching pods by value of the topology key; a value counts though no pod is there."""
    counts: dict[str, int] = {}
    for node in nodes:
        if has_all_keys(node, rules) and is_included(node, rule, pod):
            value = labels_of(node)[rule["topologyKey"]]
            counts[value] = counts.get(value, 0) + matching(rule, pod, node, pods)
    return counts


def raw_scores(
    pod: Json,
    nodes: list[Json],
    pods: list[Json],
    candidates: list[str],
    owners: list[Json] | None = None,
    defaults: list[Json] | None = None,
) -> dict[str, int | None] | None:
    """By candidate, None for one that is passed over; None in all when the pod has no soft constraint.

    ``candidates`` are the nodes that passed all filters. A node without a key of an explicit constraint is
    passed over; the system's are not charged for a key that a node lacks, though its absence is a domain.
    """
    rules = constraints(pod, owners or [], SOFT, defaults)
    if not rules:
        return None
    explicit = bool(pod["spec"].get("topologySpreadConstraints")) or defaults is not None
    chosen = [node for node in nodes if name(node) in candidates]
    scored = [node for node in chosen if not explicit or has_all_keys(node, rules)]
    raw: dict[str, int | None] = {name(node): None for node in chosen}
    for node in scored:
        total = 0.0
        for rule in rules:
            key = rule["topologyKey"]
            if key not in labels_of(node):
                continue
            domains = {labels_of(other).get(key, "") for other in scored}
            if key == HOSTNAME:
                count, size = matching(rule, pod, node, pods), len(scored)
            else:
                count, size = 0, len(domains)
                for other in nodes:
                    same = labels_of(other).get(key, "") == labels_of(node)[key]
                    counted = (not explicit or has_all_keys(other, rules)) and is_included(
                        other, rule, pod
                    )
                    if same and counted:
                        count += matching(rule, pod, other, pods)
            total += count * math.log(size + 2) + (rule["maxSkew"] - 1)
        # Go rounds half away from zero; nothing here is negative.
        raw[name(node)] = math.floor(total + 0.5)
    return raw


def scores(
    pod: Json,
    nodes: list[Json],
    pods: list[Json],
    candidates: list[str],
    owners: list[Json] | None = None,
    defaults: list[Json] | None = None,
) -> dict[str, int]:
    """0..100 by candidate: the fewer of its like are near, the more."""
    raw = raw_scores(pod, nodes, pods, candidates, owners, defaults)
    if raw is None:
        return dict.fromkeys(candidates, 0)
    kept = [score for score in raw.values() if score is not None]
    low, high = min(kept, default=0), max(kept, default=0)
    found = {}
    for node, score in raw.items():
        if score is None:
            found[node] = 0
        elif high == 0:
            found[node] = 100
        else:
            found[node] = 100 * (high + low - score) // high
    return found


def constraints(
    pod: Json, owners: list[Json], action: str, defaults: list[Json] | None = None
) -> list[Json]:
    """The pod's own of one kind, or where it has none at all the ``defaults``, by default the system's."""
    own = pod["spec"].get("topologySpreadConstraints")
    if own:
        return [
            rule | {"labelSelector": with_own_values(rule.get("labelSelector"), labels_of(pod), rule)}
            for rule in own
            if rule["whenUnsatisfiable"] == action
        ]  # fmt: skip
    selector = implicit_selector(pod, owners)
    if is_empty(selector):
        return []
    return [
        rule | {"labelSelector": selector}
        for rule in (SYSTEM_DEFAULTS if defaults is None else defaults)
        if rule["whenUnsatisfiable"] == action
    ]


def implicit_selector(pod: Json, owners: list[Json]) -> Json:
    """What the pod's Services select, and what the controller that owns it does."""
    labels: Json = {}
    near = [one for one in owners if namespace_of(one) == namespace_of(pod)]
    for service in near:
        if service["kind"] != "Service" or service["spec"].get("selector") is None:
            continue
        selector = service["spec"]["selector"]
        if matches({"matchLabels": selector}, labels_of(pod)):
            labels |= selector
    expressions: list[Json] = []
    for reference in pod["metadata"].get("ownerReferences") or ():
        if not reference.get("controller"):
            continue
        wanted = reference["apiVersion"], reference["kind"], reference["name"]
        for one in near:
            if (one["apiVersion"], one["kind"], name(one)) != wanted:
                continue
            selector = one["spec"].get("selector") or {}
            if wanted[:2] == ("v1", "ReplicationController"):
                labels |= selector
            elif wanted[:2] in {("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")}:
                same = selector.get("matchLabels") or {}
                expressions += [
                    {"key": k, "operator": "In", "values": [v]} for k, v in same.items()
                ]
                expressions += selector.get("matchExpressions") or []
        break
    return {"matchLabels": labels, "matchExpressions": expressions}


def matching(rule: Json, pod: Json, node: Json, pods: list[Json]) -> int:
    """How many pods on a node count; none for a selector that asks nothing."""
    selector = rule["labelSelector"]
    if is_empty(selector):
        return 0
    return sum(
        1
        for other in pods
        if other["spec"].get("nodeName") == name(node)
        and namespace_of(other) == namespace_of(pod)
        and other["metadata"].get("deletionTimestamp") is None
        and matches(selector, labels_of(other))
    )


def has_all_keys(node: Json, rules: list[Json]) -> bool:
    return all(rule["topologyKey"] in labels_of(node) for rule in rules)


def is_included(node: Json, rule: Json, pod: Json) -> bool:
    """Whether a node's pods are counted, by the two node inclusion policies."""
    if rule.get("nodeAffinityPolicy", "Honor") == "Honor" and not filters.likes(pod["spec"], node):
        return False
    if rule.get("nodeTaintsPolicy", "Ignore") == "Honor":
        hard = [
            taint
            for taint in node["spec"].get("taints") or ()
            if taint["effect"] in {"NoSchedule", "NoExecute"}
        ]
        return all(filters.tolerates(pod["spec"], taint) for taint in hard)
    return True


def name(thing: Json) -> str:
    return str(thing["metadata"]["name"])
