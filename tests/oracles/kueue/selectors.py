"""Labels, node affinity and taints, as far as flavors and namespaces need them."""

from collections.abc import Collection, Mapping
from typing import Any

Labels = Mapping[str, str]


def match_expression(labels: Labels, one: Mapping[str, Any]) -> bool:
    """Match one expression, of a label selector or of a node selector."""
    key, operator, values = one["key"], one["operator"], one.get("values", [])
    if operator == "In":
        return labels.get(key) in values if key in labels else False
    if operator == "NotIn":
        return labels.get(key) not in values
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    try:
        has, wants = int(labels[key]), int(values[0])
    except (KeyError, ValueError, IndexError):
        return False
    return has > wants if operator == "Gt" else has < wants


def match_selector(labels: Labels, selector: Mapping[str, Any] | None) -> bool:
    """Match a label selector; without one nothing matches."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels", {})
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(match_expression(labels, one) for one in selector.get("matchExpressions", []))


def match_flavor(labels: Labels, spec: Mapping[str, Any]) -> bool:
    """Match what pods want of nodes, of which only the keys of the flavor's own labels count.

    A term of which nothing is left matches, and so do then all, as one of them is enough.
    """
    wanted = spec.get("nodeSelector", {})
    if any(labels[key] != value for key, value in wanted.items() if key in labels):
        return False
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = []
    for term in required.get("nodeSelectorTerms", []):
        left = [one for one in term.get("matchExpressions", []) if one["key"] in labels]
        if not left:
            return True
        terms.append(left)
    return not terms or any(all(match_expression(labels, one) for one in term) for term in terms)


def find_untolerated(
    taints: Collection[Mapping[str, Any]], tolerations: Collection[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """Find the first taint that keeps pods away and that no toleration takes."""
    for taint in taints:
        if taint["effect"] not in {"NoSchedule", "NoExecute"}:
            continue
        if not any(check_tolerated(taint, one) for one in tolerations):
            return taint
    return None


def check_tolerated(taint: Mapping[str, Any], toleration: Mapping[str, Any]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    mine, theirs = toleration.get("value", ""), taint.get("value", "")
    if operator in {"Gt", "Lt"}:
        try:
            return int(theirs) > int(mine) if operator == "Gt" else int(theirs) < int(mine)
        except ValueError:
            return False
    return operator == "Exists" or bool(operator == "Equal" and mine == theirs)
