"""How large a group fits now at each level, and what would have to move for the next size."""

import html
import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import wire
from scheduler.audit import gangs
from scheduler.audit.gangs import Fleet, Unit
from scheduler.audit.page import page
from tests import make, slices
from tests.unit.test_audit_findings import EVIL, audit, owned, shown_at

Json = dict[str, Any]
ZONE, RACK = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack"
GANG = {
    "gang.scheduling.koordinator.sh/name": "train",
    "gang.scheduling.koordinator.sh/min-available": "2",
}


def gpu_nodes(n: int, *, per_rack: int = 4, **figures: Any) -> list[wire.Node]:
    return [
        make.hami_node(name=f"n{i:02}", labels={ZONE: "z", RACK: f"r{i // per_rack}"}, **figures)
        for i in range(n)
    ]


def sizes(nodes: list[wire.Node], pods: list[wire.Pod]) -> dict[str | None, Json]:
    """The levels by their labels, of the only kind of nodes."""
    [kind] = audit(nodes, pods, modes=())["gangs"]
    return {level["label"]: level for level in kind["levels"]}


def names_of(level: Json) -> list[str]:
    return [one["unit"] for one in level["next"]["moves"]["units"]]


def test_the_largest_group_is_told_for_the_cluster_and_within_one_domain_of_each_level() -> None:
    pods = [make.pod(name=f"p{i}", node=f"n0{i}", gpu=1) for i in (0, 1, 4)]
    found = sizes(gpu_nodes(8, cards=8), pods)
    assert list(found) == [None, ZONE, RACK]
    assert found[None]["largest"] == {"gpus": 40, "nodes": 5, "domain": []}
    assert found[RACK]["largest"] == {"gpus": 24, "nodes": 3, "domain": ["z", "r1"]}
    assert (found[RACK]["domains"], found[ZONE]["domains"]) == (2, 1)


def test_the_next_size_is_in_the_domain_where_the_fewest_gpus_have_to_move() -> None:
    pods = [make.pod(name=f"p{i}", node=f"n0{i}", gpu=3) for i in (0, 4)]
    pods.append(make.pod(name="small", node="n08", gpu=2))
    found = sizes(gpu_nodes(12, cards=8), pods)[RACK]
    assert (found["next"]["gpus"], found["next"]["domain"]) == (32, ["z", "r2"])
    assert (names_of(found), found["next"]["moves"]["gpus"]) == (["Pod default/small"], 2)


def test_a_gang_moves_as_a_whole_so_pods_by_themselves_may_be_cheaper() -> None:
    pods = [make.pod(name=f"g{i}", node=f"n0{i}", gpu=2, annotations=GANG) for i in (0, 4)]
    found = sizes(gpu_nodes(8, cards=8), [*pods, make.pod(name="p", node="n05", gpu=5)])
    assert (found[RACK]["next"]["domain"], names_of(found[RACK])) == (
        ["z", "r0"],
        ["PodGroup default/train"],
    )
    moves = found[RACK]["next"]["moves"]
    assert (moves["gpus"], moves["units"][0]["nodes"]) == (4, ["n00", "n04"])


def test_nodes_that_no_group_can_use_are_left_out() -> None:
    nodes = gpu_nodes(4, cards=8)
    nodes[0].spec.unschedulable = True
    agent = owned("DaemonSet", make.pod(name="agent", node="n01", gpu=1))
    found = sizes(nodes, [agent])
    assert found[None]["largest"]["nodes"] == 2
    assert found[None]["next"] is None


def test_nodes_of_another_model_or_size_are_another_kind() -> None:
    nodes = [
        *gpu_nodes(2, cards=8),
        make.hami_node(name="four", cards=4),
        make.hami_node(name="other", cards=make.cards(count=8, model="NVIDIA-A100")),
        make.node(name="none"),
    ]
    found = audit(nodes, [], modes=())["gangs"]
    kinds = {(one["gpusPerNode"], one["nodes"]) for one in found}
    assert (len(found), kinds) == (3, {(8, 2), (4, 1), (8, 1)})


def test_nodes_with_a_taint_that_some_pods_tolerate_count_for_every_kind() -> None:
    """The pods that tolerate the taint request eight GPUs, so they have no room on nodes of four."""
    taint = [("gpu", "", "NoSchedule")]
    nodes = [
        *gpu_nodes(2, cards=8),
        make.hami_node(name="eight", cards=8, taints=taint),
        make.hami_node(name="four", cards=4),
        make.hami_node(name="other-four", cards=4, taints=taint),
    ]
    lone = [{"key": "gpu", "operator": "Exists"}]
    tolerant = [make.pod(name=f"t{i}", node="n00", gpu=8, tolerations=lone) for i in range(20)]
    plain = [make.pod(name=f"p{i}", node="n01", gpu=1) for i in range(20)]
    found = audit(nodes, [*tolerant, *plain], modes=())
    said = {one["gpusPerNode"]: (one["nodes"], one["taints"]) for one in found["gangs"]}
    told = [{"taint": "gpu:NoSchedule", "nodes": 1}]
    assert said == {8: (3, told), 4: (2, told)}
    text = " ".join(" ".join(shown_at(200, found)).split())
    sentence = "For all these nodes the pods of the group must tolerate this taint: gpu:NoSchedule (1 node)."
    assert text.count(sentence) == 2
    assert page.render_page(found).count(sentence) == 2
    # Where no pod tolerates it, the nodes are left out.
    found = audit(nodes, plain, modes=())
    kept = {one["gpusPerNode"]: (one["nodes"], one["taints"]) for one in found["gangs"]}
    assert kept == {8: (2, []), 4: (1, [])}


def test_text_and_page_say_it_and_escape_names() -> None:
    nodes = gpu_nodes(4, cards=8)
    for one in nodes:
        one.metadata.labels = {RACK: "r1", ZONE: EVIL}
    found = audit(nodes, [make.pod(name="p", node="n00", gpu=1)], modes=())
    text = " ".join(" ".join(shown_at(200, found)).split())
    assert (
        "The largest group that fits now on 4 nodes with Tesla-T4, if each pod requests all 8 GPUs"
        in text
    )
    assert (
        f"For 32 GPUs in {RACK} {EVIL}/r1: Pod default/p (1 GPU) has to move to other nodes."
        in text
    )
    drawn = page.render_page(found)
    assert "What" in drawn
    assert EVIL not in drawn
    assert html.escape(EVIL) in drawn
    assert audit([make.node(name="a")], [], modes=())["gangs"] == []


NAMES = [f"n{i}" for i in range(5)]


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Up to five nodes, and pods by themselves or groups on up to three of them."""
    there: dict[str, list[Unit]] = {}
    is_plain = draw(st.booleans())
    for i in range(draw(st.integers(0, 6))):
        most = 1 if is_plain else 3
        on = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=most, unique=True))
        pods = tuple(f"u{i}-{k}" for k in range(len(on)))
        unit = Unit(f"u{i}", pods, tuple(sorted(on)), float(draw(st.integers(1, 8))))
        for node in on:
            there.setdefault(node, []).append(unit)
    units = {node: tuple(found) for node, found in there.items()}
    free = frozenset(name for name in NAMES if name not in units)
    return Fleet("T4", 8, free, units)


@settings(max_examples=slices.count_examples(400))
@given(fleets(), st.integers(1, 5))
def test_what_moves_clears_so_many_nodes_and_of_single_pods_the_fewest_gpus_move(
    fleet: Fleet, n_nodes: int
) -> None:
    moved = gangs.clear_nodes(fleet, NAMES, n_nodes)
    every = sorted({unit for units in fleet.units.values() for unit in units})
    possible = [
        chosen
        for k in range(len(every) + 1)
        for chosen in itertools.combinations(every, k)
        if count_free(fleet, chosen) >= n_nodes
    ]
    assert (moved is None) is not bool(possible)
    if moved is None:
        return
    assert count_free(fleet, moved) >= n_nodes
    least = min(sum(unit.gpus for unit in chosen) for chosen in possible)
    spent = sum(unit.gpus for unit in moved)
    assert spent >= least
    if all(len(unit.nodes) == 1 for unit in every):
        assert spent == least


def count_free(fleet: Fleet, moved: Any) -> int:
    names = {unit.name for unit in moved}
    cleared = [all(unit.name in names for unit in units) for units in fleet.units.values()]
    return len(fleet.free) + sum(cleared)
