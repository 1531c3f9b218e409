"""What claims get, in a form in which both sides' can be compared."""

from __future__ import annotations

from typing import Any

from tests.oracles import quantities

Json = dict[str, Any]


def normal(allocation: Json) -> Json:
    """An allocation with amounts as numbers, without its time, and without ids that are drawn by lot."""
    found = {key: value for key, value in allocation.items() if key != "allocationTimestamp"}
    results = [_result(one) for one in allocation["devices"].get("results") or ()]
    return found | {"devices": allocation["devices"] | {"results": results}}


def _result(one: Json) -> Json:
    found = {key: value for key, value in one.items() if value not in (None, False, [])}
    if "shareID" in one:
        found["shareID"] = "share"
    if "consumedCapacity" in one:
        found["consumedCapacity"] = {
            key: str(quantities.exact(str(value))) for key, value in one["consumedCapacity"].items()
        }
    return found
