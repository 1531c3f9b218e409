"""What parts of cards are worth to the demand, beside the program written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.devices.mig_models import CUT_MODELS
from scheduler.modes import part_prices
from scheduler.state.carvings import CarvingTable
from tests import slices
from tests.oracles import mig as twin

MODELS = tuple(CUT_MODELS)


def read_profiles(model: str) -> tuple[twin.Profile, ...]:
    places: dict[tuple[str, int, int], list[tuple[int, int]]] = {}
    for part in CUT_MODELS[model].parts:
        key = part.profile, part.mib, part.slices
        places.setdefault(key, []).append((part.start, part.size))
    return tuple(twin.Profile(*key, tuple(there)) for key, there in places.items())


def compute_prices(model: str, counts: list[float]) -> tuple[np.ndarray, CarvingTable, int]:
    carvings = CarvingTable()
    v = carvings.number_parts(CUT_MODELS[model].parts)
    found = part_prices.compute_prices(
        carvings.sets[v],
        carvings.sizes_of_parts[v],
        np.array(counts),
        carvings.fitting[v].shape[1],
    )
    return found, carvings, v


@settings(max_examples=slices.count_examples(60), deadline=None)
@given(st.sampled_from(MODELS), st.data())
def test_the_prices_are_those_of_the_fewest_cards(model: str, data: st.DataObject) -> None:
    profiles = read_profiles(model)
    n = len({one.mib for one in profiles})
    counts = data.draw(
        st.lists(st.integers(0, 9).map(float), min_size=n, max_size=n).filter(any), "counts"
    )
    prices, _, _ = compute_prices(model, counts)
    # Weak duality: no pattern is worth more than a card; and as many cards are needed as the demand is worth.
    assert max(np.dot(one, prices) for one in twin.list_patterns(profiles, frozenset())) <= 1.001
    assert np.dot(counts, prices) == pytest.approx(
        twin.compute_fewest_cards(profiles, counts), rel=1e-3
    )
    assert all(price == 0 for price, count in zip(prices, counts, strict=True) if not count)


@settings(max_examples=slices.count_examples(60), deadline=None)
@given(st.sampled_from(MODELS), st.data())
def test_the_room_is_the_most_that_the_prices_give(model: str, data: st.DataObject) -> None:
    profiles = read_profiles(model)
    n = len({one.mib for one in profiles})
    counts = data.draw(st.lists(st.integers(0, 9).map(float), min_size=n, max_size=n).filter(any))
    prices, carvings, v = compute_prices(model, counts)
    room = part_prices.compute_room(
        carvings.sets[v], carvings.sizes_of_parts[v], prices, carvings.fitting[v].shape[1]
    )
    used = data.draw(st.sets(st.integers(0, 7)))
    most = max(np.dot(one, prices) for one in twin.list_patterns(profiles, frozenset(used)))
    assert room[sum(1 << slot for slot in used)] == pytest.approx(1000 * most, abs=0.1)


def test_a_rest_that_no_pods_fill_is_worth_nothing() -> None:
    """Two instances of three slices fill a card as far as pods of three and of seven slices go."""
    prices, carvings, v = compute_prices("A100-80GB", [0, 0, 5, 5])
    assert len(carvings.sizes[v]) == 4
    assert prices.tolist() == pytest.approx([0, 0, 0.5, 1])
