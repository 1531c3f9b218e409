"""``evenkeel explain group`` says by when a group fits, or why no room is promised to it."""

from typing import Any

import pytest

from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.explain import groups
from scheduler.explain.scene import Scene
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.reading.kinds import ObjectKey
from scheduler.simulate.situation import prepare
from tests.unit.test_explain_groups import answer, member, members, native, page, racks
from tests.unit.test_simulate_what_if import pod

Json = dict[str, Any]


def test_a_group_is_told_by_when_it_fits_and_who_comes_before_it() -> None:
    """Both nodes of one rack are taken until ten past and a quarter past twelve; those of the other for ever."""
    objects = [*racks(2, 2), native("train", 2), *members(2)]
    for name, run in (("r0-0", "10m"), ("r0-1", "15m"), ("r1-0", ""), ("r1-1", "")):
        taken = pod(f"on-{name}", cpu=4, node=name)
        taken["status"] = {"phase": "Running", "startTime": "2026-01-02T12:00:00Z"}
        taken["metadata"]["annotations"] = {"evenkeel.dev/run-time": run} if run else {}
        objects.append(taken)
    later = answer("default/train", objects=objects)["later"]
    assert later == {
        "at": "2026-01-02T12:15:00Z",
        "domain": {"label": "rack", "values": ["r0"]},
        "nodes": ["r0-0", "r0-1"],
        "ahead": [],
    }
    text = page("default/train", objects)
    assert "It fits by 2026-01-02T12:15:00Z in rack r0, on r0-0, r0-1." in text
    assert "It is the first group in the queue, so this room is promised to it." in text
    first = native("first", 2)
    first["spec"]["priority"] = 5
    before = [member(f"f{i}", "first") for i in range(2)]
    for one in before:
        one["spec"]["priority"] = 5
    later = answer("default/train", objects=[*objects, first, *before])["later"]
    assert later["ahead"] == ["PodGroup default/first"]


def end_after(run: str, nodes: list[Json]) -> list[Json]:
    """A pod on each node that fills it, has run since noon, and says for how long it runs; empty: it does not say."""
    taken = []
    for one in nodes:
        name = one["metadata"]["name"]
        body = pod(f"on-{name}", cpu=4, node=name)
        body["status"] = {"phase": "Running", "startTime": "2026-01-02T12:00:00Z"}
        body["metadata"]["annotations"] = {"evenkeel.dev/run-time": run} if run else {}
        taken.append(body)
    return taken


@pytest.mark.parametrize(
    ("run", "sizes", "minimum", "cause", "text"),
    [
        ("", (2, 2), 2, "unknown", "It is unknown when it fits: too few pods say how long they run."),
        ("1h", (2,), 2, "nodes", "By what pods say it fits by 2026-01-02T13:00:00Z, on 2 nodes of 2. No group is promised so many nodes (`groups.promisedPercent`)."),
        ("48h", (2, 2), 2, "too late", "By what pods say it fits by 2026-01-04T12:00:00Z, on 2 nodes. That is later than in a day, and no room is promised for so late a time."),
        ("1h", (2, 2), 3, "never", "It would not fit even if all pods on the nodes had ended."),
    ],
)  # fmt: skip
def test_a_group_that_is_promised_no_room_is_told_why(
    run: str, sizes: tuple[int, ...], minimum: int, cause: str, text: str
) -> None:
    nodes = racks(*sizes)
    objects = [*nodes, *end_after(run, nodes), native("train", minimum), *members(minimum)]
    found = answer("default/train", objects=objects)
    assert (found["later"], found["noLater"]) == (None, {"cause": cause, "text": text})
    assert text in page("default/train", objects)


def test_the_first_time_counts_at_which_a_group_would_fit() -> None:
    """The nodes of one rack are free after two days, those of the other after three."""
    nodes = racks(2, 2)
    taken = [*end_after("72h", nodes[:2]), *end_after("48h", nodes[2:])]
    found = answer("train", objects=[*nodes, *taken, native("train", 2), *members(2)])
    assert "it fits by 2026-01-04T12:00:00Z, on 2 nodes" in found["noLater"]["text"]


def test_a_group_of_kube_scheduler_is_promised_nothing() -> None:
    nodes = racks(2, 2)
    objects = [*nodes, *end_after("1h", nodes), native("train", 2), *members(2)]
    config = Config(placement=Placement(mode=Mode.KUBE_SCHEDULER))
    scene = Scene(prepare(objects, Changes(), strict=True), config, is_live=False)
    found = groups.explain_group(ObjectKey("Group", "default", "train"), scene)
    assert (found["later"], found["noLater"]["cause"]) == (None, "kube-scheduler")


def test_a_group_for_which_pods_are_leaving_is_promised_nothing_else() -> None:
    nodes = racks(2)
    leaving, waiting = end_after("", nodes), members(2)
    for victim, one, body in zip(leaving, nodes, waiting, strict=True):
        victim["metadata"]["deletionTimestamp"] = "2026-01-02T12:30:00Z"
        body["status"] = {"nominatedNodeName": one["metadata"]["name"]}
    found = answer("train", objects=[*nodes, *leaving, native("train", 2), *waiting])
    assert (found["later"], found["noLater"]) == (
        None,
        {"cause": "leaving", "text": "Pods are leaving to make room for it."},
    )
