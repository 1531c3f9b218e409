"""Whatever somebody writes in a job with a queue, a simulation answers for all others."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scheduler.api import names
from scheduler.simulate import schedule
from tests.unit.test_simulate_queued import (
    JOBS,
    find_nodes,
    make_job,
    make_object,
    make_pod,
    make_world,
)

Json = dict[str, Any]
JUNK = st.one_of(
    st.none(), st.integers(-3, 3), st.text(max_size=3), st.booleans(), st.just([]), st.just({}),
    st.just([{}]), st.just([None]),
)  # fmt: skip


def list_places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places in an object."""
    items: list[tuple[Any, Any]] = []
    if isinstance(value, Mapping):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    return [
        one for key, inner in items for one in [(*place, key), *list_places(inner, (*place, key))]
    ]


@given(st.sampled_from([*JOBS, "Pod"]), st.data())
def test_whatever_is_written_in_a_job_the_others_go_on(kind: str, data: st.DataObject) -> None:
    wild = make_pod("wild", group="g", total=1) if kind == "Pod" else make_object(kind, "wild", copy.deepcopy(JOBS[kind]))  # fmt: skip
    wild["metadata"] |= {"annotations": {names.KUEUE_TOTAL: "1", names.KUEUE_REQUIRED: "rack"}}
    places = [one for one in list_places(wild) if one not in {("kind",), ("apiVersion",)}]
    for _ in range(data.draw(st.integers(1, 3))):
        found: Any = wild
        *under, key = data.draw(st.sampled_from(places))
        for step in under:
            inside = isinstance(found, Mapping) and step in found
            found = found[step] if inside or (isinstance(found, list) and step in range(len(found))) else None  # fmt: skip
        if isinstance(found, dict) or (isinstance(found, list) and key in range(len(found))):
            found[key] = copy.deepcopy(data.draw(JUNK))
    result = schedule([*make_world(8), make_job("good", 2), wild])
    assert find_nodes(result)["good"] != [None, None]


def test_a_part_without_a_name_starts_too() -> None:
    wild = make_object("JobSet", "wild", copy.deepcopy(JOBS["JobSet"]))
    wild["spec"]["replicatedJobs"][0]["name"] = ""
    found = schedule([*make_world(8), wild])
    assert None not in find_nodes(found)["wild"]
