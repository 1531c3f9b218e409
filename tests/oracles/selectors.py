"""Label selectors on raw objects, as kube-scheduler means them."""

from typing import Any

from tests.oracles import filters

Json = dict[str, Any]


def matches(selector: Json | None, labels: Json) -> bool:
    """A selector that is not there matches nothing, an empty one everything."""
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(filters.holds(one, labels) for one in selector.get("matchExpressions") or ())


def is_empty(selector: Json | None) -> bool:
    return selector is not None and not (
        selector.get("matchLabels") or selector.get("matchExpressions")
    )


def with_own_values(
    selector: Json | None, labels: Json, rule: Json, written: tuple[str, ...] = ()
) -> Json | None:
    """The API server's merge of matchLabelKeys and mismatchLabelKeys at a pod's creation.

    ``written`` are keys that it has merged already.
    """
    if selector is None:
        return None
    own = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in rule.get(field) or ()
        if key in labels and not (field == "matchLabelKeys" and key in written)
    ]
    return selector | {"matchExpressions": [*(selector.get("matchExpressions") or ()), *own]}


def keys_of(selector: Json | None) -> tuple[str, ...]:
    given = selector or {}
    expressions = given.get("matchExpressions") or ()
    return (*(given.get("matchLabels") or ()), *(one["key"] for one in expressions))


def labels_of(thing: Json) -> Json:
    labels: Json = thing["metadata"].get("labels") or {}
    return labels


def namespace_of(thing: Json) -> str:
    return str(thing["metadata"].get("namespace") or "")
