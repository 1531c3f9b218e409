"""Which domain keel tries first, and how it shares out pods within one: in numbers, against slow twins."""

from collections.abc import Iterable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scheduler.placing.groups import choosing
from scheduler.placing.groups.choosing import Around
from scheduler.placing.groups.within import find_lost_within

PLACES = st.lists(st.integers(0, 40), min_size=1, max_size=8)


def order(places: list[int], wanted: int, around: Around | None = None) -> list[int]:
    found: list[int] = choosing.order_domains(
        np.array(places), 1, wanted, around or Around()
    ).tolist()
    return found


def count_lost(free: int, taken: int, sizes: Iterable[int]) -> int:
    """The pods of the groups of each size that fit before, and not after."""
    lost = 0
    for size in sizes:
        lost += size * (free // size - (free - taken) // size)
    return lost


def count_domains(places: list[int], wanted: int) -> int:
    """How many domains are needed if the largest come first."""
    n = total = 0
    for room in sorted(places, reverse=True):
        if total >= wanted or not room:
            break
        n, total = n + 1, total + room
    return n


def test_a_gap_that_just_takes_a_group_comes_before_a_free_domain() -> None:
    assert order([16, 6, 4], 4) == [2, 1, 0]


def test_a_domain_that_keeps_room_for_a_large_group_comes_before_a_smaller_one() -> None:
    # Of 20 places, 4 are left over when 16 go to a large group; of 16 none are.
    assert order([16, 20], 4) == [1, 0]


def test_of_equal_racks_the_one_in_the_fuller_block_comes_first() -> None:
    assert order([8, 8], 8, Around([np.array([40, 12])])) == [1, 0]


def test_a_block_that_loses_a_group_larger_than_a_rack_comes_last() -> None:
    assert order([8, 8], 8, Around([np.array([32, 40])])) == [1, 0]


def test_of_two_blocks_the_one_comes_first_whose_racks_lose_least() -> None:
    lost = find_lost_within(np.array([8, 8, 10, 6]), np.array([0, 0, 1, 1]), n_domains=2, wanted=2)
    assert order([16, 16], 2, Around((), 10, lost)) == [1, 0]


def test_pods_are_shared_out_among_domains_that_lose_least_and_few() -> None:
    # 9 and 7 lose one group of eight less than 8 and 8 or 16 would.
    assert choosing.share_out(np.array([8, 8, 9, 7]), 16) == [(3, 7), (2, 9)]
    assert choosing.share_out(np.array([3, 3, 3]), 7) == [(0, 3), (1, 3), (2, 1)]
    assert choosing.share_out(np.array([3, 0]), 7) == [(0, 3)]


def test_what_a_block_loses_within_is_what_sharing_out_its_racks_would_lose() -> None:
    # 9 and 12 lose equally much for their size, so the larger is filled.
    racks = np.array([3, 9, 9, 12])
    assert choosing.share_out(racks, 18) == [(3, 12), (1, 6)]
    lost = find_lost_within(racks, np.zeros(4, np.int64), n_domains=1, wanted=18)
    assert lost.tolist() == [(12 + 12 + 8) + (6 + 8 + 8)]


@given(PLACES, st.integers(1, 100))
def test_pods_are_shared_out_among_as_few_domains_as_possible(
    places: list[int], wanted: int
) -> None:
    shares = choosing.share_out(np.array(places), wanted)
    assert sum(n for _, n in shares) == min(wanted, sum(places))
    assert all(0 < n <= places[number] for number, n in shares)
    assert len({number for number, _ in shares}) == len(shares)
    assert len(shares) == count_domains(places, wanted)


@given(PLACES, st.integers(1, 40))
def test_losses_are_counted_as_the_twin_counts_them(places: list[int], wanted: int) -> None:
    taken = [min(wanted, room) for room in places]
    sizes = [2**i for i in range(1, 7) if 2**i <= max(places)]
    got = choosing.count_lost(np.array(places), np.array(taken), np.array(sizes, np.int64))
    assert got.tolist() == [count_lost(f, t, sizes) for f, t in zip(places, taken, strict=True)]
    assert choosing.list_sizes(1, max(places)).tolist() == sizes


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 2)), min_size=1, max_size=9), st.integers(1, 30))  # fmt: skip
def test_what_a_domain_loses_within_is_what_sharing_out_there_loses(
    inner: list[tuple[int, int]], wanted: int
) -> None:
    places, parent = np.array([one[0] for one in inner]), np.array([one[1] for one in inner])
    got = find_lost_within(places, parent, n_domains=3, wanted=wanted)
    sizes = [2**i for i in range(1, 7) if 2**i <= places.max()]
    for number in range(3):
        there = places[parent == number]
        if there.sum() < wanted:
            assert got[number] == 1 << 50
            continue
        shares = choosing.share_out(there, wanted)
        assert got[number] == sum(count_lost(int(there[at]), n, sizes) for at, n in shares)
