"""The twin of Kueue's topology-aware placement, over cases of Kueue's own and against what every placement must keep."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import topology
from tests.oracles.topology import LOST, PREFERRED, REQUIRED, UNCONSTRAINED, Ask, Failure, Leaf

Json = dict[str, Any]
CASES: list[Json] = yaml.safe_load(
    (Path(__file__).parents[1] / "oracles/tas_cases.yaml").read_text(encoding="utf-8")
)
LEVELS = ("block", "rack", "host")


def read_ask(levels: list[str], written: Json) -> Ask:
    """Read an ask as a case writes it."""
    mode = next(one for one in (REQUIRED, PREFERRED, UNCONSTRAINED) if one in written)
    return Ask(
        levels=tuple(levels),
        count=written["count"],
        mode=mode,
        level="" if mode == UNCONSTRAINED else written[mode],
        slices=tuple((level, size) for level, size in written.get("slices", ())),
        leader="leader" in written,
        mixed=written.get("mixed", True),
        balanced=written.get("balanced", False),
    )


def read_leaves(case: Json, free: Mapping[str, Mapping[str, int]], written: Json) -> list[Leaf]:
    """Count what fits in the leaves of a case; pods and leader take one of the pods that a node takes."""
    pod = written["pod"] | {"pods": 1}
    leader = written["leader"] | {"pods": 1} if "leader" in written else None
    scores = case.get("scores", {})
    return [
        topology.count_leaf(tuple(path.split("/")), has, pod, leader, score=scores.get(path, 0))
        for path, has in free.items()
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_pods_go_where_kueue_puts_them(case: Json) -> None:
    free: dict[str, Counter[str]] = {path: Counter(has) for path, has in case["nodes"].items()}
    for written in case["asks"]:
        ask = read_ask(case["levels"], written)
        found = topology.assign(read_leaves(case, free, written), ask)
        if isinstance(found, Failure):
            assert found.words == written.get("fails")
            continue
        got = {"/".join(values): figures for values, figures in found.items()}
        assert {path: pods for path, (pods, _) in got.items() if pods} == written["want"]
        hosts = [path for path, (_, leaders) in got.items() if leaders]
        assert hosts == [written[key] for key in ("leader_at",) if key in written]
        for path, (pods, leaders) in found.items():
            for request, times in ((written["pod"], pods), (written.get("leader", {}), leaders)):
                each = request | {"pods": 1}
                free["/".join(path)].subtract({key: times * has for key, has in each.items()})


def test_the_cases_tell_all_that_an_ask_can_say() -> None:
    asks = [(case, written) for case in CASES for written in case["asks"]]
    said = Counter(
        key
        for case, written in asks
        for key in [*written, *case, f"{len(written.get('slices', ()))} layers"]
    )
    for key in ("leader", "balanced", "scores", "fails", REQUIRED, PREFERRED, UNCONSTRAINED):
        assert said[key] >= 10, key
    assert said["mixed"] >= 5
    assert min(said[f"{n} layers"] for n in (0, 1, 2, 3)) >= 4
    assert sum(not case["name"].startswith("drawn") for case in CASES) >= 60


@st.composite
def draw_leaves(draw: st.DrawFn) -> list[Leaf]:
    """Draw the leaves of an uneven tree of three levels."""
    paths = draw(
        st.lists(
            st.tuples(*(st.sampled_from([f"{one}{n}" for n in range(3)]) for one in "brh")),
            min_size=1,
            max_size=9,
            unique=True,
        )
    )
    leaves = []
    for path in paths:
        pods, lost = draw(st.integers(0, 8)), draw(st.integers(0, 3))
        takes = draw(st.booleans())
        beside = max(0, pods - lost)
        leaves.append(Leaf(values=path, pods=pods, takes_leader=takes, pods_beside=beside))
    return leaves


@st.composite
def draw_ask(draw: st.DrawFn) -> Ask:
    mode = draw(st.sampled_from([REQUIRED, PREFERRED, UNCONSTRAINED]))
    level = draw(st.integers(0, 2)) if mode != UNCONSTRAINED else 0
    slices: tuple[tuple[str, int], ...] = ()
    at, size = level, draw(st.sampled_from([1, 2, 3, 4]))
    while at < 3 and draw(st.booleans()):
        at = draw(st.integers(at, 2))
        slices += ((LEVELS[at], size),)
        at, size = at + 1, draw(st.sampled_from([n for n in (1, 2, 3, 4) if size % n == 0]))
    return Ask(
        levels=LEVELS,
        count=(slices[0][1] if slices else 1) * draw(st.integers(1, 8)),
        mode=mode,
        level=LEVELS[level] if mode != UNCONSTRAINED else "",
        slices=slices,
        leader=draw(st.booleans()),
        mixed=draw(st.booleans()),
        balanced=draw(st.booleans()),
    )


@given(leaves=draw_leaves(), ask=draw_ask())
def test_a_placement_keeps_what_the_ask_says(leaves: list[Leaf], ask: Ask) -> None:
    found = topology.assign(leaves, ask)
    if isinstance(found, Failure):
        return
    rooms = {leaf.values: leaf for leaf in leaves}
    assert sum(pods for pods, _ in found.values()) == ask.count
    assert sum(leaders for _, leaders in found.values()) == int(ask.leader)
    for values, (pods, leaders) in found.items():
        room = rooms[values]
        assert pods <= (room.pods_beside if leaders else room.pods)
        assert room.takes_leader or not leaders
    if ask.mode == REQUIRED:
        depth = LEVELS.index(ask.level) + 1
        assert len({values[:depth] for values in found}) == 1
    for level, size in ask.slices:
        inside: Counter[tuple[str, ...]] = Counter()
        for values, (pods, _) in found.items():
            inside[values[: LEVELS.index(level) + 1]] += pods
        assert all(pods % size == 0 for pods in inside.values())


@given(leaves=draw_leaves(), ask=draw_ask())
def test_only_what_has_no_room_fails_if_no_leader_is_in_the_way(
    leaves: list[Leaf], ask: Ask
) -> None:
    """Counted by hand: slices fit where their domain has the pods, and a required domain has them all."""
    if ask.leader or len(ask.slices) > 1:
        return
    found = topology.assign(leaves, ask)
    level, size = ask.slices[0] if ask.slices else ("host", 1)
    pods: Counter[tuple[str, ...]] = Counter()
    for leaf in leaves:
        pods[leaf.values[: LEVELS.index(level) + 1]] += leaf.pods
    rooms: Counter[tuple[str, ...]] = Counter()
    for values, n in pods.items():
        depth = LEVELS.index(ask.level) + 1 if ask.mode == REQUIRED else 0
        rooms[values[:depth]] += n // size
    most = max(rooms.values())
    assert isinstance(found, Failure) == (most < ask.count // size)
    if isinstance(found, Failure):
        assert (found.fits, found.needed) == (most, ask.count // size)


def test_balanced_layers_may_lose_pods_as_kueues_do() -> None:
    """Kueue places the leader on the last host, none of the workers, and gives no reason."""
    rooms = {"r1/h1": (3, 2), "r1/h2": (3, 2), "r2/h3": (4, 3)}
    leaves = [
        Leaf(
            values=("z1", "b1", *path.split("/")), pods=pods, takes_leader=True, pods_beside=beside
        )
        for path, (pods, beside) in rooms.items()
    ]
    ask = Ask(
        levels=("zone", *LEVELS),
        count=4,
        mode=PREFERRED,
        level="zone",
        slices=(("block", 4), ("host", 4)),
        leader=True,
        balanced=True,
    )
    assert topology.assign(leaves, ask) is LOST


@pytest.mark.parametrize(
    ("slices", "words"),
    [
        ([("rack", 4), ("row", 2)], "no requested topology level for additional slice layer: row"),
        (
            [("rack", 4), ("block", 2)],
            "additional slice layer topology block must be at a lower level than rack",
        ),
        (
            [("rack", 4), ("host", 3)],
            "additional slice layer size 3 must evenly divide parent layer size 4",
        ),
    ],
)
def test_layers_that_do_not_nest_are_refused(slices: list[tuple[str, int]], words: str) -> None:
    ask = Ask(levels=LEVELS, count=4, slices=tuple(slices))
    found = topology.assign([Leaf(values=("b1", "r1", "h1"), pods=9)], ask)
    assert isinstance(found, Failure)
    assert found.words == words


def test_a_topology_without_leaves_has_no_domain() -> None:
    found = topology.assign([], Ask(levels=LEVELS, count=1, mode=REQUIRED, level="rack"))
    assert found == Failure(words="no topology domains at level: rack")
