"""What is the same of two allocations, and which differences about ResourceClaims are known."""

from typing import Any

import pytest

from tests.differential import allocations, known
from tests.differential.compare import Difference

Json = dict[str, Any]
FAILS = 'error: running "DynamicResources" filter plugin: '


def allocation(amount: str, **more: Any) -> Json:
    result = {"request": "r", "driver": "d", "pool": "p", "device": "x", "shareID": "1"} | more
    return {"devices": {"results": [result | {"consumedCapacity": {"memory": amount}}]}}


def world(request: Json, *others: Json) -> list[Json]:
    """A pod, last, with a claim of this request."""
    meta = {"namespace": "a", "name": "c"}
    claim = {
        "kind": "ResourceClaim",
        "metadata": meta,
        "spec": {"devices": {"requests": [request]}},
    }
    pod = {
        "kind": "Pod",
        "metadata": meta,
        "spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]},
    }
    return [*others, claim, pod]


PLAIN = world({"name": "r", "exactly": {}})


def test_amounts_are_compared_as_numbers_and_what_is_drawn_by_lot_is_not() -> None:
    timed = allocation("1Ki", shareID="2") | {"allocationTimestamp": "2026-01-01T00:00:00Z"}
    assert allocations.normal(timed) == allocations.normal(allocation("1024"))
    assert allocations.normal(timed) != allocations.normal(allocation("1025"))
    assert allocations.normal(timed) != allocations.normal(allocation("1Ki", device="y"))


def test_amounts_that_are_rounded_up_are_known() -> None:
    def is_known(theirs: str, ours: str, **more: Any) -> bool:
        both = (
            {"c": allocations.normal(one)} for one in (allocation(theirs), allocation(ours, **more))
        )
        return known.reason(Difference("allocation", *both), PLAIN) is not None

    assert is_known("1", "600m")
    assert not is_known("2", "600m")
    assert not is_known("600m", "1")
    assert not is_known("1", "600m", device="y")


@pytest.mark.parametrize(
    ("theirs", "is_known"),
    [
        (f"{FAILS}claim a/c: selector #0 on device d/p/x: CEL runtime error: no such key: k", True),
        (f"{FAILS}claim a/c, request r: cannot add device d/p/x because a claim constraint would not be satisfied", True),
        (f"{FAILS}claim a/c, request r: asks for all devices, but resource pool d/p is currently invalid", True),
        (f"{FAILS}something else", False),
    ],
)  # fmt: skip
def test_errors_that_end_an_attempt_are_known_by_their_texts(
    theirs: str, *, is_known: bool
) -> None:
    found = Difference("error", theirs, "0/1 nodes are available: 1 cannot allocate all claims.")
    assert (known.reason(found, PLAIN) is not None) == is_known
    assert known.reason(found._replace(what="message"), PLAIN) is None


def test_what_follows_from_counters_is_known_where_they_are_overdrawn_only() -> None:
    def drawing(total: str) -> list[Json]:
        pool = {"driver": "d", "pool": {"name": "p"}}
        used = {"counterSet": "s", "counters": {"units": {"value": "2"}}}
        given = {"name": "s", "counters": {"units": {"value": total}}}
        slices = (
            {"sharedCounters": [given]},
            {"devices": [{"name": "x", "consumesCounters": [used]}]},
        )
        status = {"allocation": allocation("1")}
        return [
            *({"kind": "ResourceSlice", "spec": pool | one} for one in slices),
            {
                "kind": "ResourceClaim",
                "metadata": {"namespace": "b", "name": "c"},
                "status": status,
            },
        ]

    found = Difference("feasible", [], ["n"])
    assert known.reason(found, world({"name": "r", "exactly": {}}, *drawing("1"))) is not None
    assert known.reason(found, world({"name": "r", "exactly": {}}, *drawing("2"))) is None
