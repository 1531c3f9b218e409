"""What kind of world a seed makes: how crowded, how slow, which mishaps and faults, and how often.

Swarm testing: a world that knows only a few kinds of trouble, and those often, finds more than one
where everything goes wrong a little.
"""

import random
from dataclasses import dataclass, replace
from typing import Any

from tests.model import workloads
from tests.virtual.network import Faults

MISHAPS = (
    "nothing_happens",
    "cordons_change",
    "watches_break",
    "history_is_compacted",
    "replica_is_killed",
    "replica_is_stopped",
    "replica_is_paused",
    "start_replica",
)


# What a pod of each kind asks.
SHAPES: dict[str, dict[str, Any]] = {
    "exclusive": {"gpu": 1},
    **{
        kind: workloads.PODS[kind]
        for kind in ("two-shared", "thirds", "no-cores", "two-containers", "init-only")
    },
    "plain": {"cpu": "1400m"},
    "fat": {"cpu": "2500m"},
    "most": {"gpu": 1, "gpumem": 9000, "gpucores": 60},
    "half": {"gpu": 1, "gpumem_percent": 50, "gpucores": 50},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Climate:
    """Everything about a world that stays.

    Attributes:
        slowness: see ``Clock``; in turns of about a second each.
        calm, storm: faults in turns of about ``storm_seconds`` each.
        mishaps: weights of what happens every ``mishap_seconds`` or so.
        churn_seconds: mean time between pods that come.
        life_seconds: mean time that a pod keeps its cards.
        pause_seconds: a pause lasts at most that long.
        foreign_nodes: which nodes another scheduler allocates on, as the setting says.
        has_lease: whether replicas are led by a lease; without one there may be one replica only.
        plugin: how often the device plugin answers success and failure; else it never does.
    """

    replicas: int
    nodes: int
    kinds: int
    slowness: float
    calm: Faults
    storm: Faults
    storm_seconds: float
    mishaps: dict[str, int]
    mishap_seconds: float
    churn_seconds: float
    life_seconds: float
    pause_seconds: float
    plugin: tuple[float, float]
    plugin_seconds: float
    lock_timeout_seconds: float
    has_lease: bool = True
    foreign_nodes: str = ""


def of(rng: random.Random) -> Climate:
    """Any climate, or one of those in which leaders change hands with news or writes under way."""
    climate = _anything(rng)
    change = rng.choice((_nothing_more, _handovers, _handovers, _long_pauses, _late_writes))
    return change(rng, climate)


def quiet(**changes: Any) -> Climate:
    """Nothing happens by itself: for worlds in which a test says what does."""
    climate = Climate(
        replicas=2, nodes=1, kinds=1, slowness=0.0, calm=Faults(), storm=Faults(),
        storm_seconds=1e9, mishaps={"nothing_happens": 1}, mishap_seconds=1e9, churn_seconds=1e9,
        life_seconds=1e9, pause_seconds=0.0, plugin=(1.0, 0.0), plugin_seconds=0.02,
        lock_timeout_seconds=60.0,
    )  # fmt: skip
    return replace(climate, **changes)


def _anything(rng: random.Random) -> Climate:
    # Late news are no fault: they are there in calm and storm.
    calm = Faults(
        news_seconds=rng.choice((0.02, 0.5, 4.0)),
        lag=rng.choice((0.0, 0.1, 0.5)),
        lag_seconds=rng.choice((1.0, 10.0, 45.0)),
    )
    often = (0.0, 0.05, 0.2, 0.5)
    storm = replace(
        calm,
        seconds=rng.choice((0.002, 0.05, 0.3)),
        refused=rng.choice(often),
        lost=rng.choice(often),
        late=rng.choice((0.0, 0.2, 0.5)),
        late_seconds=rng.choice((5.0, 30.0, 120.0)),
        slow=rng.choice(often),
        slow_seconds=rng.choice((1.0, 8.0, 40.0)),
    )
    return Climate(
        replicas=rng.choice((1, 2)),
        nodes=rng.choice((1, 1, 2, 3)),
        kinds=rng.choice((1, 2, 4)),
        slowness=rng.choice((0.0, 0.1, 0.9)),
        calm=calm,
        storm=storm,
        storm_seconds=rng.choice((2.0, 6.0, 20.0)),
        mishaps={mishap: rng.choice((0, 0, 1, 4)) for mishap in MISHAPS} | {"nothing_happens": 1},
        mishap_seconds=rng.choice((3.0, 6.0, 12.0)),
        churn_seconds=rng.choice((0.5, 2.0)),
        life_seconds=rng.choice((3.0, 10.0, 30.0)),
        pause_seconds=rng.choice((3.0, 40.0)),
        plugin=rng.choice(((1.0, 0.0), (1.0, 0.0), (0.85, 0.1))),
        plugin_seconds=rng.choice((0.02, 0.3, 1.0)),
        lock_timeout_seconds=rng.choice((15.0, 60.0)),
    )


def _nothing_more(_: random.Random, climate: Climate) -> Climate:
    return climate


def _handovers(rng: random.Random, climate: Climate) -> Climate:
    """A leader gives the lease back, and the next has old news; sometimes a list of it under way."""
    faults = replace(
        climate.calm,
        seconds=rng.choice((0.002, 0.02)),
        slow_lists=rng.choice((0.0, 0.5)),
        slow_seconds=6.0,
        news_seconds=rng.choice((0.5, 2.0)),
        lag=0.3,
        lag_seconds=8.0,
    )
    return replace(
        climate,
        replicas=2,
        nodes=rng.choice((1, 2)),
        slowness=rng.choice((0.0, 0.9)),
        calm=faults,
        storm=faults,
        mishaps={"replica_is_stopped": 3, "history_is_compacted": rng.choice((0, 3))},
        mishap_seconds=4.0,
        churn_seconds=0.5,
        life_seconds=rng.choice((3.0, 10.0)),
        plugin=(1.0, 0.0),
        plugin_seconds=0.02,
    )


def _long_pauses(rng: random.Random, climate: Climate) -> Climate:
    """A leader sleeps through its lease in the middle of a write, and its successor acts."""
    faults = replace(
        climate.calm, seconds=rng.choice((0.05, 0.3)), news_seconds=0.5, lag=0.0, lost=0.05,
        late=rng.choice((0.0, 0.2)), late_seconds=120.0,
    )  # fmt: skip
    return replace(
        climate,
        replicas=2,
        nodes=rng.choice((1, 2)),
        calm=faults,
        storm=faults,
        mishaps={"replica_is_paused": 3, "replica_is_stopped": rng.choice((0, 1))},
        mishap_seconds=10.0,
        churn_seconds=0.5,
        life_seconds=rng.choice((5.0, 20.0)),
        pause_seconds=40.0,
        plugin=(1.0, 0.0),
        plugin_seconds=0.02,
    )


def _late_writes(rng: random.Random, climate: Climate) -> Climate:
    """Leaders die in the middle of their binds, and what they sent lands when others lead."""
    faults = replace(
        climate.calm, seconds=0.02, news_seconds=0.5, lag=0.0, late=rng.choice((0.2, 0.5)),
        late_seconds=rng.choice((60.0, 600.0)),
    )  # fmt: skip
    return replace(
        climate,
        replicas=2,
        nodes=1,
        slowness=0.0,
        calm=replace(faults, late=0.0),
        storm=faults,
        storm_seconds=6.0,
        mishaps={"replica_is_killed": 3, "replica_is_stopped": rng.choice((0, 1)), "nothing_happens": 4},
        mishap_seconds=4.0,
        churn_seconds=0.5,
        life_seconds=rng.choice((3.0, 30.0)),
        plugin=(1.0, 0.0),
        plugin_seconds=0.02,
    )  # fmt: skip
