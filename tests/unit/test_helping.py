"""Whom a change could help: the cheap bounds rule out nobody whom it does help."""

import random

import numpy as np
import pytest

from scheduler.api.door import events
from scheduler.api.door.decisions import Barriers
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.plugins import barriers
from scheduler.shapes.boards import Key
from scheduler.waiting.helping import Changed
from tests import make
from tests.model import life, workloads


@pytest.mark.parametrize("seed", range(20))
def test_what_fits_on_a_row_that_changed_is_never_ruled_out(seed: int) -> None:
    rng = random.Random(seed)
    town = life.Town.founded(rng, 12)
    for _ in range(20):
        town.something_happens(rng)
    pods = [town.looks_on(kind) for kind in workloads.PODS]
    cluster, cycle = town.cluster, town.cycle
    all_rows = np.array(sorted(cluster.nodes.rows.values()), np.int64)
    fitting = ruled_out = 0
    for rows in (all_rows, *(all_rows[i : i + 1] for i in range(all_rows.size))):
        changed = Changed(cluster, rows)
        for pod in pods:
            ruled = changed.find_barriers(pod.template)
            found = cycle.find_barriers(pod, rows)
            if found is None:
                fitting += 1
                assert ruled is None
            elif ruled is not None:
                # Whoever is ruled out is so for a reason that holds on each of the rows.
                shape = cycle.get_shape(pod)
                assert shape is not None
                asked = cycle.boards.make_unscored(
                    Key(shape.asked.template, shape.asked.placement, shape.view)
                )
                for bits in cycle.boards.find_refusals(asked, rows)[0].tolist():
                    assert ruled.reasons & bits == ruled.reasons
                ruled_out += 1
    assert fitting
    assert ruled_out


def test_a_node_without_the_label_or_the_room_asked_for_is_ruled_out_without_looking_closer() -> (
    None
):
    cluster = make.cluster(nodes=[make.node(name="n", cpu="4", labels={"rack": "r1"})])
    changed = Changed(cluster, np.array([cluster.nodes.find_row("n")], np.int64))

    def found(**words: object) -> Barriers | None:
        pod = cluster.see_pod(make.pod(**words))  # type: ignore[arg-type]
        assert pod is not None
        return changed.find_barriers(pod.template)

    assert found(cpu="4") is None
    assert found(cpu="5") == barriers.make_shortage(1)
    assert found(cpu="4", memory="99Ti") == barriers.make_shortage(2)
    assert found(node_selector={"rack": "r1"}) is None
    assert found(node_selector={"rack": "r2"}) == barriers.LACKS_LABEL
    assert found(requests={"example.com/none": 1}) == barriers.make_shortage(1)


def test_nobody_is_ruled_out_where_nobody_can_say_what_changed() -> None:
    cluster = make.cluster(nodes=[])
    pod = cluster.see_pod(make.pod(cpu="5"))
    assert pod is not None
    assert Changed(cluster, None).find_barriers(pod.template) is None
    assert Changed(cluster, np.zeros(0, np.int64)).find_barriers(pod.template) == Barriers()


def test_asking_what_fits_displaces_no_live_shape() -> None:
    cluster = make.cluster(nodes=[make.node(name="n")])
    cycle = make.cycle(cluster=cluster)
    live = [cluster.see_pod(make.pod(name=f"live-{i}", cpu="10m")) for i in range(9)]
    cycle.schedule([pod for pod in live if pod is not None])
    for i in range(600):
        pod = cluster.see_pod(make.pod(name=f"p{i}", cpu=f"{i + 2}m"))
        assert pod is not None
        assert cycle.could_place(pod)
        assert cycle.explain_hold(pod) is None
    again = cluster.see_pod(make.pod(name="again", cpu="10m"))
    assert again is not None
    assert cycle.estimate_cost(again) == 0


def test_kinds_that_ask_more_than_a_change_left_free_are_not_looked_at() -> None:
    """Of thousands of kinds of waiting pods one small change must not ask each."""
    engine = Engine(Config(), pace=PROMPT)
    engine.handle(events.Seen(make.node(name="n", cpu="4", memory="4Gi")), 0.0)
    for i in range(100):
        engine.handle(events.Seen(make.pod(name=f"p{i}", cpu=f"{5000 + i}m")), 0.0)
    engine.decide(0.0, Unlimited())
    assert len(engine._pending.parked) == 100
    assert len(engine._pending.parked.list_kinds()) == 100
    for cpu, n in (("5", 1), ("5049m", 50), ("6", 100), ("1", 0)):
        engine.handle(events.Seen(make.node(name="n", cpu=cpu, memory="4Gi")), 0.0)
        changed = Changed(engine._cluster, np.array([engine._cluster.nodes.find_row("n")]))
        assert len(engine._pending.parked.list_kinds_within(changed.find_most())) == n
    # Of memory, of which none was short, nobody is woken: that must not rule them out either.
    engine.handle(events.Seen(make.node(name="n", cpu="6", memory="1Mi")), 0.0)
    changed = Changed(engine._cluster, changed.rows)
    assert len(engine._pending.parked.list_kinds_within(changed.find_most())) == 100
    assert (
        len(engine._pending.parked.list_kinds_within(Changed(engine._cluster, None).find_most()))
        == 100
    )
    # More is used than there is, and who asks none of it could fit all the same.
    engine.handle(events.Seen(make.pod(name="large", memory="1Gi", node="n")), 0.0)
    engine.handle(events.Seen(make.node(name="n", cpu="6", memory="1Mi")), 0.0)
    assert (
        len(
            engine._pending.parked.list_kinds_within(
                Changed(engine._cluster, changed.rows).find_most()
            )
        )
        == 100
    )
    # The columns follow those that come and go.
    for i in range(100):
        engine.handle(events.Gone("Pod", f"default/p{i}"), 0.0)
    assert (
        engine._pending.parked.list_kinds_within(Changed(engine._cluster, None).find_most()) == []
    )
