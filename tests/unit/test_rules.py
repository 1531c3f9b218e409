"""The table of rules: bits, what is shared between shapes, and reasons read from boards."""

import random
from typing import Any

import numpy as np
import pytest

from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.kernels import place
from scheduler.plugins import table
from scheduler.plugins.rules import dynamic_resources, named_nodes, node_affinity, volume_claims
from scheduler.schema import columns as c
from scheduler.shapes import diagnosis
from scheduler.shapes.boards import Key, Shape
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from scheduler.state.structures.recent import Recent
from tests import make
from tests.model import life, workloads


def shape_of(cycle: Cycle, pod: PodRecord | None) -> Shape:
    assert pod is not None
    shape = cycle.get_shape(pod)
    assert shape is not None
    cycle.boards.refresh(shape)
    return shape


def told(cluster: Cluster, cycle: Cycle, shape: Shape, bits: c.Ints) -> list[list[str]]:
    """The reasons of every node, in the order of rows."""
    rows = diagnosis.list_rows(cluster)
    judged = diagnosis.gather_refusals(cluster, shape, cycle.boards.get_world(shape), rows, bits)
    found: list[list[str]] = [[] for _ in rows]
    for positions, one in table.tell_reasons(judged):
        for i, which in zip(positions.tolist(), one.which, strict=True):
            found[i] = [one.texts[k] for k in np.flatnonzero(which)]
    return found


def test_every_reason_has_a_bit_of_the_first_word_and_a_name_of_its_own() -> None:
    assert len(table.REASONS) < c.WORD
    # Before all others, NodeAffinity leaves out the nodes that its terms do not name, and claims are looked for; and
    # a profile adds its own.
    more = {
        named_nodes.OTHERS,
        named_nodes.CONTRADICTION,
        volume_claims.RULE,
        node_affinity.ENFORCED,
        dynamic_resources.REFUSED,
        dynamic_resources.AVAILABLE,
    }
    names = [rule.name for rule in table.RULES if rule not in more]
    assert len(set(names)) == len(names)
    texts = [reason.text for _, reason in table.REASONS]
    assert len(set(texts)) == len(texts)


def test_every_rule_that_refuses_says_what_could_change_its_mind() -> None:
    for rule, _ in table.REASONS:
        # What a profile asks of nodes beside the pod is looked at again whatever happens.
        assert rule.hint is not None or rule is node_affinity.ENFORCED


@pytest.mark.parametrize("seed", [1, 2])
def test_boards_refuse_where_there_is_a_reason(seed: int) -> None:
    """Boards are kept through 60 random events; who waits is judged without one, and fits on the same nodes."""
    rng = random.Random(seed)
    town = life.Town.founded(rng, 40)
    cluster, cycle = town.cluster, town.cycle
    watchers = [town.looks_on(kind) for kind in workloads.PODS]
    seen: set[str] = set()
    for step in range(60):
        town.something_happens(rng)
        for watcher in watchers if step % 5 == 0 else ():
            shape = shape_of(cycle, watcher)
            rows = diagnosis.list_rows(cluster)
            alone = cycle.boards.make_unscored(
                Key(shape.asked.template, shape.asked.placement, shape.view)
            )
            anew = told(cluster, cycle, alone, cycle.boards.find_refusals(alone, rows))
            fits = shape.board.key[rows] >= 0
            assert [not reasons for reasons in anew] == fits.tolist()
            seen.update(text for reasons in anew for text in reasons)
    assert len(seen) > 8


def test_resources_short_beyond_one_word_of_bits_are_all_told() -> None:
    asked = {f"example.com/r{i:03}": 2 for i in range(150)}
    node = make.node(allocatable={name: i % 3 for i, name in enumerate(asked)})
    cluster = make.cluster(nodes=[node], pods=[make.pod(name="p", requests=asked)])
    cycle = make.cycle(cluster=cluster)
    (pod,) = cluster.pods.values()
    (hold,) = cycle.schedule([pod]).holds
    assert hold.diagnosis is not None
    short = [name for i, name in enumerate(asked) if i % 3 < 2]
    assert hold.diagnosis.reasons == tuple((f"Insufficient {name}", 1) for name in short)
    assert cycle.explain_hold(pod) == hold


def test_shapes_that_differ_in_amounts_share_what_static_rules_say() -> None:
    """Else every pod with a figure of its own has 5,000 nodes' taints judged again."""
    pods = [
        make.pod(name="a", cpu=1, node_selector={"zone": "b"}),
        make.pod(name="b", cpu=2, node_selector={"zone": "b"}),
        make.pod(name="c", cpu=1, node_selector={"zone": "c"}),
    ]
    cluster = make.cluster(nodes=[make.node(labels={"zone": "b"})], pods=pods)
    cycle = make.cycle(cluster=cluster)
    first, second, third = (shape_of(cycle, pod) for pod in cluster.pods.values())
    assert first.board.static is second.board.static
    assert first.board.static is not third.board.static
    assert (first.board.key.max() >= 0, third.board.key.max() >= 0) == (True, False)


def test_a_run_of_pods_with_host_ports_is_one_call_of_the_placing_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = make.cluster(
        nodes=[make.node(name=f"n{i:02}") for i in range(30)],
        pods=[make.pod(name=f"p{i}", cpu="10m", host_ports=[80, 443]) for i in range(30)],
    )
    cycle = make.cycle(cluster=cluster, config=Config())
    calls = []
    real = place.place_run

    def counted(*bundles: Any) -> int:
        calls.append(bundles)
        return real(*bundles)

    monkeypatch.setattr(place, "place_run", counted)
    outcome = cycle.schedule(list(cluster.pods.values()))
    assert len({bind.node for bind in outcome.binds}) == 30
    assert len(calls) == 1


def test_what_was_used_least_lately_goes_first() -> None:
    recent: Recent[str, int] = Recent(2)
    recent.put("a", 1)
    recent.put("b", 2)
    assert recent.get("a") == 1
    recent.put("c", 3)
    assert (recent.get("a"), recent.get("b"), recent.get("c"), len(recent)) == (1, None, 3, 2)
