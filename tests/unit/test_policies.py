"""BalancePolicy: which one governs a pod, what it says, and what the CRD lets pass."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.api import names, placement
from scheduler.api.door import events, notes
from scheduler.api.placement import (
    DIMENSIONS,
    GPU_POLICY_WORDS,
    MODES,
    NODE_POLICIES,
    OBJECTIVES,
    WEIGHT_MAX,
    Mode,
    Placement,
)  # fmt: skip
from scheduler.config import Config, Profile
from scheduler.embedded.api.admission import schemas
from scheduler.engine.engine import Engine
from scheduler.errors import BadInput
from scheduler.shapes import policies
from scheduler.shapes.policies import PolicyBook, Resolved
from scheduler.state.cluster import Cluster
from tests import make

Json = dict[str, Any]
CRD = Path(__file__).parents[2] / "crds/balancepolicies.yaml"
SCHEMA: Json = yaml.safe_load(CRD.read_text(encoding="utf-8"))["spec"]["versions"][0]["schema"][
    "openAPIV3Schema"
]
SPEC: Json = SCHEMA["properties"]["spec"]


def body(spec: Any, name: str = "p") -> Json:
    return {"apiVersion": "scheduling.evenkeel.dev/v1alpha1", "kind": "BalancePolicy",
            "metadata": {"name": name}, "spec": spec}  # fmt: skip


def book(*bodies: Json, default: Placement | None = None) -> PolicyBook:
    built = PolicyBook(Config(placement=default or Placement()))
    for one in bodies:
        built.put(policies.parse_policy(one))
    return built


def resolved(built: PolicyBook, **pod: Any) -> Resolved:
    record = Cluster().see_pod(make.pod(**pod))
    assert record is not None
    return built.resolve(record)


def test_annotation_beats_policy_beats_configuration_field_by_field() -> None:
    built = book(
        body({"gpuPolicy": "spread", "nodePolicy": "spread"}),
        default=Placement(mode=Mode.LAMBDA_G, gpu_policy="mutex"),
    )
    own = {names.HAMI_GPU_POLICY: "numa"}
    assert resolved(built, annotations=own) == Resolved(
        Placement(mode=Mode.LAMBDA_G, node_policy="spread", gpu_policy="numa"), "p"
    )
    assert resolved(book(), annotations=own).placement == Placement(gpu_policy="numa")


def test_each_scheduler_name_has_its_own_default_below_every_policy() -> None:
    """Pods of one template and one namespace, of two names: an answer is not remembered for the other."""
    packer = Profile("packer", Placement(node_policy="binpack"))
    built = PolicyBook(Config(placement=Placement(gpu_policy="spread"), profiles=(packer,)))
    cluster = Cluster(("evenkeel", "packer"))

    def found(name: str) -> Resolved:
        record = cluster.see_pod(make.pod(name=name, scheduler_name=name))
        assert record is not None
        return built.resolve(record)

    assert found("evenkeel").placement == Placement(gpu_policy="spread")
    assert found("packer").placement == Placement(node_policy="binpack")
    built.put(policies.parse_policy(body({"gpuPolicy": "numa"})))
    assert found("evenkeel").placement == Placement(gpu_policy="numa")
    assert found("packer").placement == Placement(node_policy="binpack", gpu_policy="numa")


def test_the_highest_priority_governs_alone_and_ties_go_to_the_first_name() -> None:
    built = book(
        body({"priority": 1, "nodePolicy": "spread"}, "low"),
        body({"priority": 5, "gpuPolicy": "mutex"}, "b"),
        body({"priority": 5, "gpuPolicy": "numa"}, "a"),
        body({"gpuPolicy": "binpack"}, "zero"),
    )
    assert resolved(built) == Resolved(Placement(gpu_policy="numa"), "a")
    for gone, governing in (("a", "b"), ("b", "low"), ("low", "zero"), ("zero", "")):
        built.drop(gone)
        assert resolved(built).policy == governing


def test_a_policy_that_changes_changes_the_answer() -> None:
    built = book(body({"gpuPolicy": "mutex"}))
    assert resolved(built).placement.gpu_policy == "mutex"
    built.put(policies.parse_policy(body({"gpuPolicy": "numa"})))
    assert resolved(built).placement.gpu_policy == "numa"


def test_labels_of_a_namespace_choose_and_its_name_is_one_of_them() -> None:
    team = {"namespaceSelector": {"matchLabels": {"team": "ml"}}, "gpuPolicy": "mutex"}
    name = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "lab"}}, "gpuPolicy": "numa"}  # fmt: skip
    built = book(body(team, "team"), body(name, "name"))
    assert resolved(built, namespace="x").policy == ""
    assert built.see_namespace("x", {"team": "ml"})
    assert not built.see_namespace("x", {"team": "ml"})
    assert resolved(built, namespace="x").policy == "team"
    assert resolved(built, namespace="lab").policy == "name"


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ({}, True),
        ({"matchLabels": {"a": "1"}}, True),
        ({"matchLabels": {"a": "1", "b": "1"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["0", "1"]}]}, True),
        ({"matchExpressions": [{"key": "b", "operator": "In", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "b", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False),
        ({"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}, True),
        ({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]}, False),
    ],
)  # fmt: skip
def test_a_selector_matches_when_all_of_it_does(selector: Json, *, matches: bool) -> None:
    built = book(body({"podSelector": selector, "gpuPolicy": "numa"}))
    assert resolved(built, labels={"a": "1"}).policy == ("p" if matches else "")


def test_a_malformed_annotation_is_the_pods_problem_and_names_itself() -> None:
    found = resolved(book(), annotations={names.MODE: "x"})
    assert found.problem is not None
    assert found.problem.field == f"metadata.annotations[{names.MODE}]"


@pytest.mark.parametrize(
    ("config", "policy", "own", "wanted"),
    [
        ({}, {}, {}, ("keel", "")),
        ({"objective": "pack"}, {}, {}, ("keel", "pack")),
        ({"objective": "pack"}, {"mode": "keel"}, {}, ("keel", "")),
        ({"objective": "pack"}, {"mode": "fgd"}, {}, ("fgd", "")),
        ({"objective": "pack"}, {"weights": {"cpu": 1}}, {}, ("keel", "pack")),
        ({"mode": "fgd"}, {"objective": "spread"}, {}, ("keel", "spread")),
        ({}, {"objective": "spread", "mode": "keel"}, {}, ("keel", "spread")),
        ({}, {"mode": "fgd"}, {names.OBJECTIVE: "pack"}, ("keel", "pack")),
        ({}, {"objective": "pack"}, {names.OBJECTIVE: "spread"}, ("keel", "spread")),
        ({}, {"objective": "pack"}, {names.MODE: "best-fit"}, ("best-fit", "")),
        ({}, {}, {names.MODE: "keel", names.OBJECTIVE: "pack"}, ("keel", "pack")),
    ],
)
def test_an_objective_means_keel_and_a_mode_drops_the_objective_of_a_weaker_level(
    config: Json, policy: Json, own: dict[str, str], wanted: tuple[str, str]
) -> None:
    default = Placement(**placement.read_fields({"scoring": config}, "placement"))
    found = resolved(book(body({"scoring": policy}), default=default), annotations=own)
    assert (found.placement.mode, found.placement.objective) == wanted
    assert found.problem is None


def test_the_pods_own_objective_takes_the_place_of_a_node_policy_that_it_did_not_ask_for() -> None:
    built = book(body({"nodePolicy": "spread"}))
    own = {names.OBJECTIVE: "pack"}
    assert resolved(built, annotations=own).placement == Placement(objective="pack")
    own[names.HAMI_NODE_POLICY] = "binpack"
    wanted = Placement(objective="pack", node_policy="binpack")
    assert resolved(built, annotations=own).placement == wanted


@pytest.mark.parametrize(
    ("own", "allowed"),
    [
        ({names.OBJECTIVE: "fill"}, "allowed are spread, pack"),
        ({names.OBJECTIVE: ""}, "allowed are spread, pack"),
        (
            {names.OBJECTIVE: "pack", names.MODE: "fgd"},
            "is allowed with mode keel or without a mode, not with mode fgd",
        ),
    ],
)
def test_an_objective_that_is_none_or_of_another_mode_is_refused(
    own: dict[str, str], allowed: str
) -> None:
    problem = resolved(book(), annotations=own).problem
    assert problem is not None
    assert problem.field == f"metadata.annotations[{names.OBJECTIVE}]"
    assert allowed in str(problem)


GOOD: list[Json] = [
    {"gpuPolicy": "binpack"},
    {"gpuPolicy": "numa,spread"},
    {"gpuPolicy": "numa , mutex"},
    {"nodePolicy": "spread"},
    {"scoring": {}},
    {"scoring": {"mode": "lambda-g"}, "priority": -5},
    {"scoring": {"objective": "pack"}},
    {"scoring": {"mode": "keel", "objective": "spread"}},
    {"scoring": {"weights": {"cpu": 0, "gpuMemory": 100}}},
    {"scoring": {"iopsResource": "x.dev/iops", "networkResource": "x.dev/net_1"}},
    {"scoring": {"mode": "requested-to-capacity-ratio", "curve": [{"utilization": 0, "score": 10}]}},
    {"gpuPolicy": "numa", "podSelector": {"matchLabels": {"a": ""}}},
    {"gpuPolicy": "numa", "podSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": []}]}},
]  # fmt: skip


def selecting(*expressions: Any) -> Json:
    return {"gpuPolicy": "numa", "podSelector": {"matchExpressions": list(expressions)}}


RATIO = "requested-to-capacity-ratio"
# What the schema's types and patterns refuse.
BAD: list[tuple[Any, str]] = [
    ("text", "spec"),
    ({"gpuPolicy": "fast"}, "spec.gpuPolicy"),
    ({"gpuPolicy": ""}, "spec.gpuPolicy"),
    ({"gpuPolicy": "numa,"}, "spec.gpuPolicy"),
    ({"gpuPolicy": 5}, "spec.gpuPolicy"),
    ({"nodePolicy": "numa"}, "spec.nodePolicy"),
    ({"nodePolicy": "Spread"}, "spec.nodePolicy"),
    ({"gpuPolicy": "numa", "priority": "high"}, "spec.priority"),
    ({"gpuPolicy": "numa", "priority": 1.5}, "spec.priority"),
    ({"scoring": []}, "spec.scoring"),
    ({"scoring": {"mode": "fastest"}}, "spec.scoring.mode"),
    ({"scoring": {"objective": "fill"}}, "spec.scoring.objective"),
    ({"scoring": {"objective": 1}}, "spec.scoring.objective"),
    ({"scoring": {"weights": {"cpu": 101}}}, "spec.scoring.weights.cpu"),
    ({"scoring": {"weights": {"cpu": -1}}}, "spec.scoring.weights.cpu"),
    ({"scoring": {"weights": {"cpu": "1"}}}, "spec.scoring.weights.cpu"),
    ({"scoring": {"iopsResource": "iops"}}, "spec.scoring.iopsResource"),
    ({"scoring": {"networkResource": "X.dev/net"}}, "spec.scoring.networkResource"),
    ({"scoring": {"mode": RATIO, "curve": []}}, "spec.scoring.curve"),
    ({"scoring": {"mode": RATIO, "curve": [{"utilization": 5}]}}, "spec.scoring.curve[0].score"),
    ({"scoring": {"mode": RATIO, "curve": [{"utilization": 500, "score": 1}]}}, "spec.scoring.curve[0].utilization"),
    ({"gpuPolicy": "numa", "podSelector": []}, "spec.podSelector"),
    ({"gpuPolicy": "numa", "podSelector": {"matchLabels": {"a": 5}}}, "spec.podSelector.matchLabels.a"),
    ({"gpuPolicy": "numa", "podSelector": {"matchExpressions": 5}}, "spec.podSelector.matchExpressions"),
    (selecting("x"), "spec.podSelector.matchExpressions[0]"),
    (selecting({"key": "", "operator": "Exists"}), "spec.podSelector.matchExpressions[0].key"),
    (selecting({"key": "a", "operator": "Gt"}), "spec.podSelector.matchExpressions[0].operator"),
    (selecting({"key": "a", "operator": "In", "values": "x"}), "spec.podSelector.matchExpressions[0].values"),
    (selecting({"key": "a", "operator": "In", "values": [1]}), "spec.podSelector.matchExpressions[0].values[0]"),
]  # fmt: skip
# What its CEL rules refuse (tested against a real API server elsewhere).
BAD_BY_CEL: list[tuple[Any, str]] = [
    ({}, "spec"),
    ({"priority": 5}, "spec"),
    ({"scoring": {"weights": {}}}, "spec.scoring.weights"),
    ({"scoring": {"weights": {"cpu": 0}}}, "spec.scoring.weights"),
    ({"scoring": {"curve": [{"utilization": 5, "score": 1}]}}, "spec.scoring.curve"),
    ({"scoring": {"mode": "fgd", "objective": "pack"}}, "spec.scoring.objective"),
    ({"scoring": {"iopsResource": "a.dev/x", "networkResource": "a.dev/x"}}, "spec.scoring.networkResource"),
    ({"scoring": {"mode": RATIO, "curve": [{"utilization": 5, "score": 1}] * 2}}, "spec.scoring.curve"),
    (selecting({"key": "a", "operator": "In"}), "spec.podSelector.matchExpressions[0].values"),
    (selecting({"key": "a", "operator": "Exists", "values": ["b"]}), "spec.podSelector.matchExpressions[0].values"),
]  # fmt: skip


@pytest.mark.parametrize("spec", GOOD, ids=str)
def test_what_the_crd_lets_pass_can_be_read(spec: Json) -> None:
    assert not schemas.find_problems(SCHEMA, body(spec))
    assert not schemas.prune(SCHEMA, copy.deepcopy(body(spec)))
    policies.parse_policy(body(spec))


@pytest.mark.parametrize(("spec", "field"), BAD, ids=str)
def test_what_the_crd_refuses_is_refused_here_by_the_same_field(spec: Any, field: str) -> None:
    assert field in [cause.field for cause in schemas.find_problems(SCHEMA, body(spec))]
    with pytest.raises(BadInput) as refused:
        policies.parse_policy(body(spec))
    assert refused.value.field == field


@pytest.mark.parametrize(("spec", "field"), BAD_BY_CEL, ids=str)
def test_what_cel_refuses_is_refused_here_too(spec: Any, field: str) -> None:
    assert not schemas.find_problems(SCHEMA, body(spec))
    with pytest.raises(BadInput) as refused:
        policies.parse_policy(body(spec))
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"gpuPolicy": "numa", "extra": 1}, "spec.extra"),
        ({"scoring": {"kind": 1}}, "spec.scoring.kind"),
        ({"scoring": {"weights": {"cpu": 1, "gpu": 1}}}, "spec.scoring.weights.gpu"),
    ],
)
def test_an_unknown_field_is_refused_where_no_api_server_prunes_it(spec: Any, field: str) -> None:
    assert schemas.prune(SCHEMA, copy.deepcopy(body(spec))) == [field]
    with pytest.raises(BadInput) as refused:
        policies.parse_policy(body(spec))
    assert refused.value.field == field


def test_the_crd_lists_the_words_that_the_code_knows() -> None:
    scoring = SPEC["properties"]["scoring"]["properties"]
    assert scoring["mode"]["enum"] == [str(mode) for mode in MODES]
    assert tuple(scoring["objective"]["enum"]) == OBJECTIVES
    assert tuple(scoring["weights"]["properties"]) == DIMENSIONS
    assert {w["maximum"] for w in scoring["weights"]["properties"].values()} == {WEIGHT_MAX}
    assert tuple(SPEC["properties"]["nodePolicy"]["enum"]) == NODE_POLICIES
    words = re.findall(r"[a-z][a-z-]+", SPEC["properties"]["gpuPolicy"]["pattern"])
    assert tuple(dict.fromkeys(words)) == GPU_POLICY_WORDS


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"scoring": {"mode": "keel"}}, []),
        ({"scoring": {"objective": "pack"}}, []),
        ({"nodePolicy": "spread", "gpuPolicy": "binpack"}, []),
        (
            {"scoring": {"objective": "pack"}, "nodePolicy": "spread"},
            ["this has no effect: mode keel, objective pack;"],
        ),
        (
            {"scoring": {"mode": "keel", "weights": {"cpu": 1}}, "nodePolicy": "spread"},
            [
                "nodePolicy spread scores the nodes",
                "this has no effect: mode keel, weights;",
                "by binpack",
            ],
        ),
        (
            {"scoring": {"weights": {"cpu": 1}}, "nodePolicy": "spread", "gpuPolicy": "numa"},
            ["this has no effect: weights;", "by gpuPolicy numa"],
        ),
    ],
)
def test_an_engine_says_what_of_a_policy_is_without_effect(
    spec: dict[str, Any], said: list[str]
) -> None:
    (note,) = Engine(Config()).handle(events.Seen(make.policy(body(spec))), 0.0)
    assert isinstance(note, notes.PolicyJudged)
    assert not note.problem
    assert all(words in note.remark for words in said)
    assert bool(note.remark) == bool(said)


def test_a_mode_is_without_effect_under_a_node_policy_of_the_configuration_too() -> None:
    packer = Profile("packer", Placement(node_policy="binpack"))
    engine = Engine(Config(profiles=(packer,)))
    (note,) = engine.handle(events.Seen(make.policy(body({"scoring": {"mode": "keel"}}))), 0.0)
    assert isinstance(note, notes.PolicyJudged)
    assert "for pods of packer (binpack) the configuration's nodePolicy scores" in note.remark
    (note,) = engine.handle(events.Seen(make.policy(body({"gpuPolicy": "numa"}))), 0.0)
    assert isinstance(note, notes.PolicyJudged)
    assert not note.remark
