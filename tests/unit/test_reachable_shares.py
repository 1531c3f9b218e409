"""A share is chosen among what the nodes have that the pod accepts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api import names, wire
from scheduler.api.admission.settings import AdmissionSettings
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.devices.admission.drafts import PodDraft
from scheduler.devices.admission.steps import ClusterFacts, change_pod
from scheduler.engine.engine import Engine
from scheduler.engine.questions.nodes import SharedGpus
from scheduler.engine.questions.simulating import SuitedNodes
from tests import make

Json = dict[str, Any]
_MIG = "nvidia.com/mig-1g.10gb"
_FACTS = {f"{_MIG}.memory": "9856", "nvidia.com/gpu.memory": "81920"}
_KEYS, _VALUES = ("zone", "pool"), ("a", "b", "2", "10")
_LABELS = st.dictionaries(st.sampled_from(_KEYS), st.sampled_from(_VALUES))
_TAINTS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(_KEYS),
            "value": st.sampled_from(("", "a")),
            "effect": st.sampled_from(("NoSchedule", "NoExecute", "PreferNoSchedule")),
        }
    ),
    max_size=2,
    unique_by=lambda one: (one["key"], one["effect"]),
)
_TOLERATIONS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(_KEYS),
            "operator": st.sampled_from(("Exists", "Equal")),
            "effect": st.sampled_from(("", "NoSchedule", "NoExecute")),
        }
    ).map(lambda one: one | ({"value": "a"} if one["operator"] == "Equal" else {})),
    max_size=2,
)
_TERM = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(
            st.one_of(
                st.fixed_dictionaries(
                    {
                        "key": st.sampled_from(_KEYS),
                        "operator": st.sampled_from(("In", "NotIn")),
                        "values": st.lists(st.sampled_from(_VALUES), min_size=1, max_size=2),
                    }
                ),
                st.fixed_dictionaries(
                    {
                        "key": st.sampled_from(_KEYS),
                        "operator": st.sampled_from(("Exists", "DoesNotExist")),
                    }
                ),
                st.fixed_dictionaries(
                    {
                        "key": st.sampled_from(_KEYS),
                        "operator": st.sampled_from(("Gt", "Lt")),
                        "values": st.just(["5"]),
                    }
                ),
            ),
            max_size=2,
        ),
        "matchFields": st.lists(
            st.fixed_dictionaries(
                {
                    "key": st.just("metadata.name"),
                    "operator": st.sampled_from(("In", "NotIn")),
                    "values": st.just(["n0"]),
                }
            ),
            max_size=1,
        ),
    },
)
_POD = st.fixed_dictionaries(
    {},
    optional={
        "nodeSelector": _LABELS,
        "tolerations": _TOLERATIONS,
        "affinity": st.lists(_TERM, max_size=2).map(
            lambda terms: {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
                }
            }
        ),
    },
)


def _make_node(name: str, labels: Json, taints: list[Json], resource: str) -> wire.Node:
    node = make.node(name=name, labels=_FACTS | labels, allocatable={resource: 7})
    spec = msgspec.convert({"taints": taints}, wire.NodeSpec)
    return msgspec.structs.replace(node, spec=spec)


@given(st.lists(st.tuples(_LABELS, _TAINTS), min_size=1, max_size=4), _POD)
def test_the_nodes_that_a_pod_accepts_are_those_of_the_filters(
    nodes: list[tuple[Json, list[Json]]], spec: Json
) -> None:
    """Each node offers parts of its own, so what is listed says which nodes were accepted."""
    engine = Engine(Config())
    for i, (labels, taints) in enumerate(nodes):
        engine.handle(events.Seen(_make_node(f"n{i}", labels, taints, f"nvidia.com/mig-{i + 1}g.10gb")), 0.0)  # fmt: skip
    pod = make.pod(name="p", spec=spec)
    suited = set(engine.ask(SuitedNodes(pod)))
    found = {one.resource for one in engine.ask(SharedGpus(names.GPU, pod))}
    assert found == {f"nvidia.com/mig-{i + 1}g.10gb" for i in range(len(nodes)) if f"n{i}" in suited}  # fmt: skip


def _start() -> Engine:
    """HAMi's cards stand apart behind a taint, and an instance is in the zone ``a``."""
    engine = Engine(Config())
    taint = [{"key": "team", "value": "x", "effect": "NoSchedule"}]
    hami = make.hami_node(name="hami", cards=2)
    hami = msgspec.structs.replace(hami, spec=msgspec.convert({"taints": taint}, wire.NodeSpec))
    state = [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}, {"key": names.GPU, "effect": "NoSchedule"}]  # fmt: skip
    for node in (hami, _make_node("cut", {"zone": "a"}, state, _MIG)):
        engine.handle(events.Seen(node), 0.0)
    return engine


def _request(engine: Engine, amount: str = "8Gi", **spec: Any) -> str:
    limits = {names.SHARE_MEMORY: amount}
    pod = make.pod(name="p", containers=[make.container(limits=limits)], spec=spec)
    draft = PodDraft(msgspec.json.encode(pod), "default")
    facts = ClusterFacts(list_backends=lambda cards, pod: engine.ask(SharedGpus(cards, pod)))
    refusal = change_pod(draft, AdmissionSettings(), facts)
    return refusal.message if refusal else draft.annotations[names.SHARED_AS].partition(" as ")[2]


def test_a_way_counts_only_where_the_pod_may_go() -> None:
    engine = _start()
    # The way of the cards comes first, but the pod does not tolerate their taint. Taints that are a state, and those by
    # which the API server lets pods with a resource tolerate them, do not count.
    assert _request(engine) == f"{_MIG} (mig)"
    tolerations = [{"key": "team", "operator": "Exists"}]
    assert _request(engine, tolerations=tolerations) == f"{names.GPU} (hami)"
    assert _request(engine, tolerations=tolerations, nodeSelector={"zone": "a"}) == f"{_MIG} (mig)"


def test_a_pod_that_no_node_suits_is_admitted_and_waits() -> None:
    engine = _start()
    assert _request(engine, nodeSelector={"zone": "b"}) == f"{names.GPU} (hami)"
    # Only the cards are large enough.
    assert _request(engine, "12Gi", nodeSelector={"zone": "a"}) == f"{names.GPU} (hami)"
    assert "no share on any node suffices" in _request(engine, "800Gi")


def test_the_largest_card_is_that_of_a_node_that_the_pod_accepts() -> None:
    engine = Engine(Config())
    for name, mib in (("small", 8192), ("large", 65536)):
        node = make.hami_node(name=name, cards=[make.card(uuid=name, mib=mib)], labels={"size": name})  # fmt: skip
        engine.handle(events.Seen(node), 0.0)
    pod = make.pod(name="p", node_selector={"size": "small"})
    assert [one.mib for one in engine.ask(SharedGpus(names.GPU, pod))] == [8192]
    assert [one.mib for one in engine.ask(SharedGpus(names.GPU))] == [65536]


def _require(*expressions: Json) -> Json:
    term = {"matchExpressions": list(expressions)}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


def _say_values(n: int) -> Json:
    return _require({"key": "zone", "operator": "In", "values": [f"v{i}" for i in range(n)]})


def _say_words(n: int) -> Json:
    # The term is a word, too.
    return _require(*({"key": f"k{i}", "operator": "Exists"} for i in range(n - 1)))


def _say_labels(n: int) -> Json:
    return {"nodeSelector": {f"there-{i}": "x" for i in range(n)}}


def _say_tolerations(n: int) -> Json:
    made = [{"key": f"k{i}", "operator": "Exists"} for i in range(n - 1)]
    return {"nodeSelector": {"zone": "no"}, "tolerations": made}


@pytest.mark.parametrize(
    ("say", "most"),
    [(_say_values, 2000), (_say_words, 200), (_say_labels, 10), (_say_tolerations, 200)],
)
def test_a_pod_that_says_too_much_is_taken_for_one_that_accepts_every_node(
    say: Callable[[int], Json], most: int
) -> None:
    """What it says is not even read: the webhook has a few milliseconds, and other tenants wait."""
    engine = Engine(Config())
    labels = {"zone": "a"} | {f"there-{i}": "y" for i in range(20)}
    engine.handle(events.Seen(make.hami_node(name="n", cards=1, labels=labels)), 0.0)
    assert not engine.ask(SharedGpus(names.GPU, make.pod(name="p", spec=say(most))))
    assert engine.ask(SharedGpus(names.GPU, make.pod(name="p", spec=say(most + 1))))


@pytest.mark.parametrize(("n", "is_compared"), [(100, True), (101, False)])
def test_many_tolerations_are_not_compared_with_the_taints_of_each_of_many_nodes(
    n: int, *, is_compared: bool
) -> None:
    engine = Engine(Config())
    for i in range(n):
        node = make.hami_node(name=f"n{i}", cards=[make.card(uuid=f"{i}", mib=8192)])
        node.spec.taints = [wire.Taint(key=f"t{i}", value="x", effect="NoSchedule")]
        engine.handle(events.Seen(node), 0.0)
    tolerations = [{"operator": "Equal", "value": f"{i}"} for i in range(200)]
    asked = SharedGpus(names.GPU, make.pod(name="p", spec={"tolerations": tolerations}))
    assert bool(engine.ask(asked)) != is_compared
