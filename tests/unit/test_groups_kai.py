"""KAI's order of the domains, and its scores of nodes: the vectors against the twin that goes from domain to domain."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.placing.groups import kai
from scheduler.placing.groups.domains import Level
from scheduler.placing.groups.kai import Asked, Tasks, Wish
from tests import slices
from tests.oracles import kai as oracle
from tests.oracles.kai import CPU, GPU, Amounts, Node

Json = dict[str, Any]
Path_ = tuple[str, ...]
CASES: list[Json] = yaml.safe_load(
    (Path(__file__).parents[1] / "oracles/kai_cases.yaml").read_text(encoding="utf-8")
)


def make_levels(nodes: list[Node], n_levels: int) -> list[Level]:
    """Number the domains of each level by name, as ``domains.Domains`` does."""
    levels: list[Level] = []
    for depth in range(1, n_levels + 1):
        names = sorted({node.values[:depth] for node in nodes if len(node.values) >= depth})
        domain = [
            names.index(node.values[:depth]) if len(node.values) >= depth else -1 for node in nodes
        ]
        parent = [levels[-1].names.index(name[:-1]) if levels else 0 for name in names]
        levels.append(Level(np.array(domain), tuple(names), np.array(parent, np.int64)))
    return levels


def choose(
    nodes: list[Node],
    n_levels: int,
    pods: list[Amounts],
    required: int,
    preferred: int,
    there: tuple[Path_, ...],
) -> tuple[list[Path_], dict[str, int]]:
    """Choose with vectors, as the twin does."""
    levels = make_levels(nodes, n_levels)
    names = sorted({name for pod in pods for name, amount in pod.items() if amount})
    free = [[node.free.get(name, 0) for node in nodes] for name in names]
    asked = Asked(
        np.array([sum(pod.get(name, 0) for pod in pods) for name in names], np.int64),
        np.array([{GPU: 0, CPU: 1000}.get(name, 1) for name in names], np.int64),
        np.array(free, np.int64).reshape(len(names), len(nodes)),
    )
    kinds = {frozenset(name for name, n in pod.items() if n) - oracle.ALWAYS for pod in pods}
    places = [oracle.count_on(node, pods) for node in nodes] if len(kinds) == 1 else []
    inner = [levels[required].names.index(one) for one in there] if required >= 0 else []
    found = kai.find_sets(
        levels,
        Tasks(len(pods), np.array(places, np.int64), asked),
        Wish(required, preferred, np.array(inner, np.int64)),
        np.ones(len(nodes), np.bool_),
    )
    sets = [levels[one.level].names[one.number] if one.level >= 0 else () for one in found.sets]
    scores = {}
    if found.scores.size:
        scores = {
            node.name: score
            for node, score in zip(nodes, found.scores.tolist(), strict=True)
            if len(node.values) == n_levels
        }
    return sets, scores


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Node], int, list[Amounts], int, int]:
    n_levels = draw(st.integers(1, 3))
    amounts = {CPU: st.integers(0, 5000), GPU: st.integers(0, 4), "disk": st.integers(0, 3)}
    nodes = []
    for i in range(draw(st.integers(1, 8))):
        n_labels = draw(st.sampled_from((n_levels, n_levels, n_levels, n_levels - 1)))
        values = tuple(draw(st.sampled_from("abc")) for _ in range(n_labels))
        nodes.append(Node(f"n{i}", values, draw(st.fixed_dictionaries(amounts))))
    if not any(len(node.values) == n_levels for node in nodes):
        nodes.append(Node("last", ("a",) * n_levels, {GPU: 1}))
    like = draw(st.booleans())
    pod = st.fixed_dictionaries(
        {CPU: st.sampled_from((0, 500, 1000)), GPU: st.integers(0, 2), "disk": st.integers(0, 1)}
    )
    n = draw(st.integers(1, 6))
    pods = [draw(pod)] * n if like else [draw(pod) for _ in range(n)]
    required = draw(st.integers(-1, n_levels - 1))
    preferred = draw(st.integers(0 if required < 0 else -1, n_levels - 1))
    return nodes, n_levels, pods, required, preferred


@given(worlds())
@settings(max_examples=slices.count_examples(2000))
def test_the_vectors_choose_as_the_twin_does(
    world: tuple[list[Node], int, list[Amounts], int, int],
) -> None:
    nodes, n_levels, pods, required, preferred = world
    expected = oracle.choose(nodes, n_levels, pods, required=required, preferred=preferred)
    assert choose(*world, there=()) == expected


@pytest.mark.parametrize("case", [pytest.param(one, id=one["name"]) for one in CASES])
def test_domains_are_tried_as_kais_own_tests_say(case: Json) -> None:
    levels: list[str] = case["levels"]
    nodes = [Node(path.split("/")[-1], tuple(path.split("/")), free) for path, free in case["nodes"].items()]  # fmt: skip
    required, preferred = (
        levels.index(case[key]) if key in case else -1 for key in ("required", "preferred")
    )
    there = tuple(tuple(one.split("/")) for one in case.get("there", ()))
    expected = [() if one == "/" else tuple(one.split("/")) for one in case["want"]], case.get("scores", {})  # fmt: skip
    assert choose(nodes, len(levels), case["pods"], required, preferred, there) == expected
    twin = oracle.choose(
        nodes, len(levels), case["pods"], required=required, preferred=preferred, there=there
    )
    assert twin == expected
