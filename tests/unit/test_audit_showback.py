"""``evenkeel audit --by``: who has what of the cluster, and what it costs."""

import csv
import io
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import names, wire
from scheduler.audit import findings, showback
from scheduler.audit.findings import About, Question
from scheduler.audit.prices import book
from scheduler.config import Config
from tests import make, slices
from tests.oracles import showback as twin
from tests.unit.test_audit_command import node, pod, refused, run
from tests.unit.test_audit_figures import holder

Json = dict[str, Any]
MIB = 40 * 1024
PRICES = book.read_flags(None, ["cpu-core=10", "memory-gib=2", "A100=1000", "T4=300"])
ABOUT = About(made="2026-01-01 00:00 UTC", source="cluster.yaml", version="1.2.3")
QUESTION = Question(config=Config(), modes=(), prices=PRICES, worst=0, about=ABOUT)
CARDS = {
    f"{name}-{i}": twin.Card(name, MIB, Fraction(1000)) for name in ("a", "b") for i in range(2)
}
COUNTED = {"w": twin.Counted(4, 1, Fraction(300)), "s": twin.Counted(8, 4, Fraction(300))}
TEAM = "team"
# The dimensions of the audit by the columns of showback.
DIMENSIONS = {"cpu": "cpu", "memory": "memory", "gpus": "gpuCompute", "gpuMemory": "gpuMemory"}


def nodes() -> list[wire.Node]:
    """Two with cards that are shared, one with whole GPUs, one whose GPUs are reported four times, one without."""
    model = "NVIDIA-NVIDIA A100"
    shared = [
        make.hami_node(name=name, cards=make.cards(count=2, prefix=name, mib=MIB, model=model))
        for name in ("a", "b")
    ]
    product = {names.GPU_PRODUCT: "Tesla-T4"}
    sliced = {names.GPU_PRODUCT: "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "4"}
    return [
        *shared,
        make.node(name="w", gpus=4, labels=product),
        make.node(name="s", gpus=8, labels=sliced),
        make.node(name="c", cpu=64),
    ]


def answer(pods: list[wire.Pod], by: str = "namespace", of: list[wire.Node] | None = None) -> Json:
    return showback.show_back(
        nodes() if of is None else of, pods, QUESTION, showback.parse_by(by), lambda _: None
    )


Held = tuple[wire.Pod, twin.Holder]


@st.composite
def holders(draw: st.DrawFn, i: int) -> Held:
    """A pod and the same for the twin; cards may be held beyond what there is."""
    where = draw(st.sampled_from(["a", "b", "w", "s", "c"]))
    who = draw(st.sampled_from(["red", "blue", None]))
    space = draw(st.sampled_from(["one", "two"]))
    cpu = draw(st.integers(1, 3)) if where != "w" else 1
    held: dict[str, tuple[int, int]] = {}
    counted = 0
    if where in {"a", "b"}:
        for j in sorted(draw(st.sets(st.sampled_from([0, 1])))):
            mib = draw(st.sampled_from([1024, MIB // 4, MIB // 2, MIB]))
            held[f"{where}-{j}"] = draw(st.sampled_from([0, 30, 60, 100])), mib
        claim = "".join(f"{card},NVIDIA,{mib},{cores}:" for card, (cores, mib) in held.items())
        built = (
            holder(f"p{i}", claim, node=where, cpu=cpu, memory="2Gi")
            if held
            else make.pod(name=f"p{i}", node=where, cpu=cpu, memory="2Gi")
        )
    else:
        counted = draw(st.integers(0, 3)) if where != "c" else 0
        asks: Json = {"gpu": counted} if counted else {}
        built = make.pod(name=f"p{i}", node=where, cpu=cpu, memory="2Gi", **asks)
    built.metadata.namespace, built.metadata.uid = space, f"{space}/p{i}"
    if who:
        built.metadata.labels = {TEAM: who}
    return built, twin.Holder(who, where, Fraction(cpu), Fraction(2), held, counted)


@settings(max_examples=slices.count_examples(60), deadline=None)
@given(st.data(), st.integers(0, 12), st.sampled_from(["namespace", f"label={TEAM}"]))
def test_each_has_what_the_twin_says_and_all_together_what_the_audit_says_is_used(
    data: st.DataObject, n: int, by: str
) -> None:
    held = [data.draw(holders(i)) for i in range(n)]
    pods = [built for built, _ in held]
    said = [
        one if by != "namespace" else one._replace(who=built.metadata.namespace)
        for built, one in held
    ]
    found = answer(pods, by)
    prices = {key: Fraction(price) for key, price in PRICES.units.items()}
    expected = twin.rows(said, CARDS, COUNTED, prices)
    assert {row["value"] for row in found["rows"]} == set(expected)
    for row in found["rows"]:
        of_twin = expected[row["value"]]
        for key in ("pods", "cpu", "memory", "gpus", "gpuMemory", "money"):
            assert row[key] == pytest.approx(float(of_twin[key]), abs=1e-5), (row, key)
    total = findings.audit_cluster(nodes(), pods, QUESTION)["total"]
    for column, dimension in DIMENSIONS.items():
        assert found["total"][column] == pytest.approx(total["used"][dimension], abs=1e-5)
    assert found["total"]["money"] == pytest.approx(total["value"]["used"], abs=1e-5)
    for key, all_of_it in found["total"].items():
        assert sum(row[key] for row in found["rows"]) == pytest.approx(all_of_it, abs=1e-4)


def test_pods_that_wait_or_whose_node_is_gone_have_nothing() -> None:
    there = [make.pod(name=name, node=where, cpu=1) for name, where in (("r", "c"), ("w", ""), ("g", "gone"))]  # fmt: skip
    found = answer(there)
    assert [row["pods"] for row in found["rows"]] == [1]
    assert found["total"]["cpu"] == 1


def test_the_most_expensive_is_first() -> None:
    pods = [make.pod(name="p", namespace=space, node="c", cpu=n) for space, n in (("x", 1), ("y", 3))]  # fmt: skip
    assert [row["value"] for row in answer(pods)["rows"]] == ["y", "x"]


def labelled(name: str, value: str | None) -> Json:
    body = pod(name)
    body["metadata"] |= {"labels": {TEAM: value} if value is not None else {}}
    return body


PODS = [node(), labelled("a", "red"), labelled("b", "red"), labelled("c", ""), labelled("d", None)]


def test_csv_has_a_row_for_each_value_one_for_pods_without_the_label_and_no_total() -> None:
    done = run("-f", "-", "--by", f"label={TEAM}", "-o", "csv", "--price", "cpu-core=10", "--price", "memory-gib=0", objects=PODS)  # fmt: skip
    assert done.exit_code == 0, done.output
    assert list(csv.reader(io.StringIO(done.stdout))) == [
        ["team", "pods", "gpus", "gpuMemory", "cpu", "memory", "money"],
        ["red", "2", "0.0", "0.0", "2.0", "4.0", "20.0"],
        ["", "1", "0.0", "0.0", "1.0", "2.0", "10.0"],
        ["(no label)", "1", "0.0", "0.0", "1.0", "2.0", "10.0"],
    ]


def test_json_names_what_it_is_by_and_a_missing_label_is_null(tmp_path: Path) -> None:
    at = tmp_path / "who.json"
    done = run("-f", "-", "--by", f"label={TEAM}", "-o", "json", "--output-file", at, objects=PODS)
    assert (done.exit_code, done.stdout) == (0, "")
    found = json.loads(at.read_text(encoding="utf-8"))
    assert (found["by"], found["label"]) == ("label", TEAM)
    assert [row["value"] for row in found["rows"]] == ["red", "", None]
    assert found["total"]["pods"] == 4
    by_space = json.loads(run("-f", "-", "--by", "namespace", "-o", "json", objects=PODS).stdout)
    assert (by_space["by"], by_space["label"]) == ("namespace", None)
    assert [row["value"] for row in by_space["rows"]] == ["default"]


def test_the_table_has_a_total_and_fits_80_columns() -> None:
    done = run("-f", "-", "--by", f"label={TEAM}", objects=PODS)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80 or "https" in max(lines, key=len)
    rows = [line.split() for line in lines]
    assert ["team", "pods", "GPUs", "GPU", "GiB", "CPU", "GiB", "$", "a", "month"] in rows
    assert any(row[:2] == ["total", "4"] for row in rows)
    assert any(row[:3] == ["(no", "label)", "1"] for row in rows)


def test_a_mistake_is_named_and_ends_with_3() -> None:
    bad = pod("bad", node="")
    bad["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "x"
    done = run("-f", "-", "--by", "namespace", objects=[node(), pod(), bad])
    assert done.exit_code == 3
    assert "1 object has mistakes and is left out" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--by", "team"), '--by: "team" is neither namespace nor label=KEY'),
        (("--by", "label="), '--by: "label=" is neither namespace nor label=KEY'),
        (("--by", "namespace=x"), '--by: "namespace=x" is neither namespace nor label=KEY'),
        (("--by", "namespace", "-o", "html"), "--by: does not support -o html; use -o table, csv, json or yaml"),
        (("--by", "namespace", "--nodes"), "--nodes: cannot be combined with --by; use one of the two"),
        (("-o", "csv"), "-o csv: needs --by or --nodes; without them use -o table, json, yaml or html"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused_before_anything_is_read(
    arguments: tuple[str, ...], said: str
) -> None:
    assert refused("-f", "nowhere.yaml", *arguments) == said


def test_a_label_that_can_be_none_is_refused() -> None:
    assert refused("-f", "-", "--by", "label=a b").startswith("--by: ")


def test_what_strangers_wrote_is_no_formula_and_no_order_to_a_terminal() -> None:
    objects = [node(), labelled("a", "=1+1"), labelled("b", "x\x1b]0;y\x07")]
    by = ("--by", f"label={TEAM}")
    rows = [*csv.reader(io.StringIO(run("-f", "-", *by, "-o", "csv", objects=objects).stdout))]
    assert {row[0] for row in rows[1:]} == {"'=1+1", r"x\x1b]0;y\x07"}
    shown = run("-f", "-", *by, objects=objects).stdout
    assert [line for line in shown.split("\n") if not line.isprintable()] == []
