"""Namespaces take turns: at what is expensive to compile, and at what is expensive to decide."""

from collections.abc import Callable

import msgspec
import pytest

from scheduler.api import limits, wire
from scheduler.api.claims import objects
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import Pace
from scheduler.engine.engine import Engine
from scheduler.engine.intake import Intake
from scheduler.state.entities import AnyEntity
from scheduler.state.pods import PodRecord
from scheduler.waiting.pending import Pending
from tests import make
from tests.operator import devices
from tests.operator.devices import device, device_slice


def record(name: str, namespace: str = "default", **words: object) -> PodRecord:
    cluster = make.cluster()
    found = cluster.see_pod(make.pod(name=name, namespace=namespace, **words))  # type: ignore[arg-type]
    assert found is not None
    return found


def names(batch: list[AnyEntity]) -> list[str]:
    return [pod.name for one in batch for pod in one.members]


def dear(pod: PodRecord) -> int:
    return 1 if pod.namespace.startswith("tenant") else 0


def everything(pending: Pending, *, most: int, until: str) -> int:
    """Pods popped before the one of that name; each fails and is not tried again."""
    popped = 0
    while batch := pending.pop(64, 0.0, dear, most):
        for one in batch:
            (pod,) = one.members
            if pod.name == until:
                return popped
            popped += 1
            pending.park_pod(pod.uid, 0.0, pod.uid)
    raise AssertionError(f"{until} was never popped")


def test_a_pod_waits_for_no_more_of_other_namespaces_dear_pods_than_they_are_allowed() -> None:
    """Ten tenants of 300 unlike pods each, all older; counted in pods, not in seconds."""
    pending = Pending(Config())
    for i in range(300):
        for t in range(10):
            pending.offer(record(f"p{i}", f"tenant-{t}"), 0.0)
    pending.offer(record("normal", "normal"), 0.0)
    assert everything(pending, most=8, until="normal") <= 10 * 101


def test_who_has_spent_least_goes_first_among_those_beyond_their_allowance() -> None:
    pending = Pending(Config())
    for i in range(250):
        pending.offer(record(f"p{i}", "tenant-0"), 0.0)
    assert len(pending.pop(250, 0.0, dear, 1000)) == 250
    for i in range(150):
        pending.offer(record(f"q{i}", "tenant-1"), 0.0)
    assert len(pending.pop(150, 0.0, dear, 1000)) == 150
    for t in (0, 1):
        pending.offer(record("again", f"tenant-{t}"), 0.0)
    assert [pod.namespace for pod in pending.pop(2, 0.0, dear, 1000)] == ["tenant-1", "tenant-0"]


def test_priority_goes_before_turns() -> None:
    pending = Pending(Config())
    for i in range(200):
        pending.offer(record(f"p{i}", "tenant-0"), 0.0)
    pending.pop(200, 0.0, dear, 1000)
    pending.offer(record("urgent", "tenant-0", priority=10), 0.0)
    pending.offer(record("normal", "normal"), 0.0)
    assert names(pending.pop(2, 0.0, dear, 1000)) == ["urgent", "normal"]


def test_what_was_spent_is_forgotten() -> None:
    pending = Pending(Config())
    pending.pop(1, 0.0, dear, 1)
    for i in range(200):
        pending.offer(record(f"p{i}", "tenant-0"), 0.0)
    pending.pop(200, 0.0, dear, 1000)
    pending.offer(record("old", "tenant-0"), 0.0)
    pending.offer(record("young", "normal"), 0.0)
    assert names(pending.pop(1, 1.0, dear, 1000)) == ["young"]
    pending.offer(record("young", "normal"), 0.0)
    # Four half-lives later a sixteenth of it is left, less than the allowance.
    assert names(pending.pop(2, 40.0, dear, 1000)) == ["old"]


def test_a_batch_ends_before_it_costs_more_than_it_may_and_has_one_pod_at_least() -> None:
    pending = Pending(Config())
    for i in range(5):
        pending.offer(record(f"p{i}", "tenant-0"), 0.0)
    assert len(pending.pop(64, 0.0, dear, 3)) == 3
    assert len(pending.pop(64, 0.0, lambda _: 100, 3)) == 1


def test_a_new_kind_of_pod_is_paid_once_however_many_there_are_of_it() -> None:
    cluster, pending = make.cluster(), Pending(Config())
    for i in range(50):
        pod = cluster.see_pod(make.pod(name=f"p{i}", namespace="tenant-0", cpu="1"))
        assert pod is not None
        pending.offer(pod, 0.0)
    assert len(pending.pop(64, 0.0, dear, 1)) == 50


def claimant(engine: Engine, name: str, namespace: str, expression: str) -> None:
    """A pod with a claim of its own, whose request has this selector 32 times."""
    selectors = [{"cel": {"expression": expression}}]
    requests = [devices.request(f"r{i}", selectors=selectors) for i in range(32)]
    body = devices.claim(f"{name}-c", *requests)
    body["metadata"] |= {"namespace": namespace, "uid": f"c-{name}"}
    engine.handle(events.Seen(msgspec.convert(body, objects.ResourceClaim)), 0.0)
    pod = make.pod(name=name, namespace=namespace)
    pod.spec.resource_claims = [wire.PodClaim("c", f"{name}-c")]
    engine.handle(events.Seen(pod), 0.0)


@pytest.mark.parametrize("is_long", [False, True], ids=["loops in loops", "long selectors"])
def test_pods_of_others_do_not_wait_for_claims_whose_selectors_cost_much(is_long: bool) -> None:
    engine = Engine(Config())
    engine.handle(events.Seen(make.node(name="n0")), 0.0)
    made = msgspec.convert(devices.device_class(), objects.DeviceClass)
    engine.handle(events.Seen(made), 0.0)
    body = device_slice("n0", [device(f"d{i}") for i in range(40)])
    engine.handle(events.Seen(msgspec.convert(body, objects.ResourceSlice)), 0.0)
    for i in range(30):
        numbers = f"[{', '.join(str(i + j) for j in range(2000 if is_long else 60))}]"
        loop = f"{numbers}.all(i, i >= 0)" if is_long else f"{numbers}.all(i, {numbers}.all(j, i + j >= 0))"  # fmt: skip
        claimant(engine, f"dear-{i}", "tenant", loop)
    engine.handle(events.Seen(make.pod(name="normal", namespace="other")), 0.0)
    popped = []
    while "normal" not in popped:
        batch = engine._pop_batch(64, 0.0)
        assert batch
        popped += names(batch)
    # The tenant has spent its allowance with the second one.
    assert len(popped) <= 3


@pytest.mark.parametrize(("n_kinds", "n_popped"), [(1, 50), (50, 8)])
def test_claims_of_usual_selectors_cost_as_much_as_pods_of_their_own_kind(
    n_kinds: int, n_popped: int
) -> None:
    engine = Engine(Config())
    for i in range(50):
        model = f"x{i % n_kinds}"
        claimant(engine, f"p{i}", "default", f"device.attributes['a'].ms.exists(m, m == '{model}')")
    assert len(engine._pop_batch(64, 0.0)) == n_popped


def test_a_standby_that_never_pops_keeps_nothing_of_what_has_gone() -> None:
    pending = Pending(Config())
    pod = record("p")
    for _ in range(1000):
        pending.offer(pod, 0.0)
        pending.drop(pod.uid)
    assert len(pending._parts.active) <= 64


def test_pods_that_cost_nothing_go_as_they_came() -> None:
    pending = Pending(Config())
    expected = [f"p{i}" for i in range(300)]
    for i, name in enumerate(expected):
        pending.offer(record(name, f"ns-{i % 3}"), 0.0)
    assert names(pending.pop(300, 0.0, dear, 1)) == expected


def wordy(name: str, namespace: str, *, node: str = "") -> wire.Pod:
    keys = {f"k{i}": "v" for i in range(limits.LIGHT_WORDS + 1)}
    return make.pod(name=name, namespace=namespace, node=node, node_selector=keys)


def test_namespaces_take_turns_at_being_compiled() -> None:
    intake = Intake()
    for i in range(3):
        assert intake.take_in(wordy(f"a{i}", "a"))
    assert intake.take_in(wordy("b0", "b"))
    order = [intake.pop_next().pod.metadata.name for _ in range(len(intake))]
    assert order == ["a0", "b0", "a1", "a2"]
    assert not len(intake)


def test_pods_that_say_little_or_run_already_do_not_wait_to_be_compiled() -> None:
    intake = Intake()
    assert not intake.take_in(make.pod(name="small"))
    assert not intake.take_in(wordy("bound", "a", node="n"))


def test_the_last_state_counts_and_what_is_gone_or_bound_waits_no_more() -> None:
    intake = Intake()
    intake.take_in(wordy("p", "a"))
    newer = wordy("p", "a")
    newer.metadata.resource_version = "2"
    intake.take_in(newer)
    assert len(intake) == 1
    assert intake.pop_next().pod.metadata.resource_version == "2"
    intake.take_in(wordy("p", "a"))
    assert not intake.take_in(wordy("p", "a", node="n"))
    assert not len(intake)
    intake.take_in(wordy("p", "a"))
    intake.take_in(wordy("q", "a"))
    assert intake.list_missing({"a/q"}, "evenkeel") == ["a/p"]
    assert intake.list_missing({"a/q"}, "another") == []
    intake.drop("a/p")
    assert intake.pop_next().pod.metadata.name == "q"


def flip_labels(engine: Engine) -> None:
    """A pod gets labels of its own again and again, beside hundreds of budgets that may cover it."""
    engine.decide(100.0, Unlimited())
    for i in range(300):
        other = wire.Expression(key="a", operator="NotIn", values=[str(i)])
        selector = wire.LabelSelector(match_expressions=[other])
        engine.handle(events.Seen(make.budget(f"b{i}", selector, namespace="busy")), 100.0)
    for i in range(20):
        pod = make.pod(name="v", namespace="busy", node="n", labels={"a": f"x{i}"})
        engine.handle(events.Seen(pod), 100.0)
        for _ in range(400):
            engine.decide(100.0, Unlimited())


def come_and_go(engine: Engine) -> None:
    """What an ordinary tenant does: a budget, and pods with labels of their own that come and go."""
    engine.decide(100.0, Unlimited())
    selector = wire.LabelSelector(match_labels={"app": "web"})
    engine.handle(events.Seen(make.budget("web", selector, namespace="busy")), 100.0)
    for i in range(300):
        labels = {"app": "web", "index": str(i)}
        pod = make.pod(name=f"v{i}", namespace="busy", node="n", labels=labels)
        engine.handle(events.Seen(pod), 100.0)
        for _ in range(3):
            engine.decide(100.0, Unlimited())
        engine.handle(events.Gone("Pod", f"busy/v{i}"), 100.0)


@pytest.mark.parametrize(
    ("cause_work", "is_shared", "order"),
    [
        (lambda _: None, True, ["busy", "quiet"]),
        (come_and_go, True, ["busy", "quiet"]),
        (flip_labels, True, ["quiet", "busy"]),
        (flip_labels, False, ["busy", "quiet"]),
    ],
)
def test_a_namespace_pays_for_work_on_its_budgets_by_its_amount(
    cause_work: Callable[[Engine], None], *, is_shared: bool, order: list[str]
) -> None:
    engine = Engine(Config(), pace=Pace(help=0.0, explain=1e9), is_shared=is_shared)
    node = make.node(name="n", cpu=16, pods=1000)
    engine.handle(events.Seen(node), 0.0)
    cause_work(engine)
    for namespace in ("busy", "quiet"):
        pod = make.pod(name="p", namespace=namespace, cpu=1)
        engine.handle(events.Seen(pod), 100.0)
    binds = engine.decide(100.0, Unlimited()).binds
    assert [bind.uid.split("/")[0] for bind in binds] == order
