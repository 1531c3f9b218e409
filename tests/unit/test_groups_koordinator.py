"""Pods go to the nodes that Koordinator chooses: the vectors against the twin that goes from domain to domain."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.placing.groups import koordinator
from scheduler.placing.groups.koordinator import Layer, Room
from tests import slices
from tests.oracles import koordinator as oracle
from tests.oracles.koordinator import Node

Json = dict[str, Any]
CASES: list[Json] = yaml.safe_load(
    (Path(__file__).parents[1] / "oracles/koordinator_cases.yaml").read_text(encoding="utf-8")
)


def plan(
    nodes: list[Node], n_layers: int, wanted: int, must: int, multiples: dict[int, int]
) -> list[tuple[str, int]] | None:
    """Plan with vectors, for nodes that have all labels."""
    layers: list[Layer] = []
    paths: list[tuple[str, ...]] = [()]
    for depth in range(1, n_layers + 1):
        above, paths = paths, sorted({node.values[:depth] for node in nodes})
        words = sorted({path[-1] for path in paths})
        parent = [above.index(path[:-1]) for path in paths]
        rank = [words.index(path[-1]) for path in paths]
        layers.append(Layer(np.array(parent), np.array(rank), multiples.get(depth - 1, 1)))
    names = sorted(node.name for node in nodes)
    parent = [paths.index(node.values) for node in nodes]
    rank = [names.index(node.name) for node in nodes]
    layers.append(Layer(np.array(parent), np.array(rank), multiples.get(n_layers, 1)))
    room = Room(
        np.array([min(node.places, wanted) for node in nodes]),
        np.array([node.company for node in nodes]),
    )
    found = koordinator.plan(layers, room, wanted, must)
    return None if found is None else [(nodes[i].name, n) for i, n in found]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Node], int, int, int, dict[int, int]]:
    n_layers = draw(st.integers(0, 3))
    nodes = [
        Node(
            f"n{i}",
            tuple(draw(st.sampled_from("abc")) for _ in range(n_layers)),
            draw(st.integers(0, 4)),
            draw(st.sampled_from((0, 0, 0, 1, 2))),
        )
        for i in draw(st.permutations(range(draw(st.integers(1, 9)))))
    ]
    multiples = draw(st.dictionaries(st.integers(0, n_layers), st.integers(1, 4), max_size=2))
    return nodes, n_layers, draw(st.integers(1, 10)), draw(st.integers(-1, n_layers)), multiples


@given(worlds())
@settings(max_examples=slices.count_examples(1000))
def test_the_vectors_choose_as_the_twin_does(
    world: tuple[list[Node], int, int, int, dict[int, int]],
) -> None:
    nodes, n_layers, wanted, must, multiples = world
    capped = [Node(one.name, one.values, min(one.places, wanted), one.company) for one in nodes]
    expected = oracle.choose(capped, n_layers, wanted, must=must, multiples=multiples)
    assert plan(nodes, n_layers, wanted, must, multiples) == expected


@pytest.mark.parametrize("case", [pytest.param(one, id=one["name"]) for one in CASES])
def test_pods_go_where_koordinators_own_tests_say(case: Json) -> None:
    layers = case["layers"]
    nodes = [
        Node(
            path.split("/")[-1],
            tuple(path.split("/")[:-1]),
            *([room] if isinstance(room, int) else room),
        )
        for path, room in case["nodes"].items()
    ]
    must = layers.index(case["must"]) if "must" in case else -1
    multiples = {layers.index(layer): n for layer, n in case.get("multiples", {}).items()}
    wanted = case["count"]
    expected = None if case["want"] is None else [(name, n) for name, n in case["want"].items()]
    assert plan(nodes, len(layers) - 1, wanted, must, multiples) == expected
    capped = [Node(one.name, one.values, min(one.places, wanted), one.company) for one in nodes]
    twin = oracle.choose(capped, len(layers) - 1, wanted, must=must, multiples=multiples)
    assert twin == expected
