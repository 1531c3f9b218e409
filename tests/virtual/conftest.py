"""Worlds that end with their test."""

import random
from collections.abc import Callable, Iterator

import pytest
import structlog

from scheduler.kernels import compiling
from scheduler.kube import heap, wall_clock
from tests.virtual.climate import Climate
from tests.virtual.world import World

Make = Callable[..., World]


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    """Compiling is no part of a world's time."""
    compiling.compile_kernels(lambda _: None)


@pytest.fixture(autouse=True)
def _no_memory_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour of a world has hundreds of trims, and each takes the longer the more other tests have left behind."""
    monkeypatch.setattr(heap, "_malloc_trim", None)


@pytest.fixture
def make_world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Worlds by seed and climate, on whose time the wall clocks go too."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    made: list[World] = []

    def make(seed: int, given: Climate | None = None) -> World:
        random.seed(seed)
        world = World(seed, given)
        monkeypatch.setattr(wall_clock, "now", world.clock.wall)
        made.append(world)
        return world

    yield make
    for world in made:
        world.close()
    structlog.configure(**before)
