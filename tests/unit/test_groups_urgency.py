"""Groups below their minimum come first, but no tenant can pass others again and again by that."""

from scheduler.api.door import events
from scheduler.api.groups.definitions import GroupKey
from scheduler.state.groups.urgency import Urgency
from tests import make
from tests.unit.test_backfill import Scene


class Clock:
    now = 0.0

    def tell(self) -> float:
        return self.now


def make_key(name: str, namespace: str = "default") -> GroupKey:
    return GroupKey("PodGroup", namespace, name)


def make_running(*names: str) -> tuple[Urgency, Clock]:
    """Groups that have their minimum of two pods."""
    clock = Clock()
    urgency = Urgency(clock.tell)
    urgency.end_start()
    for name in names:
        urgency.note_size(make_key(name), 0, 2)
    return urgency, clock


def test_a_group_that_has_lost_a_pod_is_urgent_until_it_has_it_back() -> None:
    urgency, _ = make_running("a")
    urgency.note_size(make_key("a"), 1, 1)
    assert urgency.is_urgent(make_key("a"))
    # The minimum was raised meanwhile.
    urgency.note_size(make_key("a"), 3, 2)
    assert not urgency.is_urgent(make_key("a"))


def test_two_groups_of_a_namespace_are_urgent_within_an_hour() -> None:
    urgency, clock = make_running("a", "b", "c")
    for name in "abc":
        urgency.note_size(make_key(name), 1, 1)
    urgency.note_size(make_key("d", "other"), 0, 2)
    urgency.note_size(make_key("d", "other"), 1, 1)
    assert [urgency.is_urgent(make_key(name)) for name in "abc"] == [True, True, False]
    assert urgency.is_urgent(make_key("d", "other"))
    for name in "ab":
        urgency.note_size(make_key(name), 0, 2)
    assert not urgency.is_urgent(make_key("c"))
    clock.now = 3601.0
    assert urgency.is_urgent(make_key("c"))


def test_a_group_whose_minimum_is_raised_is_not_urgent() -> None:
    urgency, _ = make_running("a")
    urgency.note_size(make_key("a"), 5, 2)
    assert not urgency.is_urgent(make_key("a"))
    # Nor is one whose running pods become a group.
    urgency.note_size(make_key("new"), 5, 2)
    assert not urgency.is_urgent(make_key("new"))


def test_what_the_scheduler_cut_short_is_urgent_until_it_is_whole() -> None:
    urgency, _ = make_running()
    urgency.note_cut(make_key("a"))
    urgency.note_size(make_key("a"), 1, 1)
    assert urgency.is_urgent(make_key("a"))
    urgency.note_size(make_key("a"), 0, 2)
    urgency.note_size(make_key("a"), 2, 2)
    assert not urgency.is_urgent(make_key("a"))
    found = Urgency(Clock().tell)
    found.note_size(make_key("a"), 1, 1)
    found.end_start()
    assert found.is_urgent(make_key("a"))


def test_a_group_that_raises_its_minimum_leaves_the_promised_room_free() -> None:
    scene = Scene(n_nodes=2)
    scene.add("a", run=100, node="n0")
    scene.add("b", run=200, node="n1", cpu=3)
    scene.engine.handle(events.Seen(make.pod_group("evil", 1)), scene.now)
    scene.add("evil-0", 1, gang="evil")
    assert scene.decide() == {"evil-0": "n1"}
    scene.add_gang(n=1, cpu=4)
    scene.decide(1)
    assert scene.find_promise() == (100.0, ["n0"])
    scene.engine.handle(events.Seen(make.pod_group("evil", 2)), scene.now)
    scene.add("evil-1", 2, gang="evil", created=5)
    scene.end("a")
    assert scene.decide(50) == {"gang-0": "n0"}
