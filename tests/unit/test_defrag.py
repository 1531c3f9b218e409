"""Which pods are moved, which stay and why, and what is said of a plan."""

import io
from typing import Any

import pytest

from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.defrag import planning
from scheduler.defrag.contract import Terms
from scheduler.engine.allowance import Unlimited
from scheduler.engine.questions.defrag import PlanOfMoves
from scheduler.errors import BadInput
from scheduler.plan import owners, words
from scheduler.plan.command import Request, check_request, plan_defrag
from scheduler.simulate import schedule
from scheduler.simulate.reading import inventory as inventories
from scheduler.simulate.reading.gathering import Live
from scheduler.simulate.situation import make_engine
from scheduler.state import checks
from tests import make
from tests.model import mig
from tests.unit.test_simulate_what_if import gpu_node, node, pod

Json = dict[str, Any]
STARTED, WAITS, NOW = "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", 1_775_000_000
MIB = 1000


def cards_node(name: str, n: int = 1, **figures: Any) -> Json:
    cards = [make.card(uuid=f"{name}-{k}", index=k, mib=MIB, sharers=9) for k in range(n)]
    return gpu_node(name, cards=cards, **figures)


def share(name: str, at: str, mib: int = 300, kind: str = "ReplicaSet", of: str = "", **more: Any) -> Json:  # fmt: skip
    """A pod that runs on a share of the card ``at``, such as ``a-0``, and that an object of the kind has made."""
    where = at.rpartition("-")[0]
    body = pod(name, **{"node": where, "gpu": 1, "gpumem": mib, "gpucores": 10} | more)
    if kind:
        ref = {"apiVersion": "apps/v1", "kind": kind, "name": of or name, "uid": of or name, "controller": True}  # fmt: skip
        body["metadata"]["ownerReferences"] = [ref]
    body["metadata"]["creationTimestamp"] = STARTED
    notes = body["metadata"].setdefault("annotations", {})
    notes |= {
        "hami.io/vgpu-node": where,
        "hami.io/vgpu-devices-allocated": f"{at},NVIDIA,{mib},10:;",
    }
    body["status"] = {"phase": "Running", "startTime": STARTED}
    return body


def waiting(name: str, **asked: Any) -> Json:
    body = pod(name, **asked)
    body["metadata"]["creationTimestamp"] = WAITS
    return body


def planned(*objects: Json, mode: Mode = Mode.BEST_FIT, **more: Any) -> Json:
    request = Request(config=Config(placement=Placement(mode=mode)), now=NOW, **more)
    check_request(request)
    found: Json = plan_defrag(request, Live(objects), io.StringIO(), lambda *_: None).printed
    return found


def moved(found: Json) -> list[tuple[str, str, str]]:
    return [
        (move["pod"]["name"], move["from"]["node"], move["to"]["node"])
        for bundle in found["bundles"]
        for move in bundle["moves"]
    ]


def stays(found: Json) -> dict[str, int]:
    return {one["reason"]: one["pods"] for one in found["stays"]}


NODES = (cards_node("a"), cards_node("b"))
SMALL, LARGE = share("small", "a-0", 200), share("large", "b-0", 500)


def test_a_share_moves_beside_another_one_and_its_card_and_node_are_whole() -> None:
    found = planned(*NODES, SMALL, LARGE)
    # Either of them could move: the smaller one does.
    assert moved(found) == [("small", "a", "b")]
    (move,) = found["bundles"][0]["moves"]
    assert [one["what"] for one in move["frees"]] == ["card", "node"]
    assert move["to"]["cards"][0]["id"] == "b-0"
    assert move["onlyPod"]
    assert found["totals"] == {
        "moves": 1,
        "before": {"wholeCards": 0, "idleNodes": 0, "waitingPods": 0},
        "after": {"wholeCards": 1, "idleNodes": 1, "waitingPods": 0},
    }


def test_pods_that_the_scheduler_would_spread_again_are_not_moved() -> None:
    pods = [
        share("small", "a-0", 200, kind="StatefulSet"),
        share("large", "b-0", 500, kind="StatefulSet"),
    ]
    assert moved(planned(*NODES, *pods, mode=Mode.LEAST_ALLOCATED)) == []


def test_a_successor_that_comes_while_the_pod_is_ending_goes_where_it_goes_then() -> None:
    """The card that the pod still holds is fuller: best-fit puts the successor beside it, and nothing is freed."""
    pods = [share("small", "a-0", 400), share("large", "b-0", 300, kind="")]
    assert moved(planned(*NODES, *pods)) == []
    ending = {
        **pods[0],
        "metadata": {
            **pods[0]["metadata"],
            "name": "old",
            "uid": "old",
            "deletionTimestamp": WAITS,
        },
    }
    (row,) = schedule(
        [*NODES, ending, pods[1], waiting("new", gpu=1, gpumem=400, gpucores=10)],
        config=Config(placement=Placement(mode=Mode.BEST_FIT)),
    )["pods"]
    assert row["node"] == "a"
    # A StatefulSet waits until the pod is gone; then the card beside is the fuller one.
    pods[0] = share("small", "a-0", 400, kind="StatefulSet")
    assert moved(planned(*NODES, *pods)) == [("small", "a", "b")]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kind": ""}, owners.ALONE),
        ({"kind": "Job"}, owners.BEGINS_ANEW),
        ({"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}}, owners.FORBIDDEN),
        ({"annotations": {"karpenter.sh/do-not-disrupt": "true"}}, owners.FORBIDDEN),
        ({"scheduler_name": "default-scheduler"}, "that another scheduler places"),
    ],
)  # fmt: skip
def test_who_may_not_be_moved_stays_and_is_counted(change: Json, reason: str) -> None:
    both = share("small", "a-0", 200, **change), share("large", "b-0", 500, **change)
    found = planned(*NODES, *both)
    assert (moved(found), stays(found), found["movable"]) == ([], {reason: 2}, 0)


def test_a_job_that_saves_its_work_moves() -> None:
    job = share("small", "a-0", 200, "Job", annotations={"evenkeel.dev/checkpoint-every": "10m"})
    assert moved(planned(*NODES, job, LARGE)) == [("small", "a", "b")]


def test_pods_that_leave_or_came_just_now_stay() -> None:
    leaving, new = share("small", "a-0", 200), share("large", "b-0", 500)
    leaving["metadata"]["deletionTimestamp"] = WAITS
    new["status"]["startTime"] = "2026-03-31T23:30:00Z"
    found = planned(*NODES, leaving, new)
    assert stays(found) == {
        "that are leaving": 1,
        "that have not run for the minimum": 1,
    }
    new["status"]["startTime"] = "2026-03-31T23:00:00Z"
    assert moved(planned(*NODES, SMALL, new, min_run="1h")) == [("small", "a", "b")]
    assert (
        stays(planned(*NODES, SMALL, new, min_run="24h"))["that have not run for the minimum"] == 1
    )


def test_the_queue_of_a_pod_lets_it_run_for_its_minimum() -> None:
    def queue(minimum: str) -> Json:
        free = {"quota": -1, "limit": -1}
        spec = {"preemptMinRuntime": minimum, "resources": dict.fromkeys(("cpu", "memory", "gpu"), free)}  # fmt: skip
        return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "q"}, "spec": spec}  # fmt: skip

    both = [share("small", "a-0", 200), share("large", "b-0", 500)]
    for one in both:
        one["metadata"]["labels"] = {"kai.scheduler/queue": "q"}
    assert stays(planned(*NODES, *both, queue("900h"))) == {"that have not run for the minimum": 2}
    assert moved(planned(*NODES, *both, queue("1h"))) == [("small", "a", "b")]


def test_a_budget_keeps_its_pods_unless_it_allows_one_to_go() -> None:
    def budget(allowed: int) -> Json:
        return {
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "all", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": allowed},
        }  # fmt: skip

    both = [share(f"web-{i}", f"{where}-0", 200, of="web", labels={"app": "web"}) for i, where in enumerate("ab")]  # fmt: skip
    assert stays(planned(*NODES, *both, budget(0))) == {"that a PodDisruptionBudget keeps": 2}
    found = planned(*NODES, *both, budget(1))
    assert len(moved(found)) == 1
    assert not found["bundles"][0]["moves"][0]["onlyPod"]


def test_pods_of_a_daemon_set_belong_to_their_node_which_is_idle_without_others() -> None:
    agents = [share(f"agent-{where}", f"{where}-0", 10, "DaemonSet", of="agent") for where in "ab"]
    for agent in agents:
        agent["spec"]["containers"] = [make.container(cpu=1)]
        del agent["metadata"]["annotations"]
    found = planned(*NODES, *agents, SMALL, LARGE)
    assert moved(found) == [("small", "a", "b")]
    assert found["totals"]["after"]["idleNodes"] == 1
    assert not found["stays"]


def test_nothing_is_freed_on_a_node_that_takes_no_pods() -> None:
    closed = cards_node("a", unschedulable=True)
    assert moved(planned(closed, NODES[1], SMALL, LARGE)) == []


def test_a_pod_that_would_break_a_whole_card_stays() -> None:
    """The card of two pods would be whole, but each of them would break another one."""
    full = [share(f"p{i}", "a-0", 500) for i in range(2)]
    assert moved(planned(cards_node("a"), cards_node("b", 2), *full)) == []


def test_the_pods_of_a_card_move_one_after_the_other() -> None:
    pods = [
        share(name, at, mib, kind="StatefulSet")
        for name, at, mib in (("p0", "a-0", 200), ("p1", "a-0", 300), ("rest", "b-0", 400))
    ]
    found = planned(*NODES, *pods)
    # A card with one pod goes before a card with two.
    assert moved(found) == [("rest", "b", "a")]
    pods[2] = share("rest", "b-0", 400, kind="")
    found = planned(*NODES, *pods)
    assert moved(found) == [("p1", "a", "b"), ("p0", "a", "b")]
    assert len(found["bundles"]) == 1
    first, last = found["bundles"][0]["moves"]
    assert (first["frees"], len(last["frees"])) == ([], 2)
    # With one move nothing would be gained.
    assert moved(planned(*NODES, *pods, most=1)) == []


def test_a_waiting_pod_is_let_in_before_the_successor_of_the_moved_one() -> None:
    wide = waiting("wide", gpu=1, gpumem=MIB, gpucores=100)
    found = planned(*NODES, SMALL, LARGE, wide)
    assert moved(found) == [("small", "a", "b")]
    (move,) = found["bundles"][0]["moves"]
    assert [(one["pod"]["name"], one["to"]["node"]) for one in move["letsIn"]] == [("wide", "a")]
    assert found["totals"]["after"]["waitingPods"] == 0
    assert moved(planned(*NODES, SMALL, LARGE, wide, only_for="default/wide")) == moved(found)


def test_a_pod_that_fits_already_is_no_gain_and_needs_no_plan() -> None:
    fits = waiting("fits", gpu=1, gpumem=100)
    found = planned(*NODES, SMALL, LARGE, fits)
    assert not any(move["letsIn"] for one in found["bundles"] for move in one["moves"])
    with pytest.raises(BadInput, match="has room without a move, on b"):
        planned(*NODES, SMALL, LARGE, fits, only_for="default/fits")


def test_a_plan_for_a_pod_has_only_what_it_needs() -> None:
    nodes = [*NODES, cards_node("c"), cards_node("d")]
    others = [share("x", "c-0", 200), share("y", "d-0", 500)]
    for one in (nodes[2], nodes[3]):
        one["metadata"]["labels"]["pool"] = "other"
    for one in others:
        one["spec"]["nodeSelector"] = {"pool": "other"}
    for one in (*nodes[:2],):
        one["metadata"]["labels"]["pool"] = "mine"
    mine = [share("small", "a-0", 200), share("large", "b-0", 500)]
    for one in mine:
        one["spec"]["nodeSelector"] = {"pool": "mine"}
    wide = waiting("wide", gpu=1, gpumem=MIB, gpucores=100, node_selector={"pool": "other"})
    assert len(moved(planned(*nodes, *mine, *others, wide))) == 2
    assert moved(planned(*nodes, *mine, *others, wide, only_for="default/wide")) == [("x", "c", "d")]  # fmt: skip


def test_a_group_is_let_in_as_a_whole_by_several_bundles() -> None:
    nodes = [cards_node(name) for name in "abcd"]
    pods = [
        share("p0", "a-0", 200), share("p1", "b-0", 200),
        share("q0", "c-0", 500, kind=""), share("q1", "d-0", 500, kind=""),
    ]  # fmt: skip
    gang = [
        waiting(f"gang-{i}", gpu=1, gpumem=MIB, gpucores=100, labels={"scheduling.x-k8s.io/pod-group": "gang"})
        for i in range(2)
    ]  # fmt: skip
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"}, "spec": {"minMember": 2},
    }  # fmt: skip
    found = planned(*nodes, *pods, *gang, group, only_for="default/gang-0")
    assert sorted(moved(found)) == [("p0", "a", "c"), ("p1", "b", "c")]
    came = found["bundles"][-1]["moves"][-1]["letsIn"]
    assert sorted(one["to"]["node"] for one in came) == ["a", "b"]
    assert {one["group"] for one in came} == {"PodGroup default/gang"}
    # Pods of a group that runs stay.
    for one in pods[:2]:
        one["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "gang"}
    found = planned(*nodes, *pods, group)
    assert stays(found)["of a group that is placed as a whole"] == 2


def test_nodes_without_cards_become_idle() -> None:
    nodes = [node(name, cpu=4) for name in "ab"]
    pods = [share("p", "a-0"), share("q", "b-0")]
    for one, cpu in zip(pods, (1, 2), strict=True):
        one["spec"]["containers"] = [make.container(cpu=cpu)]
        del one["metadata"]["annotations"]
    found = planned(*nodes, *pods)
    assert moved(found) == [("p", "a", "b")]
    assert [one["what"] for one in found["bundles"][0]["moves"][0]["frees"]] == ["node"]


def test_the_last_small_instance_leaves_a_gpu_that_has_room_for_the_largest_one() -> None:
    nodes = [gpu_node(name, cards=[mig.make_card(f"{name}-0")]) for name in "ab"]
    pods = []
    for name, of in (("p", nodes[0]), ("q", nodes[1])):
        body = share(name, f"{'a' if of is nodes[0] else 'b'}-0", 4000)
        body["spec"]["containers"] = [make.container(cpu=1, gpu=1, gpumem=4000)]
        new = {**body, "spec": {k: v for k, v in body["spec"].items() if k != "nodeName"}}
        (row,) = schedule([of, {**new, "metadata": {**new["metadata"], "annotations": {}}}])["pods"]
        body["metadata"]["annotations"] = row["annotations"]
        pods.append(body)
    found = planned(*nodes, *pods)
    assert len(moved(found)) == 1
    assert [one["what"] for one in found["bundles"][0]["moves"][0]["frees"]] == ["slot", "node"]


def test_the_same_objects_give_the_same_plan() -> None:
    pods = [share(f"p{i}", f"{'abcd'[i % 4]}-0", 100 + 10 * i) for i in range(12)]
    nodes = [cards_node(name) for name in "abcd"]
    assert planned(*nodes, *pods) == planned(*nodes, *pods[::-1])


def test_planning_leaves_everything_as_it_was() -> None:
    pods = [share(f"p{i}", f"{'abcd'[i % 4]}-0", 100 + 10 * i) for i in range(12)]
    wide = waiting("wide", gpu=1, gpumem=MIB, gpucores=100)
    nodes = [cards_node(name) for name in "abcd"]
    inventory = inventories.read_inventory([*nodes, *pods, wide], strict=True)
    engine = make_engine(inventory, Config(placement=Placement(mode=Mode.BEST_FIT)))
    engine.decide(NOW, Unlimited())
    cluster = engine._cluster

    def look() -> tuple[Any, ...]:
        columns = cluster.nodes.columns.totals, cluster.cards.columns.used
        on = {node: sorted(there) for node, there in cluster.pods_on.items() if there}
        return (*(column.tobytes() for column in columns), dict(cluster.pods), on)

    before = look()
    question = PlanOfMoves(Terms({}, frozenset(), NOW, 600.0, 10, frozenset()))
    found = engine.ask(question)
    assert any(move.lets_in for bundle in found.bundles for move in bundle)
    assert look() == before
    checks.verify(cluster)
    assert engine.ask(question) == found


def test_work_is_bounded_and_a_plan_that_was_cut_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [cards_node(name) for name in "abcd"]
    pods = [share("p0", "a-0", 200), share("p1", "b-0", 200), share("q", "c-0", 500, kind="")]
    assert planned(*nodes, *pods)["complete"]
    monkeypatch.setattr(planning, "TRIES_MAX", 1)
    found = planned(*nodes, *pods)
    assert (found["complete"], found["tried"] <= 4) == (False, True)
    text = "".join(words.list_remarks(found))
    assert "no more was tried" in text
