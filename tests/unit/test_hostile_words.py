"""What tenants write leaves nothing behind: columns, rows, templates and answers go with their last user."""

import gc
from typing import Any

import msgspec
import numpy as np
import pytest

from scheduler.api import wire
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.errors import BadInput
from scheduler.schema import columns as c
from scheduler.shapes.policies import PolicyBook, parse_policy
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from scheduler.telling import sayings
from tests import make
from tests.operator import attacks

Json = dict[str, Any]


def a_cluster() -> tuple[Cluster, Cycle]:
    cluster = make.cluster(
        nodes=[make.node(name=f"n{i}", labels={"zone": f"z{i}"}) for i in range(4)]
    )
    return cluster, make.cycle(cluster=cluster)


def seen(cluster: Cluster, manifests: list[Json]) -> list[str]:
    uids = []
    for i, manifest in enumerate(manifests):
        pod = msgspec.convert(manifest, wire.Pod)
        pod.metadata.uid = f"{manifest['metadata']['namespace']}/{i}"
        pod.spec.node_name = None
        cluster.see_pod(pod)
        uids.append(pod.metadata.uid)
    return uids


@pytest.mark.parametrize("name", list(attacks.ALL))
def test_an_attack_leaves_nothing_behind(name: str) -> None:
    cluster, cycle = a_cluster()
    policies = PolicyBook(Config())
    policies.put(parse_policy(make_policy()))
    resources = list(cluster.nodes.resources.values)
    uids = seen(cluster, attacks.ALL[name]("tenant", 0.1 if name != "unlike" else 0.01))
    for uid in uids:
        policies.resolve(cluster.pods[uid])
    cycle.schedule([cluster.pods[uid] for uid in uids])
    assert cluster.nodes.resources.values == resources
    assert set(cluster.nodes._label_columns) <= set(cluster.nodes._labelled)
    for uid in uids:
        cluster.drop_pod(uid)
    cycle.boards._shapes.clear()
    gc.collect()
    assert not len(cluster.records._templates)
    assert not len(cluster.ledger.charges)
    assert not len(policies._answers)
    assert not len(cluster.demand._shapes)
    assert cluster.nodes.ports._rows == {}
    assert cluster.nodes.ports._looking == {}
    checks.verify(cluster)


def make_policy() -> Json:
    return {
        "metadata": {"name": "p"},
        "spec": {"nodePolicy": "binpack", "podSelector": {"matchLabels": {"app": "x"}}},
    }


@pytest.mark.parametrize(
    "name", ["terms", "keys", "peers", "images", "resources", "wishes", "picks"]
)
def test_a_pod_beyond_the_bounds_is_held_before_any_node_is_looked_at(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, cycle = a_cluster()
    compiled: list[str] = []
    for step in ("get_shape", "make_unscored"):
        monkeypatch.setattr(cycle.boards, step, lambda *_, step=step: compiled.append(step))
    (uid, *_) = seen(cluster, attacks.ALL[name]("tenant", 0.1))
    outcome = cycle.schedule([cluster.pods[uid]])
    assert [hold.uid for hold in outcome.holds] == [uid]
    assert "the maximum" in str(outcome.holds[0].problem)
    assert not cycle.could_place(cluster.pods[uid])
    assert not compiled


def test_a_label_that_no_node_has_any_more_has_no_column() -> None:
    cluster, _ = a_cluster()
    assert cluster.nodes.get_label_column("zone")[cluster.nodes.find_row("n1")] >= 0
    for i in range(4):
        cluster.see_node(make.node(name=f"n{i}"))
    assert (cluster.nodes.get_label_column("zone") == -1).all()
    assert "zone" not in cluster.nodes._label_columns
    cluster.see_node(make.node(name="n2", labels={"zone": "back"}))
    assert cluster.nodes.get_label_column("zone")[cluster.nodes.find_row("n2")] >= 0


def test_what_no_node_offers_is_charged_once_a_node_does() -> None:
    cluster, cycle = a_cluster()
    asks = {"example.com/part": 2}
    pod = make.pod(node="n0", containers=[make.container(requests=asks, limits=asks)])
    cluster.see_pod(pod)
    waiting = cluster.see_pod(
        make.pod(name="waits", containers=[make.container(requests=asks, limits=asks)])
    )
    assert waiting is not None
    assert cluster.nodes.find_row_asked("example.com/part") == c.UNKNOWN
    (hold,) = cycle.schedule([waiting]).holds
    assert hold.diagnosis is not None
    assert ("Insufficient example.com/part", 4) in hold.diagnosis.reasons
    cluster.see_node(make.node(name="n0", allocatable={"example.com/part": 3}))
    row = cluster.nodes.find_row_asked("example.com/part")
    assert cluster.nodes.columns.requested[row, cluster.nodes.find_row("n0")] == 2
    checks.verify(cluster)
    assert not cycle.could_place(waiting)
    cluster.drop_pod(pod.metadata.uid)
    assert cycle.could_place(waiting)
    checks.verify(cluster)


def test_thousands_of_ports_on_every_node_cost_what_is_held_of_just_the_one_asked() -> None:
    cluster, cycle = a_cluster()
    for i in range(3):
        taken = [make.container(host_ports=range(1000, 1200))]
        cluster.see_pod(make.pod(name=f"p{i}", node=f"n{i}", containers=taken))
    wants = cluster.see_pod(make.pod(name="wants", containers=[make.container(host_ports=[1100])]))
    assert wants is not None
    (bind,) = cycle.schedule([wants]).binds
    assert bind.node == "n3"
    ports, capacity = cluster.nodes.ports, cluster.nodes.capacity
    tcp = ports.count_conflicts((("TCP", 1100, "0.0.0.0"),), capacity)
    udp = ports.count_conflicts((("UDP", 1100, "0.0.0.0"),), capacity)
    assert np.flatnonzero(tcp.list_by_row(capacity)).tolist() == [0, 1, 2, 3]
    assert not udp.list_by_row(capacity).any()


def test_ports_that_nobody_asks_any_more_are_not_looked_at() -> None:
    cluster, cycle = a_cluster()
    wants = make.pod(name="wants", containers=[make.container(host_ports=[80, 81])])
    record = cluster.see_pod(wants)
    assert record is not None
    cycle.schedule([record])
    assert len(cluster.nodes.ports._looking) == 2
    cluster.drop_pod(wants.metadata.uid)
    del record
    cycle.boards._shapes.clear()
    gc.collect()
    assert cluster.nodes.ports._looking == {}


def test_of_a_running_pod_that_asks_thousands_only_what_a_node_has_is_kept() -> None:
    """A kubelet runs it, whatever no node knows; what some node has is charged, be it offered later."""
    cluster, _ = a_cluster()
    asked = {f"made-up.example/{i}": "1" for i in range(2000)} | {"fpga.example/card": "2"}
    pod = make.pod(name="greedy", node="n0", requests={"cpu": "1", **asked})
    cluster.see_pod(pod)
    amounts = cluster.pods[pod.metadata.uid].template.requests.amounts
    assert amounts == (("cpu", 1000),)
    cluster.see_node(make.node(name="n0", allocatable={"fpga.example/card": "4"}))
    cluster.see_pod(pod)
    row = cluster.nodes.find_row("n0")
    fpga = cluster.nodes.resources.find("fpga.example/card")
    assert cluster.nodes.columns.requested[fpga, row] == 2
    checks.verify(cluster)
    cluster.drop_pod(pod.metadata.uid)
    assert cluster.nodes.columns.requested[:, row].sum() == 0
    checks.verify(cluster)


@pytest.mark.parametrize(
    ("annotation", "text", "told"),
    [
        ("nvidia.com/use-gputype", "H100\nFAKE\x1b[31m", r"H100\nFAKE\x1b[31m"),
        ("nvidia.com/use-gputype", "H100\u202eKCAB\x9b", r"H100\u202eKCAB\x9b"),
        ("hami.io/node-scheduler-policy", "\x1b]0;PWNED\x07", r"\x1b]0;PWNED\x07"),
        ("hami.io/gpu-scheduler-policy", "a\x7f\u2066\u2028b", r"a\x7f\u2066\u2028b"),
    ],
)
def test_what_a_terminal_would_obey_is_spelt_out_in_events_and_conditions(
    annotation: str, text: str, told: str
) -> None:
    cluster = make.cluster(nodes=[make.hami_node(name="g")])
    pod = cluster.see_pod(make.pod(name="p", gpu=1, annotations={annotation: text}))
    assert pod is not None
    (hold,) = make.cycle(cluster=cluster).schedule([pod]).holds
    saying = sayings.say_why(hold)
    for said in (saying.message, saying.note, sayings.write_sentence(hold)):
        assert said.isprintable()
    assert told.lower() in saying.message.lower()
    assert told.lower() in saying.note.lower()


def test_letters_of_all_languages_and_blanks_stay_as_they_are() -> None:
    text = "naïve 統計\u3000Ж \u00a0 emoji 🙂\u200d"
    assert str(BadInput("a", "b\ud800")) == r"a: b\ud800"
    assert str(BadInput("spec", text)) == f"spec: {text}"
    assert str(BadInput("a\nb", "c\td").mistake) == r"a\nb: c\td"
