"""The same pods placed again: what stays and why, which nodes are empty, and what the comparison comes to."""

from typing import Any

import pytest

from scheduler.api import names, wire
from scheduler.api.placement import Mode, Placement
from scheduler.audit.again import advice, orders, replay
from scheduler.audit.again.advice import Tried
from scheduler.audit.findings import About, Question, audit_cluster
from scheduler.audit.prices import book
from scheduler.config import Config
from scheduler.measure.typical import Typical
from tests import make
from tests.unit.test_audit_findings import owned

Json = dict[str, Any]
PVC = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


def replayed(nodes: list[wire.Node], pods: list[wire.Pod], **changes: Any) -> Json:
    question: Json = {
        "config": Config(), "modes": (None, Mode.BEST_FIT, Mode.LEAST_ALLOCATED), "prices": book.read_packaged(),
        "worst": 0, "orders": 3, "about": About(made="", source="", version=""),
    }  # fmt: skip
    found: Json = audit_cluster(nodes, pods, Question(**question | changes))["replay"]
    return found


def test_pods_with_claims_stay_and_their_nodes_are_not_empty() -> None:
    """With a PersistentVolumeClaim on every pod, all nodes were told to be empty, before and after."""
    nodes = [make.node(name=f"n{i:03}") for i in range(200)]
    pods = [
        make.pod(name=f"p{i}", node=f"n{i % 200:03}", cpu=1, memory="1Gi", spec=PVC)
        for i in range(400)
    ]
    found = replayed(nodes, pods)
    assert (found["moved"], found["stayed"], found["emptyNodes"]) == (0, 400, 0)
    assert found["stays"] == [{"reason": "with a PersistentVolumeClaim", "pods": 400}]
    assert [one["emptyNodes"] for one in found["modes"]] == [0, 0, 0]
    # They stay, and more like them may come.
    assert found["orders"] == 3
    assert found["advice"]["mode"] == "default"
    nothing = replayed(nodes, [])
    assert (nothing["orders"], nothing["advice"]["mode"]) == (1, "")
    assert "the modes cannot be compared" in nothing["advice"]["text"]


def test_what_stays_is_charged_and_keeps_its_node_from_being_empty() -> None:
    nodes = [make.node(name=name, cpu=4) for name in "abc"]
    pods = [
        make.pod(name="stays", node="a", cpu=3, memory="1Gi", spec=PVC),
        *(make.pod(name=f"p{i}", node=name, cpu=1, memory="1Gi") for i, name in enumerate("bcbc")),
    ]
    found = replayed(nodes, pods, modes=(Mode.MOST_ALLOCATED,))
    assert found["emptyNodes"] == 0
    (one,) = found["modes"]
    # One pod fits beside the one that stays, the other three on one node.
    assert one["emptyNodes"] == 1
    assert one["unplaced"] == []


def test_each_pod_that_stays_is_counted_with_its_reason() -> None:
    nodes = [
        make.node(name="a"), make.node(name="old", unschedulable=True), make.node(name="odd"),
    ]  # fmt: skip
    mirror = make.pod(name="mirror", node="a", annotations={names.MIRROR: "x"})
    leaving = make.pod(name="leaving", node="a")
    leaving.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    pods = [
        owned("DaemonSet", make.pod(name="agent-a", node="a")),
        owned("DaemonSet", make.pod(name="agent-old", node="old")),
        owned("Node", make.pod(name="static", node="a")),
        mirror, leaving,
        make.pod(name="claims", node="a", spec={"resourceClaims": [{"name": "x"}]}),
        make.pod(name="on-old", node="old", cpu=1),
        make.pod(name="nowhere", node="gone", cpu=1),
        make.pod(name="odd", node="a", annotations={names.MODE: "no such mode"}),
        owned("ReplicaSet", make.pod(name="web", node="a", cpu=1)),
        make.pod(name="bare", node="a", cpu=1),
        make.pod(name="waits", cpu=1),
    ]  # fmt: skip
    found = replayed(nodes, pods)
    assert {one["reason"]: one["pods"] for one in found["stays"]} == {
        "of a DaemonSet": 2,
        "run by the kubelet from a file": 2,
        "being deleted": 1,
        "with a ResourceClaim": 1,
        "on a node that would refuse such a pod now (cordon, taints or labels)": 1,
        "on a node that does not exist": 1,
        "with a mistake in their placement settings": 1,
    }
    assert found["stayed"] == 9
    assert (found["moved"], found["withoutController"]) == (2, 1)
    assert [one["pods"] for one in found["stays"]] == [2, 2, 1, 1, 1, 1, 1]


def test_every_mode_is_tried_in_the_same_orders_and_they_are_the_same_every_time() -> None:
    nodes = [make.node(name=f"n{i}", cpu=4) for i in range(6)]
    pods = [make.pod(name=f"p{i}", node=f"n{i % 6}", cpu=1 + i % 3, memory="1Gi") for i in range(9)]
    found = replayed(nodes, pods)
    assert found["orders"] == 3
    for one in found["modes"]:
        assert {len(values) for values in one["inOrders"].values()} == {3}
        assert one["inOrders"]["emptyNodes"][0] == one["emptyNodes"]
        assert one["inOrders"]["money"][0] == one["money"]
    assert replayed(nodes, pods) == found


@pytest.mark.parametrize(
    ("asked", "pods", "expected"),
    [(None, 100, 5), (None, 16_000, 2), (None, 10_000_000, 2), (9, 10_000_000, 9), (9, 0, 1)],
)
def test_large_clusters_are_tried_in_fewer_orders_unless_asked(
    asked: int | None, pods: int, expected: int
) -> None:
    assert orders.count_orders(asked, pods, 5000 if pods > 100 else 10, 5) == expected


def test_shuffled_orders_differ_although_the_api_says_when_pods_were_created() -> None:
    """The engine takes the oldest first: on a real cluster all orders were the order of creation."""
    nodes = [make.node(name=f"n{i}", cpu=8, memory="64Gi") for i in range(8)]
    pods = [
        make.pod(name=f"p{i}", node=f"n{i % 8}", cpu=1 + i % 5, memory="1Gi") for i in range(20)
    ]
    for i, pod in enumerate(pods):
        pod.metadata.creation_timestamp = f"2026-01-01T00:00:{i:02}Z"
    found = replayed(nodes, pods, modes=(Mode.FIRST_FIT,), orders=8)
    assert len(set(found["modes"][0]["inOrders"]["money"])) > 1


def test_what_counts_is_what_the_nodes_hold_filled_up_from_where_they_are() -> None:
    """Ten nodes of 8 cores with 3 pods of 2 cores each: one more fits on each, in whatever mode."""
    nodes = [make.node(name=f"n{i}", cpu=8, memory="64Gi") for i in range(10)]
    pods = [make.pod(name=f"p{i}", node=f"n{i % 10}", cpu=2, memory="1Gi") for i in range(30)]
    found = replayed(nodes, pods)
    assert found["held"] == {
        "cpu": 60.0,
        "memory": 30.0,
        "gpuCompute": 0.0,
        "gpuMemory": 0.0,
        "pods": 30,
    }
    assert found["arrivals"] == 13
    for one in found["modes"]:
        assert one["held"]["cpu"] == [80.0] * 3
        assert one["held"]["pods"] == [40] * 3
    assert (found["advice"]["mode"], found["advice"]["figure"]) == ("default", "")
    assert found["advice"]["text"].startswith("No reason to change the mode.")
    assert "amounts that overlap with these" in found["advice"]["text"]


def test_pods_that_keep_their_node_are_demand_but_those_of_nodes_are_not() -> None:
    nodes = [make.node(name=f"n{i}", cpu=8, memory="64Gi") for i in range(4)]
    agents = [
        owned("DaemonSet", make.pod(name=f"agent-{i}", node=f"n{i}", cpu="100m")) for i in range(4)
    ]
    claimed = [make.pod(name=f"p{i}", node=f"n{i % 4}", cpu=2, spec=PVC) for i in range(4)]
    assert replayed(nodes, agents)["arrivals"] == 0
    (one, *_) = replayed(nodes, [*agents, *claimed])["modes"]
    # Three pods of 2 cores fit on each beside the agent.
    assert one["held"]["pods"] == [4 + 12] * 3


def test_pods_that_come_send_nobody_away_and_keep_no_room_for_it() -> None:
    """Else room would be promised to the pod of 6 cores, and that of 1 core would find none."""
    runs = make.pod(name="runs", node="n", cpu=6, priority=-10)
    come = replay.unbind_pods([make.pod(name="six", cpu=6), make.pod(name="one", cpu=1)], Config())
    typical = Typical(pods=(), gpu_seen=0, plain_seen=0, gpu_assumed=False, plain_assumed=False)
    found = replay.replay_pods(
        [make.node(name="n", cpu=8)], [runs], come, frozenset(), typical, Config()
    )
    assert found.unplaced == ("default/six",)


def mixed() -> tuple[list[wire.Node], list[wire.Pod]]:
    """37 % of the cores in use by pods of four sizes, spread level, as kube-scheduler leaves them."""
    nodes = [make.node(name=f"n{i:02}", cpu=32, memory="128Gi") for i in range(20)]
    sizes = [(1, "2Gi"), (2, "16Gi"), (4, "8Gi"), (8, "48Gi")]
    pods = []
    for i in range(63):
        cpu, memory = sizes[i % 4]
        pods.append(make.pod(name=f"p{i}", node=f"n{i % 20:02}", cpu=cpu, memory=memory))
    return nodes, pods


def test_the_default_is_not_advised_against_where_ranges_overlap() -> None:
    """On a cluster that was 37 % full, least-allocated was advised by dollars whose ranges overlapped."""
    modes = (None, Mode.BEST_FIT, Mode.LEAST_ALLOCATED, Mode.MOST_ALLOCATED)
    found = replayed(*mixed(), modes=modes, orders=5)
    assert 0.3 < found["held"]["cpu"] / 640 < 0.4
    base, *others = found["modes"]
    for one in others:
        for name in ("cpu", "memory"):
            assert min(one["held"][name]) <= max(base["held"][name])
    assert found["advice"]["mode"] == "default"
    assert replayed(*mixed(), modes=modes, orders=5) == found


def test_a_mode_that_holds_more_in_every_order_is_advised() -> None:
    """The configuration spreads pods of 1 core, and no node is left whole for those of 8."""
    nodes = [make.node(name=f"n{i}", cpu=8, memory="64Gi") for i in range(20)]
    pods = [make.pod(name=f"s{i}", node="n0", cpu=1, memory="1Gi") for i in range(8)]
    pods += [make.pod(name=f"t{i}", node="n1", cpu=1, memory="1Gi") for i in range(8)]
    pods += [make.pod(name=f"u{i}", node="n2", cpu=1, memory="1Gi") for i in range(8)]
    pods += [make.pod(name=f"b{i}", node=f"n{3 + i}", cpu=8, memory="8Gi") for i in range(8)]
    spread = Config(placement=Placement(mode=Mode.LEAST_ALLOCATED))
    found = replayed(nodes, pods, config=spread, modes=(None, Mode.BEST_FIT), orders=5)
    level, packed = (one["held"]["cpu"] for one in found["modes"])
    assert min(packed) > max(level)
    assert (found["advice"]["mode"], found["advice"]["figure"]) == ("best-fit", "cpu")
    assert (
        "best-fit holds more in all 5 orders and no less of any resource" in found["advice"]["text"]
    )
    assert "do not include what the default protects" in found["advice"]["text"]


def tried(name: str, gpus: list[int], pods: list[int], cpu: float = 100.0) -> Tried:
    n = len(gpus)
    return Tried(name, {"gpuCompute": gpus, "cpu": [cpu] * n, "memory": [400.0] * n, "pods": pods})


DEFAULT = tried("default", [500, 520, 510], [900, 950, 920])


@pytest.mark.parametrize(
    "gpus",
    [
        # Within the spread.
        [510, 530, 520],
        # More in every order, but by next to nothing.
        [521, 521, 521],
    ],
)
def test_a_difference_within_the_spread_is_none_that_matters(gpus: list[int]) -> None:
    base = tried("default", [519, 520, 518], [900, 950, 920])
    found = advice.give_advice([base, tried("fgd", gpus, [900, 950, 920])], "default")
    assert (found.mode, found.figure) == ("default", "")
    assert found.text.startswith("No reason to change the mode.")


def test_more_of_one_resource_and_less_of_another_is_told_and_not_advised() -> None:
    found = advice.give_advice(
        [DEFAULT, tried("fgd", [600, 610, 605], [900, 950, 920], 80.0)], "default"
    )
    assert found.mode == "default"
    assert "fgd holds more (600 to 610 GPUs) but also less (80.0 cores)." in found.text


def test_more_pods_that_hold_no_more_are_smaller_pods_and_no_reason() -> None:
    found = advice.give_advice([DEFAULT, tried("fgd", [500, 520, 510], [990, 999, 995])], "default")
    assert found.mode == "default"
    assert (
        "more (990 to 999 pods): its pods are smaller and hold no more of any resource."
        in found.text
    )
    better = advice.give_advice(
        [DEFAULT, tried("fgd", [600, 610, 605], [800, 810, 805])], "default"
    )
    assert (better.mode, better.figure) == ("fgd", "gpuCompute")


def test_of_several_better_modes_the_one_with_the_most_gpus_is_advised() -> None:
    more, most = (
        tried(name, [n] * 3, [900, 950, 920]) for name, n in (("fgd", 560), ("keel", 600))
    )
    assert advice.give_advice([most, DEFAULT, more], "default").mode == "keel"
    assert advice.give_advice([more, DEFAULT, most], "default").mode == "keel"


def test_one_order_is_no_ground_for_advice() -> None:
    found = advice.give_advice([tried("default", [1], [1]), tried("fgd", [9], [9])], "default")
    assert found.mode == "default"
    assert found.text.startswith("None, because one order")


def test_without_the_default_there_is_nothing_to_compare_with() -> None:
    found = advice.give_advice([tried("keel", [1], [1])], "default")
    assert (found.mode, found.figure) == ("", "")
    assert "--mode default" in found.text


def test_a_handful_of_pods_says_nothing_about_those_to_come() -> None:
    better = tried("fgd", [600, 610, 605], [900, 950, 920])
    unseen = advice.give_advice([DEFAULT, better], "default", is_seen=False)
    assert unseen.mode == "default"
    assert unseen.text.startswith("None, because the cluster has too few pods")
    nodes = [make.node(name="n0", cpu=64, memory="64Gi")]
    pods = [
        make.pod(name=f"p{i}", node="n0", cpu=1, memory="2Gi" if i % 2 else "64Mi")
        for i in range(60)
    ]
    assert "too few pods" in replayed(nodes, pods[:20])["advice"]["text"]
    assert "too few pods" not in replayed(nodes, pods)["advice"]["text"]
