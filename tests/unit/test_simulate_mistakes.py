"""Mistakes in what ``evenkeel simulate`` is given: each is told, with file, object and field, and the rest answered."""

import json
from pathlib import Path
from typing import Any

import pytest

from scheduler.documents import writing
from scheduler.simulate import InputProblem, schedule
from tests import make
from tests.prose import unwrapped
from tests.unit import test_simulate as typed
from tests.unit.test_simulate import NODE
from tests.unit.test_simulate_what_if import node, placed, pod, refused, simulate, workload

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"nodeSelector": ["a"]}, "spec.nodeSelector: must be a map, is a list"),
        ({"priority": "high"}, "spec.priority: must be a whole number, is text"),
        ({"schedulerName": {}}, "spec.schedulerName: must be text, is a map"),
        ({"nodeSelector": {"a": True}}, "spec.nodeSelector[a]: must be text, is true or false"),
        (
            {"nodeSelector": {"a": "b", "c.d/e": 5}},
            "spec.nodeSelector[c.d/e]: must be text, is a whole number",
        ),
        (
            {"nodeSelector": {"a": 1, "b": "c", "d": True, "e": None, "f": 2}},
            "spec.nodeSelector: values must be text: [a] is a whole number, [d] is true or false, [f] is a whole number",
        ),
        (
            {"containers": [{"name": "d", "resources": {"limits": {"cpu": {}, "memory": []}}}]},
            "spec.containers[0].resources.limits: values must be a number or text: [cpu] is a map, [memory] is a list",
        ),
        (
            {
                "containers": [
                    {"name": "c"},
                    {"name": "d", "resources": {"limits": {"cpu": 1, "memory": []}}},
                ]
            },
            "spec.containers[1].resources.limits[memory]: must be a number or text, is a list",
        ),
        ({"containers": [None]}, "spec.containers[0]: must be a map, is empty"),
        ({"overhead": {"cpu": []}}, "spec.overhead[cpu]: must be a number or text, is a list"),
    ],
)
def test_a_value_of_another_type_is_told_in_words_of_yaml(spec: Json, said: str) -> None:
    objects = [NODE, typed.pod(**spec)]
    assert typed.refused("-f", "-", "--strict", stdin=writing.dump_all(objects)) == (
        f"-: Pod default/p: {said}"
    )


def test_a_file_that_is_not_there_or_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "node").write_text(writing.dump(NODE), encoding="utf-8")
    for name, said in (
        ("none", "there is no such file"),
        ("node/none", "there is no such file"),
        ("", "is a folder, not a file"),
        ("binary", "is not UTF-8 text"),
        ("n" * 300, "cannot be read: File name too long"),
    ):
        path = str(tmp_path / name)
        join = (
            f": use `awk 'FNR == 1 {{print \"---\"}} 1' {tmp_path}/*.yaml | evenkeel simulate -f -`"
        )
        assert typed.refused("-f", path) == f"{path}: {said}{'' if name else join}"
        for option in ("--add-node", "--policy"):
            assert (
                typed.refused("-f", str(tmp_path / "node"), option, path)
                == f"{option} {path}: {said}"
            )
        if "binary" not in name:
            assert typed.refused("-f", "-", "--config", path) == f"{path}: file: {said}"


def test_a_chart_its_templates_and_a_kustomization_say_which_command_prints_them(
    tmp_path: Path,
) -> None:
    chart, other = tmp_path / "chart", tmp_path / "other"
    (chart / "templates").mkdir(parents=True)
    other.mkdir()
    (chart / "Chart.yaml").write_text("name: c\n", encoding="utf-8")
    (other / "kustomization.yaml").write_text("resources: []\n", encoding="utf-8")
    for folder in (chart, chart / "templates"):
        said = f"{folder}: is a Helm chart: use `helm template {chart} | evenkeel simulate -f -`"
        assert typed.refused("-f", str(folder)) == said
    said = f"{other}: is a kustomization: use `kubectl kustomize {other} | evenkeel simulate -f -`"
    assert typed.refused("-f", str(other)) == said
    broken = chart / "templates" / "x.yaml"
    broken.write_text("metadata:\n  name: {{ .Release.Name }}\n", encoding="utf-8")
    said = "is a template of a Helm chart: use `helm template {} | evenkeel simulate -f -`"
    assert typed.refused("-f", str(broken)) == f"{broken}: {said.format(chart)}"
    said = said.format("DIR")
    assert typed.refused("-f", "-", stdin=broken.read_text(encoding="utf-8")) == f"-: {said}"
    # A template that is YAML by chance is a mistake among the objects.
    named = writing.dump(typed.pod("{{ .Release.Name }}"))
    assert typed.refused("-f", "-", stdin=named) == f"-: {said}"


def test_what_has_no_kind_is_one_mistake_and_the_rest_is_answered(tmp_path: Path) -> None:
    path = tmp_path / "mixed.yaml"
    listed = {"kind": "List", "items": [None, typed.pod("in-list"), 7]}
    documents = [
        {"metadata": {"name": "odd"}},
        NODE,
        listed,
        None,
        "text",
        typed.pod("p"),
    ]
    path.write_text(writing.dump_all(documents))
    result = typed.simulate("-f", str(path), "-o", "json")
    assert result.exit_code == 3, result.output
    found = json.loads(result.stdout)
    assert placed(found) == {"in-list": "a", "p": "a"}
    problem = "is missing: every document and every item of a List must name one"
    nameless = [("(no name)", f"document {n}") for n in ("3, item 1", "3, item 3", "5")]
    assert found["mistakes"] == [
        {"object": f"(no kind) {name}", "field": "kind", "problem": problem, "file": str(path), "place": place, "counts": True}
        for name, place in [("odd", ""), *nameless]
    ]  # fmt: skip
    lines = [f"{path}: (no kind) odd: kind: {problem}"]
    lines += [f"{path}: {place}: (no kind) (no name): kind: {problem}" for _, place in nameless]
    assert unwrapped(result.stderr).splitlines() == lines
    assert typed.refused("-f", str(path), "--strict").splitlines() == lines


def test_one_bad_pod_is_held_and_the_others_are_placed() -> None:
    bad = pod("bad")
    bad["spec"]["containers"] = 5
    worse = pod("worse", requests={"memory": "x"})
    objects = [node("a"), pod("good"), bad, worse, node("broken", cpu="x")]
    result = simulate("-o", "json", "--fail-if-pending", objects=objects)
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert placed(found) == {"good": "a", "bad": None, "worse": None}
    assert found["pods"][-1]["message"] == "spec.containers: must be a list, is a whole number"
    assert [(one["file"], one["object"], one["field"]) for one in found["mistakes"]] == [
        ("-", "Pod default/bad", "spec.containers"),
        ("-", "Node broken", "status.allocatable[cpu]"),
        ("-", "Pod default/worse", "spec.containers[0].resources.requests[memory]"),
    ]
    assert unwrapped(result.stderr).startswith("-: Pod default/bad: spec.containers: must be a list, is a whole number\n-: Node broken:")  # fmt: skip
    lines = refused("--strict", objects=objects).splitlines()
    # In the order of the objects.
    assert [line.split(": ")[1:3] for line in lines] == [
        ["Pod default/bad", "spec.containers"],
        ["Pod default/worse", "spec.containers[0].resources.requests[memory]"],
        ["Node broken", "status.allocatable[cpu]"],
    ]


def test_strict_tells_every_mistake_and_at_most_twenty() -> None:
    """Whatever finds it: the reading, a workload, the engine, an object of a change."""
    classy = pod("classy")
    classy["spec"] |= {"priorityClassName": "none", "priority": None}
    objects = [
        node("a"), pod("p"), classy, workload("Deployment", replicas=-1), node("broken", cpu="x"),
        {"kind": "PriorityClass", "metadata": {"name": "odd"}, "value": "high"},
        workload("Job", template={"spec": {"priorityClassName": "odd", "containers": [make.container(cpu="x")]}}),
    ]  # fmt: skip
    told = {
        "Pod default/classy": "spec.priorityClassName",
        "Deployment default/web": "spec.replicas",
        "Node broken": "status.allocatable[cpu]",
        "PriorityClass odd": "value",
        "Job default/web": "spec.template.spec.containers[0].resources.requests[cpu]",
    }
    lines = refused("--strict", objects=objects).splitlines()
    assert dict(line.split(": ")[1:3] for line in lines) == told
    assert len(lines) == len(told)
    # That it is not there is so for its mistake, which is what has to be mended.
    assert "Node broken: status" in refused("--strict", "--cordon", "broken", objects=objects)
    with pytest.raises(InputProblem) as caught:
        schedule(objects, strict=True)
    assert [caught.value.name, *(one.name for one in caught.value.others)] == list(told)
    many = refused("--strict", objects=[pod(f"p{i}", cpu="x") for i in range(23)]).splitlines()
    assert len(many) == 21
    assert many[-1] == "and 3 more"


def test_a_bound_pod_that_asks_what_nobody_reads_is_told_and_takes_only_a_place() -> None:
    bound = pod("bound", node="a", cpu=2, requests={"memory": "x"})
    result = simulate("-o", "json", objects=[node("a", cpu=2, pods=2), bound, pod("p"), pod("q"), pod("done", phase="Failed")])  # fmt: skip
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert found["mistakes"][0]["object"] == "Pod default/bound"
    assert placed(found) == {"p": "a", "q": None}


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "BalancePolicy", "metadata": {"name": "x"}, "spec": {"nodePolicy": "up"}},
        {"kind": "PriorityClass", "metadata": {"name": "x"}, "value": "high"},
        {"kind": "Namespace", "metadata": {"name": "x", "labels": 5}},
        {"kind": "Service", "metadata": {"name": "x"}, "spec": {"selector": 5}},
        {"kind": "Service", "metadata": 5},
        {"kind": "Pod", "metadata": 5},
        {"kind": "Deployment", "metadata": 5},
        {"kind": "Job", "metadata": {"name": "x"}, "status": {"succeeded": "all"}, "spec": {}},
    ],
)
def test_any_bad_object_is_left_out_and_named(body: Json) -> None:
    result = simulate("-o", "json", objects=[body, node("a"), pod("p")])
    found = json.loads(result.stdout)
    assert placed(found)["p"] == "a"
    assert result.exit_code == 3
    assert found["mistakes"][0]["object"].startswith(body["kind"])
