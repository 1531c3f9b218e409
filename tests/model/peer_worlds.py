"""Small random clusters in which pods have rules about other pods, as raw objects.

Every text is one that an API server takes; nodes lack labels, pods are being deleted, selectors are absent.
"""

from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.model import peer_objects
from tests.model.peer_objects import HOSTNAME, ZONE

Json = dict[str, Any]


class World(NamedTuple):
    """A pod that waits, and all that it meets."""

    pod: Json
    nodes: list[Json]
    pods: list[Json]
    namespaces: dict[str, Json]
    owners: list[Json]
    candidates: list[str]


WORDS = st.sampled_from(["a", "b", "c"])
LABELS = st.dictionaries(WORDS, WORDS, max_size=2)
NAMESPACE_NAMES = st.sampled_from(["default", "default", "one", "two"])
KEYS = st.sampled_from([HOSTNAME, ZONE, ZONE, "rack"])
EXPRESSIONS = st.one_of(
    st.fixed_dictionaries(
        {
            "key": WORDS,
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(WORDS, min_size=1, max_size=2),
        }
    ),
    st.fixed_dictionaries({"key": WORDS, "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
)
SELECTORS: st.SearchStrategy[Json] = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"matchLabels": LABELS}),
    st.fixed_dictionaries({}, optional={"matchExpressions": st.lists(EXPRESSIONS, max_size=2)}),
)


@st.composite
def terms(draw: st.DrawFn) -> Json:
    """One term of pod affinity or anti-affinity."""
    found: Json = {"topologyKey": draw(KEYS)}
    if draw(st.integers(0, 9)):
        found["labelSelector"] = draw(SELECTORS)
        if draw(st.integers(0, 3)) == 0:
            keys = draw(st.lists(WORDS, max_size=2, unique=True))
            cut = draw(st.integers(0, len(keys)))
            found |= _new_keys(found["labelSelector"], keys[:cut])
            found["mismatchLabelKeys"] = keys[cut:]
    match draw(st.integers(0, 5)):
        case 0:
            found["namespaces"] = draw(st.lists(NAMESPACE_NAMES, max_size=2, unique=True))
        case 1:
            found["namespaceSelector"] = draw(SELECTORS)
        case 2:
            found["namespaces"] = draw(st.lists(NAMESPACE_NAMES, max_size=2, unique=True))
            found["namespaceSelector"] = draw(SELECTORS)
    return found


def _new_keys(selector: Json, keys: list[str]) -> Json:
    """Of matchLabelKeys an API server refuses those that the selector names already."""
    said = {one["key"] for one in selector.get("matchExpressions", ())}
    return {
        "matchLabelKeys": [k for k in keys if k not in {*said, *selector.get("matchLabels", ())}]
    }


@st.composite
def affinities(draw: st.DrawFn) -> Json:
    """``spec.affinity`` without nodeAffinity."""
    found: Json = {}
    for kind in ("podAffinity", "podAntiAffinity"):
        if draw(st.booleans()):
            required = draw(st.lists(terms(), max_size=2))
            weighted = draw(st.lists(st.tuples(st.integers(1, 100), terms()), max_size=2))
            found |= peer_objects.affinity(kind, *required, preferred=weighted)
    return found


@st.composite
def constraints(draw: st.DrawFn) -> list[Json]:
    """``spec.topologySpreadConstraints``."""
    kinds = st.tuples(KEYS, st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]))
    found = []
    for key, action in draw(st.lists(kinds, max_size=3, unique=True)):
        one: Json = {"topologyKey": key, "whenUnsatisfiable": action}
        one["maxSkew"] = draw(st.integers(1, 3))
        if draw(st.integers(0, 9)):
            one["labelSelector"] = draw(SELECTORS)
            if draw(st.integers(0, 3)) == 0:
                one |= _new_keys(
                    one["labelSelector"], draw(st.lists(WORDS, max_size=2, unique=True))
                )
        if action == "DoNotSchedule" and draw(st.booleans()):
            one["minDomains"] = draw(st.integers(1, 4))
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if word := draw(st.sampled_from(["", "Honor", "Ignore"])):
                one[policy] = word
        found.append(one)
    return found


TAINTS = st.lists(
    st.fixed_dictionaries(
        {"key": WORDS, "effect": st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])}
    ),
    max_size=1,
)


@st.composite
def nodes(draw: st.DrawFn) -> list[Json]:
    """Nodes of few zones and racks; each may lack any label, its own name's too."""
    found = []
    for i in range(draw(st.integers(1, 6))):
        labels = draw(LABELS)
        if draw(st.integers(0, 5)):
            labels = labels | {HOSTNAME: f"n{i}"}
        for key, values in ((ZONE, ["z1", "z2", "z3", ""]), ("rack", ["r1", "r2"])):
            if draw(st.integers(0, 4)):
                labels = labels | {key: draw(st.sampled_from(values))}
        found.append(peer_objects.node(f"n{i}", labels, taints=draw(TAINTS), images=draw(IMAGES)))
    return found


IMAGE_NAMES = st.sampled_from(["a:latest", "a:1", "b:latest", "reg:5/c:latest"])
IMAGES = st.dictionaries(IMAGE_NAMES, st.integers(0, 4000), max_size=4)


@st.composite
def pods(draw: st.DrawFn, on: str = "") -> Json:
    """A pod with any of the rules."""
    spec: Json = {}
    if draw(st.booleans()):
        spec["affinity"] = draw(affinities())
    if not on:
        if rules := draw(constraints()):
            spec["topologySpreadConstraints"] = rules
        spec["images"] = draw(
            st.lists(st.sampled_from(["a", "a:1", "b", "reg:5/c"]), min_size=1, max_size=3)
        )
        spec["nodeSelector"] = draw(st.dictionaries(WORDS, WORDS, max_size=1))
        if draw(st.booleans()):
            spec["tolerations"] = [{"key": draw(WORDS), "operator": "Exists"}]
    namespace, deleted = draw(NAMESPACE_NAMES), bool(on) and draw(st.integers(0, 7)) == 0
    return peer_objects.pod(draw(LABELS), on=on, namespace=namespace, deleted=deleted, **spec)


@st.composite
def self_regarding(draw: st.DrawFn) -> Json:
    """A pod with one to three rules about pods like itself, and no other."""
    own: Json = {"labelSelector": {"matchLabels": {"a": "a"}}}
    affinity: Json = {}
    spread: list[Json] = []
    for kind in draw(st.lists(st.integers(0, 5), min_size=1, max_size=3, unique=True)):
        term = own | {"topologyKey": draw(KEYS)}
        field = "podAffinity" if kind % 2 else "podAntiAffinity"
        if kind < 2:
            affinity.setdefault(field, {})[peer_objects.REQUIRED] = [term]
        elif kind < 4:
            weighted = {"weight": draw(st.integers(1, 100)), "podAffinityTerm": term}
            affinity.setdefault(field, {})[peer_objects.PREFERRED] = [weighted]
        else:
            action = "ScheduleAnyway" if kind % 2 else "DoNotSchedule"
            spread.append(term | {"maxSkew": draw(st.integers(1, 2)), "whenUnsatisfiable": action})
    return peer_objects.pod({"a": "a"}, affinity=affinity, topologySpreadConstraints=spread)


@st.composite
def batches(draw: st.DrawFn) -> list[Json]:
    """Pods of two or three templates, whose labels and namespaces are each pod's own."""
    templates = draw(st.lists(st.one_of(self_regarding(), pods()), min_size=1, max_size=2))
    # One without rules meets only those of others.
    templates.append(peer_objects.pod())
    found = []
    for one in draw(st.lists(st.sampled_from(templates), min_size=2, max_size=8)):
        said = {"labels": draw(LABELS), "namespace": draw(NAMESPACE_NAMES)}
        found.append(one | {"metadata": one["metadata"] | said})
    return found


@st.composite
def owners(draw: st.DrawFn) -> list[Json]:
    """Services and controllers of namespace ``default``."""
    kinds = [
        ("v1", "Service", LABELS),
        ("v1", "ReplicationController", LABELS),
        ("apps/v1", "ReplicaSet", SELECTORS),
        ("apps/v1", "StatefulSet", SELECTORS),
    ]
    return [
        {
            "apiVersion": version,
            "kind": kind,
            "metadata": {"name": f"{kind.lower()}-{i}", "namespace": "default"},
            "spec": {"selector": draw(selectors)},
        }
        for version, kind, selectors in kinds
        for i in range(draw(st.integers(0, 1)))
    ]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Everything at once."""
    some = draw(nodes())
    names = [one["metadata"]["name"] for one in some]
    there = [draw(pods(on=draw(st.sampled_from(names)))) for _ in range(draw(st.integers(0, 12)))]
    spaces = draw(st.dictionaries(st.sampled_from(["default", "one", "two"]), LABELS, max_size=3))
    near, waiting = draw(owners()), draw(pods())
    controllers = [one for one in near if one["kind"] != "Service"]
    if controllers and waiting["metadata"]["namespace"] == "default" and draw(st.booleans()):
        one = draw(st.sampled_from(controllers))
        waiting["metadata"]["ownerReferences"] = [
            {"apiVersion": one["apiVersion"], "kind": one["kind"], "name": one["metadata"]["name"],
             "uid": "u", "controller": True}
        ]  # fmt: skip
    candidates = draw(st.lists(st.sampled_from(names), unique=True))
    return World(waiting, some, peer_objects.named(there), spaces, near, candidates)
