"""What waits: who is next, who sits out a backoff, whom a change could help."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.shapes import policies
from scheduler.shapes.policies import PolicyBook
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from scheduler.waiting.entries import Where
from scheduler.waiting.pending import Pending
from tests import make, slices

CLUSTER = Cluster()


def pod(name: str = "p", *, created: str = "", gated: bool = False, **more: Any) -> PodRecord:
    spec = {"schedulingGates": [{"name": "g"}]} if gated else {}
    wanted = make.pod(name=name, spec=spec, **more)
    wanted.metadata.creation_timestamp = created
    record = CLUSTER.see_pod(wanted)
    assert record is not None
    return record


def waiting(*pods: PodRecord) -> Pending:
    pending = Pending(Config())
    for one in pods:
        pending.offer(one, 0.0)
    return pending


def popped(pending: Pending, now: float = 0.0, limit: int = 99) -> list[str]:
    return [pod.name for one in pending.pop(limit, now) for pod in one.members]


def parked(*pods: PodRecord, at: float = 0.0) -> Pending:
    pending = waiting(*pods)
    pending.pop(99, at)
    for one in pods:
        pending.park_pod(one.uid, at, one.template)
    return pending


def test_the_next_is_by_priority_then_age_then_arrival() -> None:
    first = [pod(name, created="2026-01-02") for name in ("c", "b")]
    old = pod("old", created="2026-01-01")
    pending = waiting(*first, old, pod("vip", priority=5, created="2026-01-03"))
    assert popped(pending, limit=1) == ["vip"]
    assert popped(pending) == ["old", "c", "b"]
    assert popped(pending) == []


def test_a_pod_whose_turn_did_not_come_is_tried_at_once_and_again_when_turns_begin() -> None:
    one, refused = pod("one", created="2026-01-01"), pod("refused", created="2026-01-01")
    pending = waiting(one, refused)
    pending.pop(99, 0.0)
    assert pending.await_turns(one.uid, "node")
    pending.retry_pod(one.uid, 0.1, at_once=True)
    pending.retry_pod(refused.uid, 0.1)
    assert popped(pending, 0.1) == ["one"]
    pending.park_pod(one.uid, 0.1, one.template)
    pending.offer(pod("young", created="2026-01-02"), 0.1)
    # A change that helps its kind leaves it in its backoff, while another pod is active.
    pending.help_kind(one.template, 0.2)
    pending.begin_turns("other", 0, 0.3)
    assert pending.find_entry(one.uid).where == Where.BACKOFF  # type: ignore[union-attr]
    pending.begin_turns("node", 1, 0.3)
    assert popped(pending, 0.3) == ["one", "young"]
    pending.begin_turns("node", 1, 0.4)
    assert popped(pending, 0.4) == []


def test_a_turn_that_does_not_come_is_new_once_until_turns_begin() -> None:
    """A pod that is given back again and again without a change is not tried again and again."""
    pending = waiting(pod("one"))
    assert [pending.await_turns("one", "node") for _ in range(3)] == [True, False, False]
    pending.begin_turns("node", 1, 0.0)
    assert pending.await_turns("one", "node")


@pytest.mark.parametrize(
    ("attempts", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (40, 10)]
)
def test_backoff_doubles_from_1_to_10_seconds(attempts: int, seconds: float) -> None:
    pending, now = waiting(pod()), 100.0
    for _ in range(attempts):
        assert popped(pending, now) == ["p"]
        pending.retry_pod("default/p", now)
        due = pending.find_next_due()
        assert due is not None
        waited, now = due - now, due
    assert waited == seconds
    entry = pending.find_entry("default/p")
    assert entry is not None
    assert entry.attempts == attempts


def test_a_pod_is_not_tried_before_its_backoff_ends() -> None:
    pending = waiting(pod())
    popped(pending, 5.0)
    pending.retry_pod("default/p", 5.0)
    assert popped(pending, 5.99) == []
    assert pending.count_pods()[Where.BACKOFF] == 1
    assert popped(pending, 6.0) == ["p"]
    assert pending.find_next_due() is None


def test_what_failed_waits_for_help_however_long() -> None:
    pending = parked(pod())
    assert popped(pending, 299.0) == []
    assert pending.find_next_due() is None
    assert len(pending.parked) == 1
    assert pending.count_pods() == {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 0}


def test_help_moves_the_pods_of_one_kind_and_no_others() -> None:
    small = [pod(f"small-{i}", cpu=1) for i in range(3)]
    large = [pod(f"large-{i}", cpu=9) for i in range(2)]
    pending = parked(*small, *large)
    kinds = pending.parked.list_kinds()
    assert [[one.name for one in pending.parked.list_pods(kind)] for kind in kinds] == [
        ["small-0", "small-1", "small-2"],
        ["large-0", "large-1"],
    ]
    pending.help_kind(kinds[0], 50.0)
    assert popped(pending, 50.0) == ["small-0", "small-1", "small-2"]
    assert len(pending.parked) == 2
    assert pending.parked.list_pods(kinds[0]) == []
    assert not pending.is_parked(small[0].uid)
    assert pending.is_parked(large[0].uid)


def test_pods_are_of_a_kind_where_policies_make_no_difference_whatever_their_labels() -> None:
    """A Job writes its own label on its pods: a thousand Jobs must not be a thousand questions."""
    config = Config()
    book = PolicyBook(config)
    cycle = Cycle(CLUSTER, book)
    pods = [pod("a"), pod("b", labels={"x": "y"}), pod("c", namespace="n")]
    assert len({cycle.find_kind(one) for one in pods}) == 1
    body = {
        "metadata": {"name": "x"},
        "spec": {"podSelector": {"matchLabels": {"x": "y"}}, "gpuPolicy": "spread"},
    }
    book.put(policies.parse_policy(body))
    kinds = [cycle.find_kind(one) for one in pods]
    assert kinds[0] == kinds[2] != kinds[1]
    assert cycle.find_kind(pod("d", cpu=3)) not in kinds


def test_help_right_after_a_failure_still_waits_for_the_backoff_while_others_are_active() -> None:
    pending = parked(pod(), at=10.0)
    (kind,) = pending.parked.list_kinds()
    pending.help_kind(kind, 10.5)
    assert len(pending.parked) == 0
    pending.offer(pod("active"), 10.5)
    assert popped(pending, 10.5) == ["active"]
    pending.offer(pod("also"), 11.0)
    assert popped(pending, 11.0) == ["p", "also"]


def test_nobody_sits_out_a_backoff_while_there_is_nothing_else_to_do() -> None:
    pending = parked(pod("p"), pod("q"), at=10.0)
    for kind in pending.parked.list_kinds():
        pending.help_kind(kind, 10.5)
    assert pending.find_next_due() == 0.0
    assert popped(pending, 10.5, limit=1) == ["p"]
    assert popped(pending, 10.5) == ["q"]
    assert pending.find_next_due() is None


def test_after_a_failed_bind_a_pod_sits_out_its_backoff_whatever_else_there_is_to_do() -> None:
    pending = parked(pod("helped"), at=10.0)
    pending.offer(pod("failed"), 10.0)
    popped(pending, 10.0)
    pending.retry_pod("default/failed", 10.0)
    assert popped(pending, 10.5) == []
    assert pending.find_next_due() == 11.0
    (kind,) = pending.parked.list_kinds()
    pending.help_kind(kind, 10.5)
    assert popped(pending, 10.5) == ["helped"]
    assert pending.find_next_due() == 11.0


def test_a_pod_that_is_helped_by_what_is_promised_sits_out_its_backoff_whatever_else_there_is_to_do() -> (
    None
):
    pending = parked(pod("helped"), pod("promised", cpu=2), at=10.0)
    pending.help_pod_later("default/promised", 10.5)
    assert popped(pending, 10.5) == []
    assert pending.find_next_due() == 11.0
    pending.help_pod("default/helped", 10.5)
    assert popped(pending, 10.5) == ["helped"]
    assert popped(pending, 11.0) == ["promised"]


def test_a_gated_pod_waits_until_its_gates_are_gone() -> None:
    pending = waiting(pod("g", gated=True))
    assert popped(pending) == []
    assert pending.count_pods()[Where.GATED] == 1
    pending.offer(pod("g"), 0.0)
    assert popped(pending) == ["g"]


def test_a_pod_that_changed_is_tried_at_once_and_one_that_did_not_is_not() -> None:
    pending = parked(pod("p", labels={"a": "b"}))
    pending.offer(pod("p", labels={"a": "b"}), 0.0)
    assert popped(pending) == []
    pending.offer(pod("p", labels={"a": "c"}), 0.0)
    assert len(pending.parked) == 0
    assert popped(pending) == ["p"]


def test_a_pod_that_changes_while_it_is_tried_is_not_given_out_twice() -> None:
    pending = waiting(pod("p"))
    assert popped(pending) == ["p"]
    pending.offer(pod("p", labels={"a": "b"}), 0.0)
    assert popped(pending) == []
    pending.retry_pod("default/p", 0.0)
    assert popped(pending, 1.0) == ["p"]


def test_a_dropped_pod_is_gone_wherever_it_was() -> None:
    for pending in (waiting(pod()), parked(pod()), waiting(pod(gated=True))):
        pending.drop("default/p")
        assert len(pending) == 0
        assert len(pending.parked) == 0
        pending.retry_pod("default/p", 0.0)
        pending.park_pod("default/p", 0.0, "any")
        assert popped(pending, 99.0) == []


def test_after_five_minutes_a_parked_pod_is_tried_whatever_was_missed() -> None:
    pending = parked(pod(), at=7.0)
    pending.retry_longest_parked(306.9)
    assert popped(pending, 306.9) == []
    pending.retry_longest_parked(307.0)
    assert popped(pending, 307.0) == ["p"]


def test_a_policy_that_changed_makes_all_that_wait_active_but_those_being_tried() -> None:
    pending = parked(pod("parked"))
    pending.offer(pod("tried"), 0.0)
    pending.offer(pod("gated", gated=True), 0.0)
    assert popped(pending) == ["tried"]
    pending.retry_all(0.0)
    assert popped(pending) == ["parked"]


actions = st.tuples(
    st.sampled_from(["offer", "change", "gate", "drop", "pop", "failed", "retry", "help", "flush",
                     "reconsider", "wait"]),
    st.integers(0, 5),
)  # fmt: skip


@given(st.lists(actions, max_size=80))
@settings(max_examples=slices.count_examples(200), deadline=None)
def test_no_pod_is_lost_or_given_out_twice_at_once(happened: list[tuple[str, int]]) -> None:
    pending, now = Pending(Config()), 0.0
    known: set[str] = set()
    out: set[str] = set()
    gated: set[str] = set()
    for i, (action, n) in enumerate(happened):
        uid = f"default/p{n}"
        match action:
            case "offer" | "change" if uid not in gated:
                labels = {"n": str(i)} if action == "change" else None
                pending.offer(pod(f"p{n}", labels=labels, cpu=n % 2), 0.0)
                known.add(uid)
            case "gate" if uid not in known:
                pending.offer(pod(f"p{n}", gated=True), 0.0)
                known.add(uid)
                gated.add(uid)
            case "drop":
                pending.drop(uid)
                known.discard(uid)
                out.discard(uid)
                gated.discard(uid)
            case "pop":
                given_out = {one.uid for one in pending.pop(n, now)}
                assert len(given_out) <= n
                assert not given_out & out
                assert given_out <= known - gated
                out |= given_out
            case "failed" | "retry" if uid in out:
                pending.park_pod(uid, now, n % 3) if action == "failed" else pending.retry_pod(
                    uid, now
                )
                out.discard(uid)
            case "help":
                pending.help_kind(n % 3, now)
            case "flush" | "reconsider":
                pending.retry_longest_parked(now) if action == "flush" else pending.retry_all(0.0)
            case "wait":
                now += 60.0 * n
        assert {one.uid for one in pending.list_pods()} == known
        assert sum(pending.count_pods().values()) == len(pending) == len(known)
        assert pending.count_pods()[Where.UNSCHEDULABLE] == len(pending.parked)
    now += 1000.0
    pending.retry_longest_parked(now)
    assert {one.uid for one in pending.pop(99, now)} == known - gated - out
