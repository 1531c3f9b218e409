"""There is one order of those that wait, and another one is followed wherever those that wait are looked at."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from scheduler.config import Config
from scheduler.state.cluster import Cluster
from scheduler.state.entities import AnyEntity
from scheduler.state.pods import PodRecord
from scheduler.waiting.looks import Looks
from scheduler.waiting.orders import First
from scheduler.waiting.pending import Pending
from tests import make


class Youngest:
    """Who came last comes first."""

    def find_place(self, entity: AnyEntity) -> tuple[Any, ...]:
        return (-entity.order,)

    def find_lane(self, _: AnyEntity) -> str:
        return ""

    def pick_lane(self, firsts: Mapping[str, First]) -> str:
        return min(firsts, key=lambda lane: firsts[lane].place)

    def goes_alone(self, _: AnyEntity) -> bool:
        return False

    def pay_cost(self, namespace: str, cost: float) -> None:
        """Nobody pays."""

    def fade_debts(self, now: float) -> None:
        """Nothing is remembered."""


class Fair(Youngest):
    """The namespace that has paid least comes first, whatever else is."""

    def __init__(self) -> None:
        self.paid: Counter[str] = Counter()

    def find_lane(self, entity: AnyEntity) -> str:
        return entity.namespace

    def pick_lane(self, firsts: Mapping[str, First]) -> str:
        return min(firsts, key=lambda lane: (self.paid[lane], lane))

    def pay_cost(self, namespace: str, cost: float) -> None:
        self.paid[namespace] += int(cost)


def waiting(cluster: Cluster, name: str, namespace: str = "default", **more: Any) -> PodRecord:
    record = cluster.see_pod(make.pod(name=name, namespace=namespace, **more))
    assert record is not None
    return record


def test_another_order_is_followed_everywhere() -> None:
    """Turns, the list of those that are active, kinds that are looked at, and kinds that may take others' place."""
    cluster, pending = Cluster(), Pending(Config(), order=Youngest())
    pods = [waiting(cluster, f"p{i}", priority=9 - i, cpu=str(i + 1)) for i in range(4)]
    for pod in pods:
        pending.offer(pod, 0.0)
    backwards = [pod.uid for pod in reversed(pods)]
    assert [pod.uid for pod in pending.list_active()] == backwards
    batch = pending.pop(9, 0.0)
    assert [one.uid for one in batch] == backwards
    # In the order in which they came: what follows is not the order in which they are parked.
    for pod in pods:
        pending.park_pod(pod.uid, 0.0, pod.uid)
    looks = Looks(pending.parked.find_place)
    for kind in pending.parked.list_kinds():
        looks.note_kind(kind, None)
    assert [looks.take()[0] for _ in pods] == backwards
    assert pending.parked.list_takers(lambda one: one > 0) == backwards


def test_lanes_overtake_each_other_as_work_is_paid_for() -> None:
    cluster, pending = Cluster(), Pending(Config(), order=Fair())
    for namespace, n in (("a", 3), ("b", 2)):
        for i in range(n):
            pending.offer(waiting(cluster, f"{i}", namespace, cpu=str(i + 1)), 0.0)
    batch = pending.pop(9, 0.0, lambda pod: 3 if pod.namespace == "b" else 1, 99)
    assert [one.uid for one in batch] == ["a/2", "b/1", "a/1", "a/0", "b/0"]


def test_an_order_may_change_its_mind_about_a_lane() -> None:
    """Who stood in it moves when it is met, and stands where it belongs there."""
    order = Fair()
    cluster, pending = Cluster(), Pending(Config(), order=order)
    for name in ("x", "y", "z"):
        pending.offer(waiting(cluster, name), 0.0)
    order.find_lane = lambda entity: entity.uid[-1]  # type: ignore[method-assign]
    order.paid.update({"x": 1, "y": 0, "z": 2})
    assert [one.uid[-1] for one in pending.pop(9, 0.0)] == ["y", "x", "z"]
