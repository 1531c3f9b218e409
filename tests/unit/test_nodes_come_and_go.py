"""An autoscaled cluster makes thousands of names a day: what nodes said that are gone is forgotten."""

import random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import names, wire
from scheduler.api.cards import list_uses
from scheduler.api.kube_plugins import DEFAULT
from scheduler.cycle.schedule import Cycle
from scheduler.plugins import table
from scheduler.state.cluster import Cluster
from tests import make, slices

LIVE = 12
# Columns of labels that the pods below ask for, and what is kept besides.
KEYS, SPARE = 4, 64


def node(rng: random.Random, name: str, serial: int) -> wire.Node:
    """A node that says things that no other says, and things that many say."""
    own = [("only", f"team-{serial}", rng.choice(["NoSchedule", "PreferNoSchedule"]))]
    return make.node(
        name=name,
        cpu=rng.randint(2, 8),
        labels={"instance": f"i-{serial}", "zone": rng.choice("abc"), "number": str(serial)},
        taints=own if rng.random() < 0.5 else [],
    )


def pods(rng: random.Random, serial: int) -> list[wire.Pod]:
    """Pods that ask for what nodes say now, said once, or never said."""
    some = rng.randint(max(0, serial - 20), serial + 2)
    beyond: Any = [
        {"key": "number", "operator": rng.choice(["Gt", "Lt"]), "values": [str(some)]},
        {"key": "zone", "operator": "NotIn", "values": ["a"]},
    ]
    required = {"nodeSelectorTerms": [{"matchExpressions": beyond}]}
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required},
    }
    tolerates = [{"key": "only", "operator": "Equal", "value": f"team-{some}"}]
    return [
        make.pod(name="selects", node_selector={"instance": f"i-{some}"}, tolerations=tolerates),
        make.pod(name="beyond", spec={"affinity": affinity}),
        make.pod(name="prefers", preferred=[(10, "instance", f"i-{some}"), (5, "zone", "b")]),
        make.pod(name="named", node_selector={"kubernetes.io/hostname": f"n{some % LIVE}"}),
    ]


def judged(cluster: Cluster, pod: wire.Pod) -> dict[str, list[int]]:
    """What each static rule says of each node."""
    record = cluster.see_pod(pod)
    assert record is not None
    rows = np.array(sorted(cluster.nodes.rows.values()), np.int64)
    said = [table.find_refusals(table.read_needs(record.template, DEFAULT), cluster.nodes, rows)]
    for (_, score), want in zip(
        table.SCORES, table.read_wants(record.template, DEFAULT), strict=True
    ):
        if want is not None:
            said.append(score.raw(want, cluster.nodes, rows))
    cluster.drop_pod(record.uid)
    by_row = np.array(said).T.tolist()
    return {cluster.nodes.find_name(int(row)): by_row[i] for i, row in enumerate(rows)}


def place_of(cycle: Cycle, cluster: Cluster, pod: wire.Pod) -> str:
    record = cluster.see_pod(pod)
    assert record is not None
    binds = cycle.schedule([record]).binds
    cluster.drop_pod(record.uid)
    return binds[0].node if binds else ""


@settings(max_examples=slices.count_examples(15), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_what_gone_nodes_said_is_forgotten_and_nothing_is_judged_otherwise(seed: int) -> None:
    rng = random.Random(seed)
    cluster = Cluster()
    cycle = make.cycle(cluster=cluster)
    there: dict[str, wire.Node] = {}
    for serial in range(400):
        name = f"n{rng.randrange(LIVE)}"
        if name in there and rng.random() < 0.4:
            del there[name]
            cluster.drop_node(name)
        else:
            there[name] = node(rng, name, serial)
            cluster.see_node(msgspec.convert(msgspec.to_builtins(there[name]), wire.Node))
        assert len(cluster.nodes.taint_sets) <= 2 * LIVE + SPARE
        assert len(cluster.nodes.label_values) <= (2 * LIVE + 1) * KEYS + SPARE
        if serial % 10:
            continue
        fresh = make.cluster(nodes=there.values())
        anew = make.cycle(cluster=fresh)
        for pod in pods(rng, serial):
            assert judged(cluster, pod) == judged(fresh, pod)
            assert place_of(cycle, cluster, pod) == place_of(anew, fresh, pod)


@pytest.mark.parametrize("key", ["instance", "number"])
def test_a_column_in_use_is_there_again_when_it_is_asked_for(key: str) -> None:
    cluster = make.cluster(nodes=[make.node(name="stays", labels={key: "7"})])
    for i in range(200):
        assert (cluster.nodes.get_label_column(key) >= 0).sum() == 1
        cluster.see_node(make.node(name="goes", labels={key: f"1{i}"}))
        cluster.nodes.read_label_integers()
        cluster.drop_node("goes")
    column = cluster.nodes.get_label_column(key)
    values, _ = cluster.nodes.read_label_integers()
    assert values[column[cluster.nodes.find_row("stays")]] == 7
    assert len(cluster.nodes.label_values) < 100


def gpu_node(name: str, *serials: int) -> wire.Node:
    cards = [make.card(uuid=f"GPU-{n}", index=i) for i, n in enumerate(serials)]
    return make.hami_node(name=name, cards=cards)


def card_of(cycle: Cycle, cluster: Cluster, uid: str) -> tuple[str, str]:
    """Node and card that a pending pod would be given, both empty for none; nothing is charged."""
    binds = cycle.schedule([cluster.pods[uid]]).binds
    cluster.forget(uid)
    return next(
        ((bind.node, use.uuid) for bind in binds for use in list_uses(bind.devices)), ("", "")
    )


@settings(max_examples=slices.count_examples(10), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_cards_that_are_gone_are_forgotten_and_those_wished_for_are_found(seed: int) -> None:
    """Pods wait all the time, so what is known of each is kept while cards come and go."""
    rng = random.Random(seed)
    cluster = Cluster()
    cycle = make.cycle(cluster=cluster)
    there: dict[str, list[int]] = {}
    place: dict[int, str] = {}
    for wished in range(0, 300, 30):
        notes = {names.USE_UUID: f"GPU-{wished}"}
        cluster.see_pod(make.pod(name=f"wants-{wished}", gpu=1, annotations=notes))
    serial = 0
    for turn in range(400):
        name = f"n{rng.randrange(LIVE)}"
        for gone in there.pop(name, ()):
            place.pop(gone, None)
        if rng.random() < 0.4:
            cluster.drop_node(name)
        else:
            # A card that somebody wishes for stays longer than others, and moves at times.
            back = [n for n in range(0, 300, 30) if n not in place and rng.random() < 0.3]
            there[name] = [*back[:2], *range(1000 + serial, 1000 + serial + rng.randint(1, 3))]
            serial += 3
            place |= dict.fromkeys(there[name], name)
            cluster.see_node(gpu_node(name, *there[name]))
        # No node has more than five.
        assert len(cluster.cards.uuids) <= 2 * 5 * LIVE + SPARE + 5
        assert [
            cluster.cards.find_uuid(d)
            for name in sorted(there)
            for d in cluster.registers.list_cards("", 0, cluster.nodes.find_row(name)).values()
        ] == [f"GPU-{n}" for name in sorted(there) for n in there[name]]
        if turn % 5 == 0:
            for wished in range(0, 300, 30):
                node_name = place.get(wished, "")
                found = card_of(cycle, cluster, f"default/wants-{wished}")
                assert found == (node_name, f"GPU-{wished}" if node_name else "")


def test_a_wish_is_read_anew_though_there_are_as_many_cards_as_before() -> None:
    """What was read of it is a flag for each number, and a card may have another number by now."""
    cluster = make.cluster(nodes=[gpu_node("gone", 1, 2, 3, 4), gpu_node("stays", 5)])
    cycle = make.cycle(cluster=cluster)
    cluster.drop_node("gone")
    cluster.see_pod(make.pod(name="wants", gpu=1, annotations={names.USE_UUID: "GPU-5"}))
    assert card_of(cycle, cluster, "default/wants") == ("stays", "GPU-5")
    lengths = [5]
    for n in range(6, 300):
        cluster.see_node(gpu_node("passes", n))
        lengths.append(len(cluster.cards.uuids))
        if lengths[-1] == 5:
            break
    assert max(lengths) > lengths[-1] == 5
    assert card_of(cycle, cluster, "default/wants") == ("stays", "GPU-5")
