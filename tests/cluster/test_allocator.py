"""Kubernetes' allocator of devices and its twin answer alike, and what is recorded of Kubernetes is still so."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.differential import allocator
from tests.oracles.allocator_results import normal

pytestmark = pytest.mark.usefixtures("dra_allocator")
# `python -m tests.differential.allocator` asks about thousands.
SEEDS = range(1_000_000, 1_000_150)


def test_the_twin_answers_as_kubernetes() -> None:
    became: Counter[str] = Counter()
    for seed, what, ours in allocator.compare(SEEDS):
        assert ours is None, (seed, what)
        became[what] += 1
    assert min(became["found"], became["none"]) > len(SEEDS) / 4


@pytest.mark.parametrize("name", [allocator.KUBERNETES, allocator.RANDOM])
def test_kubernetes_answers_as_it_is_recorded(name: str) -> None:
    cases = allocator.cases(name)
    for case, answer in zip(cases, allocator.ask([one["world"] for one in cases]), strict=True):
        assert answer["error"] == case.get("error", ""), case["name"]
        assert normal(answer["results"]) == normal(case["results"]), case["name"]
