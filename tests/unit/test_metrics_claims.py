"""Metrics of devices of ResourceSlices, of their pools, and of ResourceClaims."""

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api.claims import objects
from scheduler.api.door.events import Seen
from scheduler.engine.engine import Engine
from scheduler.engine.questions.claims import CountedClaims
from scheduler.measure.claimed import CLAIMS, STATES, ClaimFigures
from scheduler.schema import devices as d
from tests import make, slices
from tests.model import allocator_worlds, claim_worlds
from tests.operator import devices
from tests.unit.claim_objects import CLASS, OLD, claim, node_of, pod_of, used
from tests.unit.metrics_replica import Replica, of
from tests.unit.test_explain_claims import pool_with_counters

Json = dict[str, Any]


def see(replica: Replica, *found: Json) -> None:
    kinds = {**objects.KINDS, "Pod": type(make.pod()), "Node": type(make.node())}
    for one in found:
        replica.engine.handle(Seen(msgspec.convert(one, kinds[one["kind"]])), replica.now)


async def test_devices_are_counted_by_driver_and_class_and_claims_by_who_has_them() -> None:
    replica = Replica()
    see(
        replica, CLASS, *pool_with_counters(), *node_of("n1", devices.device("gpu-0", taints=OLD), devices.device("gpu-1")),
        used("taken", "n0", "half", "r"), used("left", "n1", "gpu-1"), claim("mine"), pod_of("r", "taken", node="n0"),
    )  # fmt: skip
    replica.decide()
    await replica.measure()
    found = await replica.scrape()
    counts = {"allocated": 2, "free": 1, "tainted": 1, "blocked": 1}
    for state, n in counts.items():
        assert of(found, "evenkeel_devices", driver=devices.DRIVER, state=state) == n
        assert of(found, "evenkeel_class_devices", **{"class": "gpu"}, state=state) == n
    for state, n in {"reserved": 1, "unreserved": 1, "waiting": 1}.items():
        assert of(found, "evenkeel_resource_claims", state=state) == n
    for state, n in {"whole": 2, "incomplete": 0, "invalid": 0}.items():
        assert of(found, "evenkeel_device_pools", driver=devices.DRIVER, state=state) == n


async def test_pools_that_are_not_whole_are_counted_and_their_devices_are_not() -> None:
    replica = Replica()
    pool = {"name": "n0", "generation": 1, "resourceSliceCount": 2}
    twins = [devices.device("gpu-0"), devices.device("gpu-0")]
    see(replica, *node_of("n0", devices.device("gpu-0"), pool=pool), *node_of("n1", *twins))
    replica.decide()
    await replica.measure()
    found = await replica.scrape()
    for state, n in {"whole": 0, "incomplete": 1, "invalid": 1}.items():
        assert of(found, "evenkeel_device_pools", driver=devices.DRIVER, state=state) == n
    assert not [one for one in found if one[0] == "evenkeel_devices"]


def take(engine: Engine) -> ClaimFigures:
    steps = engine.ask(CountedClaims())
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: ClaimFigures = end.value
            return found


def list_rows(engine: Engine) -> Sequence[int]:
    """The devices that the only node can use, one by one."""
    columns = engine._inside.cluster.claims.table.columns
    first, n = columns.spans_of[:, 0].tolist()
    return [
        row
        for start, count in columns.spans[first : first + n].tolist()
        for row in range(start, start + count)
    ]


def name_state(engine: Engine, row: int) -> str:
    table = engine._inside.cluster.claims.table
    columns = table.columns
    if columns.owners[row] or columns.sharers[row]:
        return "allocated"
    if table.kinds.table.values[columns.kind[row]].taints:
        return "tainted"
    for in_set, pattern in d.DRAWS:
        if columns.draws[in_set, row] >= 0:
            base = columns.sets[d.SET_FIRST, columns.draws[in_set, row]]
            first, n = columns.patterns[:2, columns.draws[pattern, row]].tolist()
            for place, amount in columns.pattern[first : first + n].tolist():
                total, drawn = columns.counters[:, base + place].tolist()
                if amount > total - drawn:
                    return "blocked"
    return "free"


@given(st.integers(0, 2**30))
@settings(max_examples=slices.count_examples(200), deadline=None)
def test_counts_are_those_of_the_devices_one_by_one(seed: int) -> None:
    engine = claim_worlds.make_engine(allocator_worlds.draw(seed))
    claims = engine._inside.cluster.claims
    found, states = take(engine), dict[str, list[str]]()
    for row in set(list_rows(engine)):
        driver = claims.table.find_key(row).driver
        states.setdefault(driver, []).append(name_state(engine, row))
    assert found.devices == {
        driver: tuple(some.count(one) for one in STATES) for driver, some in states.items()
    }
    assert sum(found.claims) == len(claims.claims)
    assert found.claims[CLAIMS.index("waiting")] == sum(
        claims.find_given(key) is None for key in claims.claims
    )
