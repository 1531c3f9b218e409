"""What a device takes of a set of counters costs what the set can give no more; a twin that tries everything knows what that is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scheduler.kernels.devices import device_costs
from scheduler.schema import devices as d
from scheduler.schema import empty
from scheduler.state.claims import layouts
from scheduler.state.claims.table import DeviceTable
from tests import slices
from tests.oracles import counter_rooms

Draw = tuple[int, ...]


def write_set(totals: Draw, draws: list[Draw]) -> tuple[DeviceTable, int, list[layouts.Pattern]]:
    """A table with one set of counters, on which a device draws by each of ``draws``."""
    table = DeviceTable()
    number = table.place_counters(tuple((f"c{i}", amount) for i, amount in enumerate(totals)))
    patterns = [tuple((i, a) for i, a in enumerate(draw) if a) for draw in draws]
    table.write_layout(number, patterns)
    return table, number, patterns


@st.composite
def draw_sets(draw: st.DrawFn) -> tuple[Draw, list[Draw]]:
    n = draw(st.integers(1, 3))
    totals = tuple(draw(st.integers(1, 4)) for _ in range(n))
    amounts = st.tuples(*(st.integers(0, most) for most in totals)).filter(any)
    return totals, draw(st.lists(amounts, min_size=1, max_size=4, unique=True))


@given(draw_sets())
@settings(max_examples=slices.count_examples(300), deadline=None)
def test_every_state_that_is_reached_has_the_room_that_trying_everything_finds(
    drawn: tuple[Draw, list[Draw]],
) -> None:
    totals, draws = drawn
    table, number, _ = write_set(totals, draws)
    columns = table.columns
    assert columns.sets[d.SET_LAYOUT, number] == 0
    reached = counter_rooms.list_reached(totals, draws)
    assert columns.room_keys.size == len(reached)
    assert (np.diff(columns.room_keys) > 0).all()
    first = int(columns.sets[d.SET_FIRST, number])
    for used in reached:
        columns.counters[d.USED, first : first + len(totals)] = used
        columns.sets[d.SET_KEY, number] = layouts.compute_key(tuple(enumerate(used)))
        at = device_costs._find_state(columns, number, -1)
        left = tuple(a - b for a, b in zip(totals, used, strict=True))
        assert at >= 0
        room = counter_rooms.measure_room(totals, left, draws)
        assert columns.rooms[d.ROOM, at] == pytest.approx(room)
        fitting = counter_rooms.measure_fitting(totals, left, draws)
        assert columns.rooms[d.FITTING, at] == pytest.approx(fitting)
        part = counter_rooms.find_part(totals, used, draws)
        assert columns.rooms[d.DRAWN, at] == pytest.approx(part)


@given(draw_sets(), st.data())
@settings(max_examples=slices.count_examples(200), deadline=None)
def test_a_device_loses_room_and_what_fits(
    drawn: tuple[Draw, list[Draw]], data: st.DataObject
) -> None:
    totals, draws = drawn
    table, number, patterns = write_set(totals, draws)
    columns = table.columns
    first = int(columns.sets[d.SET_FIRST, number])
    used = data.draw(st.sampled_from(sorted(counter_rooms.list_reached(totals, draws))))
    i = data.draw(st.integers(0, len(draws) - 1))
    left = tuple(a - b for a, b in zip(totals, used, strict=True))
    after = tuple(a - b for a, b in zip(left, draws[i], strict=True))
    assume(min(after) >= 0)
    columns.counters[d.USED, first : first + len(totals)] = used
    columns.sets[d.SET_KEY, number] = layouts.compute_key(tuple(enumerate(used)))
    columns.kind = np.zeros(64, np.int32)
    columns.shareable, columns.n_cells = np.zeros(1, np.bool_), np.zeros(1, np.int64)
    table.write_draws(0, [(number, patterns[i])])
    # All pods without claims share the empty one.
    ask = empty.make_claim_ask().replace(leaves=np.zeros((1, d.N_LEAF), np.int64))
    s = empty.make_claim_scratch(1, 1, len(totals))
    lost = counter_rooms.measure_room(totals, left, draws) - (
        rest := counter_rooms.measure_room(totals, after, draws)
    )
    lost += counter_rooms.measure_fitting(totals, left, draws)
    lost -= counter_rooms.measure_fitting(totals, after, draws)
    found = device_costs.find_loss(columns, ask, 0, 0, 1, s)
    assert found == pytest.approx(1000 * (3 * lost + 0.07 * rest))


def test_of_a_set_with_too_many_states_nothing_is_known() -> None:
    totals = (9,) * 6
    draws = [tuple(int(i == j) for j in range(6)) for i in range(6)]
    table, number, _ = write_set(totals, draws)
    assert table.columns.sets[d.SET_LAYOUT, number] == -1
    assert table.columns.room_keys.size == 0


def test_sets_that_are_alike_have_one_layout_and_there_are_not_too_many() -> None:
    table, known = DeviceTable(), []
    for total in range(1, layouts._LAYOUTS_MAX + 3):
        for _ in range(2):
            number = table.place_counters((("c", total),))
            table.write_layout(number, [((0, 1),)])
            known.append(int(table.columns.sets[d.SET_LAYOUT, number]))
    assert known[::2] == known[1::2]
    assert known[::2] == [*range(layouts._LAYOUTS_MAX), -1, -1]
