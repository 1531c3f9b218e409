"""The random worlds are worth asking about: every feature decides something, and all kinds of answers occur."""

import itertools
from collections import Counter
from typing import Any

import pytest

from tests.differential import known, ours
from tests.differential.answers import Answer
from tests.differential.compare import Difference, differences
from tests.differential.features import FEATURES, choices
from tests.differential.run import sample
from tests.differential.worlds import Feature, World, build

pytestmark = pytest.mark.many

Json = dict[str, Any]


def answers(world: World) -> list[Answer]:
    """To each of the pods that come, as if it were the first."""
    return [ours.answer(world.objects, pod, ours.settings(1)) for pod in world.incoming]


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_a_feature_decides_cases(feature: Feature) -> None:
    """A feature that changed no answer would be tested by nobody."""
    for seed, other in itertools.product(range(16), [feature, *FEATURES]):
        both = [one for one in FEATURES if one in {feature, other}]
        without = [one for one in both if one is not feature]
        if answers(build(seed, both, 2)) != answers(build(seed, without, 2)):
            return
    pytest.fail(f"{feature.name} changed nothing, alone or with another")


def test_answers_of_all_kinds_occur() -> None:
    fits: Counter[str] = Counter()
    scored = 0
    for world, _ in sample(seed=1, n_worlds=60):
        for answer in answers(world)[:2]:
            n = len(answer.feasible)
            fits["none" if not n else "all" if n == len(world.nodes) else "some"] += 1
            scored += len({answer.total(node) for node in answer.feasible}) > 1
    assert fits["none"] >= 8
    assert fits["some"] >= 50
    assert fits["all"] >= 20
    assert scored >= 50


def test_a_world_without_a_feature_is_the_same_in_all_else() -> None:
    """Else a changed answer would not say that the feature decided it."""
    taints = next(one for one in FEATURES if one.name == "taints")
    ports = next(one for one in FEATURES if one.name == "host ports")
    both, one = build(7, [taints, ports]), build(7, [ports])
    for node in both.nodes:
        node["spec"].pop("taints", None)
    for pod in both.incoming:
        pod["spec"].pop("tolerations", None)
    assert both == one


def test_every_feature_occurs_alone_and_with_every_other() -> None:
    found = Counter(choices(3))
    assert set(found.values()) == {1}
    n = len(FEATURES)
    assert Counter(map(len, found)) == {1: n, 2: n * (n - 1) // 2}


FITS = Answer("a", frozenset({"a", "b"}), {"a": {"TaintToleration": 300}, "b": {}}, "")
WAITS = Answer(None, frozenset(), {}, "0/1 nodes are available: 1 Insufficient cpu.")


@pytest.mark.parametrize(
    ("theirs", "ours", "what"),
    [
        (FITS, FITS._replace(feasible=frozenset({"a"})), ["feasible"]),
        (FITS, FITS._replace(scores={"a": {"TaintToleration": 200}, "b": {}}), ["TaintToleration"]),
        (FITS, FITS._replace(scores={"a": FITS.scores["a"], "b": {"New": 1}}), ["New"]),
        (WAITS, WAITS._replace(message="0/1 nodes are available: 1 Insufficient memory."), ["message"]),
        (WAITS._replace(message="error: it fails"), FITS, ["error"]),
        (WAITS._replace(message='0/1 nodes. preemption: [running "X" filter plugin: it fails]'), WAITS, ["error"]),
        (WAITS._replace(message="0/1 nodes. preemption: nobody"), WAITS, ["message"]),
        (WAITS._replace(message="1 Insufficient cpu", is_gated=True), WAITS, []),
        (WAITS._replace(message="Insufficient", is_gated=True), WAITS, ["message"]),
        (FITS._replace(allocations={"c": {}}), FITS, ["allocation"]),
        (FITS, FITS, []),
        (WAITS, WAITS, []),
    ],
)  # fmt: skip
def test_what_differs_is_told(theirs: Answer, ours: Answer, what: list[str]) -> None:
    assert [one.what for one in differences(theirs, ours)] == what


def test_a_known_difference_is_of_victims_where_a_volume_is_shared_only() -> None:
    found = Difference("victims", ["a/one"], ["a/other"])
    assert known.reason(found, pods_with_volumes("u", "w")) is None
    assert known.reason(found, pods_with_volumes("v", "w")) is not None
    shared = pods_with_volumes("w", "w")
    assert known.reason(found, shared) is not None
    assert known.reason(found._replace(what="feasible"), shared) is None
    waiting = [one | {"spec": one["spec"] | {"nodeName": ""}} for one in shared]
    assert known.reason(found, waiting) is None
    assert_is_of_who_goes(shared)
    shared[0]["spec"]["drivers"][0].pop("allocatable")
    assert known.reason(found, shared) is None


def test_another_is_of_a_claim_by_the_name_of_one_that_is_used_alone_only() -> None:
    found = Difference("victims", ["b/p0"], [])
    volumes = [{"persistentVolumeClaim": {"claimName": "c"}}]
    there = {
        "kind": "Pod",
        "metadata": {"namespace": "b"},
        "spec": {"nodeName": "n", "volumes": volumes},
    }
    pod = {"kind": "Pod", "metadata": {"namespace": "a"}, "spec": {"volumes": volumes}}
    claim = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": "a", "name": "c"},
        "spec": {"accessModes": ["ReadWriteOncePod"]},
    }
    assert known.reason(found, [claim, there, pod]) is not None
    assert known.reason(found._replace(what="feasible"), [claim, there, pod]) is None
    assert_is_of_who_goes([claim, there, pod])
    assert known.reason(found, [claim, there | {"metadata": {"namespace": "a"}}, pod]) is None
    assert known.reason(found, [claim | {"spec": {}}, there, pod]) is None


def test_another_is_of_a_host_port_that_two_pods_of_a_node_have_only() -> None:
    def with_port(node: str | None, port: int = 80) -> Json:
        container = {"ports": [{"hostPort": port}]}
        spec = {"nodeName": node, "containers": [container]}
        return {"kind": "Pod", "metadata": {"namespace": "a"}, "spec": spec}

    found = Difference("victims", ["a/one", "a/two"], ["a/other"])
    twice = [with_port("n"), with_port("n"), with_port(None)]
    assert known.reason(found, twice) is not None
    assert_is_of_who_goes(twice)
    assert known.reason(found._replace(what="feasible"), twice) is None
    for objects in (
        [with_port("n"), with_port("m"), with_port(None)],
        [with_port("n"), with_port("n", 81), with_port(None)],
        [with_port("n"), with_port("n"), with_port(None, 0)],
    ):
        assert known.reason(found, objects) is None


def test_another_is_of_a_preference_among_nodes_that_cannot_be_read_only() -> None:
    def preferring(value: str) -> Json:
        term = {"matchExpressions": [{"key": "a", "operator": "Gt", "values": [value]}]}
        preferred = [{"weight": 1, "preference": term}]
        nodes = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
        spec = {"affinity": {"nodeAffinity": nodes}}
        return {"kind": "Pod", "metadata": {"namespace": "a"}, "spec": spec}

    found = Difference("feasible", ["a"], [])
    assert known.reason(found, [preferring("many")]) is not None
    assert known.reason(found, [preferring("3")]) is None


def assert_is_of_who_goes(objects: list[Json]) -> None:
    """In a case of these objects only that part of a message is known to differ which is about who is evicted."""
    full, nobody = "0/1 nodes are available: 1 Too many pods.", " preemption: 1 nobody."

    def is_known(theirs: str, ours: str) -> bool:
        return known.reason(Difference("message", theirs, ours), objects) is not None

    assert is_known(full + nobody, f"{full} preemption: 1 not helpful.")
    assert not is_known(full + nobody, f"0/1 nodes are available: 1 Insufficient cpu.{nobody}")
    assert not is_known(full + nobody, full)
    assert not is_known(full, "0/1 nodes are available: 1 Insufficient cpu.")


def pods_with_volumes(*handles: str) -> list[Json]:
    """Pods of one node, and last one without a node, whose volume is ``v``; the drivers of that node first."""
    found: list[Json] = [
        {"kind": "CSINode", "spec": {"drivers": [{"name": "d", "allocatable": {"count": 1}}]}}
    ]
    for i, handle in enumerate((*handles, "v")):
        meta = {"namespace": "a", "name": f"p{i}"}
        volumes = [{"persistentVolumeClaim": {"claimName": f"p{i}"}}]
        csi = {"driver": "d", "volumeHandle": handle}
        found += [
            {"kind": "PersistentVolume", "metadata": meta, "spec": {"csi": csi}},
            {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": {"volumeName": f"p{i}"}},
            {"kind": "Pod", "metadata": meta, "spec": {"nodeName": "n", "volumes": volumes}},
        ]
    del found[-1]["spec"]["nodeName"]
    return found
