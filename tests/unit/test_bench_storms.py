"""The storm of the bench: what waits waits whatever blows, and what fits is bound."""

import itertools

import pytest

from bench.storms import weather
from bench.storms.alone import Storm


@pytest.mark.parametrize("alike", [True, False])
def test_no_change_of_a_storm_helps_a_pod_that_waits_and_pods_that_fit_are_bound(
    *, alike: bool
) -> None:
    n_nodes, n_pods = 12, 200
    storm = Storm(n_nodes)
    for i in range(n_pods):
        storm.see(weather.waiting(i, alike=alike))
    storm.turn_until_quiet()
    pending = storm.engine._pending
    assert len(pending.parked) == n_pods
    # Every node in all its turns, twice.
    for n, patch in enumerate(itertools.islice(weather.changes(n_nodes), 8 * n_nodes)):
        storm.change(patch)
        if n % 8 == 0:
            storm.see(weather.fitting(n))
        storm.turn_until_quiet()
        assert len(pending) == len(pending.parked) == n_pods


def test_figures_of_a_storm_count_who_was_never_bound() -> None:
    found = weather.figures([0.2, 0.1, 0.4, 0.3], never_bound=1)
    assert (found["fitting"], found["never_bound"]) == (5, 1)
    assert (found["p50_seconds"], found["p99_seconds"], found["longest_seconds"]) == (0.3, 0.4, 0.4)
