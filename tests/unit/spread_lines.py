"""Clusters and pods with topology spread constraints, each in a line.

A node is written ``name`` or ``name=zone``, ``~`` before one that is no candidate; a pod by the name of
its node and its labels, ``a+foo+bar``.
"""

from typing import Any

from tests.model import peer_objects as objects

Json = dict[str, Any]
FOO: Json = {"matchExpressions": [{"key": "foo", "operator": "Exists"}]}
BAR: Json = {"matchExpressions": [{"key": "bar", "operator": "Exists"}]}
FOUR = "a=zone1 b=zone1 x=zone2 y=zone2"


def nodes(text: str, **labels: Json) -> list[Json]:
    """``labels`` are more labels by node; of ``node`` and hostname each has its own name."""
    found = []
    for word in text.split():
        name, _, zone = word.strip("~").partition("=")
        own = {"node": name, objects.HOSTNAME: name} | ({"zone": zone} if zone else {})
        found.append(objects.node(name, own | labels.get(name, {})))
    return found


def pods(text: str) -> list[Json]:
    found = []
    for word in text.split():
        name, *labels = word.split("+")
        found.append(objects.pod(dict.fromkeys(labels, ""), on=name))
    return found


def hard(key: str, selector: Json | None = FOO, skew: int = 1, **more: Any) -> Json:
    rule = {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule"}
    return rule | ({} if selector is None else {"labelSelector": selector}) | more


def soft(key: str, selector: Json | None = FOO, skew: int = 1, **more: Any) -> Json:
    return hard(key, selector, skew, **more) | {"whenUnsatisfiable": "ScheduleAnyway"}


def waiting(*rules: Json, labels: str = "foo", **more: Any) -> Json:
    return objects.pod(
        dict.fromkeys(labels.split(), ""), topologySpreadConstraints=list(rules), **more
    )


def requires(key: str, *values: str, operator: str = "In") -> Json:
    expression = {"key": key, "operator": operator, "values": list(values)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {objects.REQUIRED: terms}}


IGNORE: Json = {"nodeAffinityPolicy": "Ignore"}
TAINTED = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
