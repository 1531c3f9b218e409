"""A tally: what came is forgotten slowly, departures are a mean over arrivals, and shapes are bounded."""

import random

import msgspec
import pytest

from scheduler.state.structures import tally
from scheduler.state.structures.tally import Tally


def made(*shapes: str) -> Tally[str]:
    found: Tally[str] = Tally()
    for shape in shapes:
        found.note_arrival(shape)
    return found


def test_half_is_forgotten_after_a_half_life_of_others() -> None:
    found = made("old", *["new"] * tally.HALF_LIFE)
    assert found.list_counts()["old"] == pytest.approx(0.5, rel=1e-3)
    assert found.seen == tally.HALF_LIFE + 1


def test_counting_does_not_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "HALF_LIFE", 1)
    assert made(*["one"] * 2000).list_counts()["one"] == pytest.approx(2, rel=1e-9)


def test_shapes_are_bounded_and_the_rarest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "_SHAPES_MAX", 8)
    found = made(*["often"] * 5, *(f"odd-{i}" for i in range(50)))
    assert len(found.list_counts()) <= 8
    assert {"often", "odd-49"} <= found.list_counts().keys()
    assert found.seen == 55


def test_departures_are_an_average_until_a_thousand_came_and_fade_after_that() -> None:
    found = made()
    for _ in range(980):
        found.note_arrival("one")
        found.note_departure()
    told = found.departures
    assert told == pytest.approx(979 / 999)
    found.note_arrival("one")
    for i in range(1, 100):
        assert found.departures == pytest.approx((told * 0.999 + 0.001) * 0.999 ** (i - 1))
        found.note_arrival("one")


def test_a_thousand_that_leave_at_once_count_no_more_than_one_each() -> None:
    found = made("one")
    for _ in range(1000):
        found.note_departure()
    found.note_arrival("one")
    assert found.departures == 1.0


def test_what_was_there_before_anybody_watched_is_no_arrival() -> None:
    found = made()
    found.recall(0.8, 1000)
    for _ in range(50):
        found.note_arrival("one", listed=True)
    assert (found.departures, found.seen) == (0.8, 50)


def test_a_predecessors_departures_count_until_enough_was_watched() -> None:
    found = made()
    found.recall(0.5, 1000)
    for _ in range(1000):
        found.note_arrival("one")
    own = found.departures
    found.recall(0.9, 1000)
    assert found.departures == own


@pytest.mark.parametrize(("horizon", "taken"), [(0, 20), (25, 25), (5000, 1000)])
def test_what_is_recalled_is_within_bounds(horizon: int, taken: int) -> None:
    found = made()
    found.recall(7.0, horizon)
    assert (found.departures, found.horizon) == (1.0, taken)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_what_the_definitions_say(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "HALF_LIFE", 30)
    rng, found = random.Random(seed), made()
    came: list[str] = []
    mean, left, watched = 0.0, 0, 0
    for _ in range(1500):
        if rng.random() < 0.4:
            found.note_departure()
            left += 1
            continue
        listed = rng.random() < 0.2
        came.append(rng.choice("abc"))
        found.note_arrival(came[-1], listed=listed)
        if not listed:
            mean = min(1.0, mean + (left - mean) / min(1000, 20 + watched))
            left, watched = 0, watched + 1
    counts = dict.fromkeys(came, 0.0)
    for later, shape in enumerate(reversed(came)):
        counts[shape] += 2.0 ** (-later / 30)
    assert found.list_counts() == pytest.approx(counts)
    assert found.departures == pytest.approx(mean)
    assert found.seen == len(came)


def test_what_is_known_is_known_again_after_json() -> None:
    lived: Tally[tuple[str, int]] = Tally()
    for i in range(100):
        lived.note_arrival(("shape", i % 7), listed=i % 3 == 0)
        if i % 2:
            lived.note_departure()
    lived.note_departure()
    again: Tally[tuple[str, int]] = Tally()
    again.note_arrival(("other", 1))
    again.restore(msgspec.json.decode(msgspec.json.encode(lived.list_known())), tuple)
    assert again.list_known() == lived.list_known()
    for one in (lived, again):
        one.note_arrival(("shape", 1))
    assert again.list_counts() == lived.list_counts()
    assert again.departures == lived.departures
