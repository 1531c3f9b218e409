"""Clusters and pods with pod affinity, each in a line. A node is written ``name:key=value,key=value``."""

from typing import Any

from tests.model import peer_objects as objects

Json = dict[str, Any]
TEAMS: dict[str, Json] = {
    "subteam1.team1": {"team": "team1"},
    "subteam2.team1": {"team": "team1"},
    "subteam1.team2": {"team": "team2"},
    "subteam2.team2": {"team": "team2"},
}
TEAM1: Json = {"matchExpressions": [{"key": "team", "operator": "In", "values": ["team1"]}]}


def nodes(text: str) -> list[Json]:
    found = []
    for word in text.split():
        name, _, labels = word.partition(":")
        pairs: Json = dict(label.split("=") for label in labels.split(",") if label)
        found.append(objects.node(name, pairs))
    return found


def term(key: str, operator: str, *values: str, at: str = "region", **more: Any) -> Json:
    expression: Json = {"key": key, "operator": operator}
    if values:
        expression["values"] = list(values)
    return {"topologyKey": at, "labelSelector": {"matchExpressions": [expression]}} | more


def both(one: Json, other: Json) -> Json:
    """One term with the requirements of two."""
    selectors = [each["labelSelector"]["matchExpressions"] for each in (one, other)]
    return one | {"labelSelector": {"matchExpressions": [*selectors[0], *selectors[1]]}}


def near(*required: Json, preferred: list[tuple[int, Json]] | None = None) -> Json:
    return objects.affinity("podAffinity", *required, preferred=preferred or [])


def far(*required: Json, preferred: list[tuple[int, Json]] | None = None) -> Json:
    return objects.affinity("podAntiAffinity", *required, preferred=preferred or [])


def pod(labels: str = "", *rules: Json, on: str = "", **more: Any) -> Json:
    """``labels`` as ``key=value,key``."""
    pairs = [label.partition("=") for label in labels.split(",") if label]
    affinity: Json = {}
    for one in rules:
        affinity |= one
    spec = {"affinity": affinity} if affinity else {}
    return objects.pod({key: value for key, _, value in pairs}, on=on, **spec, **more)


SCAN, S1 = "service=securityscan", "security=S1"
REGIONS = "node1:region=China node2:region=China,az=az1 node3:region=India"
