"""When workloads start that wait: by hand, and against a slow twin."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api import names
from scheduler.api.queues import configuration
from scheduler.config import Config
from scheduler.queues import forecast
from scheduler.queues.forecast import Start
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.situation import prepare
from tests.docs import examples
from tests.unit.test_queue_command import ask, queue
from tests.unit.test_queues_places import make_flavor, make_node, make_queue, make_workload
from tests.unit.test_simulate_queued import TEAM, make_job, make_world

Json = dict[str, Any]
LIMIT = "maximumExecutionTimeSeconds"
THEIRS = {"scheduler": "default-scheduler"}


def foresee(*objects: Json, wanted: list[str], config: Config | None = None) -> dict[str, Start]:
    situation = prepare(objects, Changes(), strict=True)
    found = forecast.foresee(
        situation, config or Config(), [f"team/{one}" for one in wanted], is_live=False
    )
    return {key.partition("/")[2]: one for key, one in found.items()}


def limit(workload: Json, seconds: int | None) -> Json:
    if seconds is not None:
        workload["spec"][LIMIT] = seconds
    return workload


class Task(NamedTuple):
    """A workload of a twin: how many GPUs it needs, and for how many seconds it runs; None if it does not say."""

    gpus: int
    seconds: int | None


class Twin:
    """A slow queue: it goes from end to end, and starts in order whoever fits and keeps what the first one is promised."""

    def __init__(self, tasks: list[Task], quota: int, *, promises: bool) -> None:
        self.tasks, self.quota, self.now, self.promises = tasks, quota, 0, promises
        self.starts: list[int | None] = [None] * len(tasks)
        self.ends: list[tuple[float, int]] = []

    def count_free(self, at: float) -> int:
        return self.quota - sum(gpus for end, gpus in self.ends if end > at)

    def find_time(self, task: Task) -> float | None:
        times = sorted({float(self.now), *(end for end, _ in self.ends if end < math.inf)})
        return next((at for at in times if self.count_free(at) >= task.gpus), None)

    def keeps_promise(self, task: Task, end: float, vain: list[Task]) -> bool:
        promised = next((one for one in vain[:4] if self.find_time(one) is not None), None)
        if promised is None or not self.promises:
            return True
        until = self.find_time(promised) or 0
        beside = self.count_free(until) - (task.gpus if end > until else 0)
        return beside >= promised.gpus

    def start_all(self, *, is_strict: bool) -> None:
        vain = list[Task]()
        for i, task in enumerate(self.tasks):
            end = math.inf if task.seconds is None else self.now + task.seconds
            if self.starts[i] is not None:
                continue
            if task.gpus > self.count_free(self.now):
                vain.append(task)
            elif not (is_strict and vain) and self.keeps_promise(task, end, vain):
                self.starts[i] = self.now
                self.ends.append((end, task.gpus))


def find_starts(
    tasks: list[Task], quota: int, *, is_strict: bool, promises: bool
) -> list[int | None]:
    twin = Twin(tasks, quota, promises=promises)
    while True:
        twin.start_all(is_strict=is_strict)
        later = [end for end, _ in twin.ends if twin.now < end < math.inf]
        if not later:
            return twin.starts
        twin.now = int(min(later))


TASKS = st.lists(
    st.builds(Task, st.integers(1, 5), st.one_of(st.none(), st.integers(1, 50))),
    min_size=1,
    max_size=9,
)


@given(TASKS, st.integers(1, 6), st.booleans(), st.booleans())
def test_starts_are_those_of_a_slow_twin(
    tasks: list[Task], quota: int, is_strict: bool, promises: bool
) -> None:
    strategy = "StrictFIFO" if is_strict else "BestEffortFIFO"
    objects = [TEAM, make_flavor("gpus", "gpu"), *make_queue("a", {"gpus": quota}, queueingStrategy=strategy)]  # fmt: skip
    objects += [
        limit(make_workload(f"w{i}", "a", 1, one.gpus, second=i, **THEIRS), one.seconds)
        for i, one in enumerate(tasks)
    ]
    wanted = [f"w{i}" for i in range(len(tasks))]
    config = Config(queues=configuration.read_settings({"promises": promises}))
    found = foresee(*objects, wanted=wanted, config=config)
    starts = find_starts(tasks, quota, is_strict=is_strict, promises=promises)
    assert [found[one].seconds for one in wanted] == starts
    for one in found.values():
        assert (one.at is None) == (one.seconds is None)
        assert [end.at for end in one.ends] == sorted(end.at for end in one.ends)
        if one.at is not None:
            assert all(end.at <= one.at for end in one.ends)


def make_teams(seconds: dict[str, int]) -> list[Json]:
    """The two teams of the example, with run times."""
    found = examples.read("queues.yaml")
    for one in found:
        if one["kind"] == "Workload":
            limit(one, seconds.get(one["metadata"]["name"]))
    return found


def test_the_example_by_hand() -> None:
    """It is 10:05, and 4 of ``vision`` are taken back at once. At 11:00 ``segment`` ends, but ``detect`` takes 4 first.

    ``transcribe`` ends at 11:30: then 8 are free.
    """
    objects = make_teams({"segment": 3 * 3600, "detect": 5 * 3600, "transcribe": 2 * 3600})
    why = ask("why", "vision/depth", objects=objects)
    assert why["startsAt"] == "2026-01-05T11:30:00Z"
    assert why["startsInSeconds"] == 85 * 60
    waits = why["waitsFor"]
    assert waits["what"] == "ends"
    assert [(one["name"], one["at"]) for one in waits["ends"]] == [
        ("segment", "2026-01-05T11:00:00Z"), ("transcribe", "2026-01-05T11:30:00Z"),
    ]  # fmt: skip
    text = " ".join(queue("why", "vision/depth", objects=objects).split())
    assert (
        "It starts 2026-01-05T11:30:00Z, if nobody else comes before it: it waits for 8 nvidia.com/gpu"
        in text
    )
    assert (
        "4 nvidia.com/gpu (h100) of speech/transcribe, which ends at 2026-01-05T11:30:00Z" in text
    )
    (row,) = ask("show", "vision", objects=objects)["waiters"]
    assert row["startsAt"] == "2026-01-05T11:30:00Z"
    assert "2026-01-05T11:30:00Z" in queue("show", "vision", objects=objects)


def test_without_run_times_it_names_those_who_do_not_say_it() -> None:
    objects = make_teams({"transcribe": 3600})
    why = ask("why", "vision/depth", objects=objects)
    assert why["startsAt"] is None
    assert why["waitsFor"]["what"] == "undeclared"
    names_of = [one["name"] for one in why["waitsFor"]["undeclared"]]
    assert names_of == ["translate", "detect", "segment"]
    assert "no run time is declared for speech/translate" in queue(
        "show", "vision", objects=objects
    )


def test_who_gets_quota_in_his_turn_starts_now() -> None:
    why = ask("why", "speech/translate", objects=make_teams({}))
    assert (why["startsInSeconds"], why["waitsFor"]["what"]) == (0, "turn")
    assert "as soon as those" in queue("why", "speech/translate", objects=make_teams({}))


def test_who_would_have_quota_now_needs_what_those_before_it_leave() -> None:
    objects = [TEAM, make_flavor("gpus", "gpu"), *make_queue("a", {"gpus": 2})]
    objects += [make_workload(name, "a", 1, 2, second=i, **THEIRS) for i, name in enumerate("wv")]
    first, second = (ask("why", f"team/{name}", objects=objects)["needs"] for name in "wv")
    assert first == ["nothing: there is quota, and it is given at its turn"]
    assert second == ["that those before it leave enough quota: it is given at its turn"]


def test_who_has_quota_waits_for_nothing() -> None:
    why = ask("why", "vision/segment", objects=make_teams({}))
    assert (why["startsAt"], why["waitsFor"]) == (None, None)


def test_what_is_more_than_the_queue_can_have_never_starts() -> None:
    objects = [TEAM, make_flavor("gpus", "gpu"), *make_queue("a", {"gpus": 2})]
    objects += [limit(make_workload("w", "a", 1, 2, **THEIRS), 60), make_workload("v", "a", 1, 3, second=1, **THEIRS)]  # fmt: skip
    found = foresee(*objects, wanted=["v"])["v"]
    assert (found.seconds, found.reason, found.undeclared) == (None, "ExceedsMaxQuota", ())
    assert "not by itself" in queue("why", "team/v", objects=objects)


def test_nobody_is_named_for_one_that_no_end_of_others_helps() -> None:
    """The other one does not say when it ends, and that is not what the large one waits for."""
    objects = [TEAM, make_flavor("gpus", "gpu"), *make_queue("a", {"gpus": 2})]
    objects += [make_workload("w", "a", 1, 2, **THEIRS), make_workload("v", "a", 1, 3, second=1, **THEIRS)]  # fmt: skip
    text = queue("why", "team/v", "--decide", objects=objects)
    assert "not by itself" in text
    assert "ExceedsMaxQuota" in text
    assert "no run time is declared" not in text


def test_a_gang_starts_when_there_is_a_place_for_all_of_it() -> None:
    """There is quota for all; the second of two nodes is free when the longer one of two has ended."""
    nodes = [make_node("n0", "r0"), make_node("n1", "r1")]
    objects = [*nodes, TEAM, make_flavor("gpus", "gpu"), *make_queue("a", {"gpus": 100})]
    objects += [
        limit(make_workload("w0", "a", 1, 4), 60),
        limit(make_workload("w1", "a", 1, 4, second=1), 90),
        make_workload("gang", "a", 2, 3, second=2),
    ]
    found = foresee(*objects, wanted=["gang"])["gang"]
    assert found.seconds == 90
    assert [one.key for one in found.ends] == ["team/w0", "team/w1"]
    wide = [*objects, make_workload("wide", "a", 3, 3, second=3)]
    text = " ".join(queue("why", "team/wide", objects=wide).split())
    assert "no run time is declared for team/gang" in text
    alone = [*objects[:-1], make_workload("wide", "a", 3, 3, second=3)]
    assert "no place yet for all its pods" in " ".join(
        queue("why", "team/wide", objects=alone).split()
    )
    nobody = [*nodes, *objects[2:-3], make_workload("wide", "a", 3, 3)]
    text = " ".join(queue("why", "team/wide", objects=nobody).split())
    assert "no end of others is known" in text


@pytest.mark.parametrize(
    "said", ["label", "deadline of the job", "deadline of its pods", "annotation"]
)
def test_a_job_says_in_several_ways_how_long_it_runs(said: str) -> None:
    first = make_job("first", 3)
    match said:
        case "label":
            first["metadata"]["labels"][names.KUEUE_RUN_TIME] = "60"
        case "deadline of the job":
            first["spec"]["activeDeadlineSeconds"] = 60
        case "deadline of its pods":
            first["spec"]["template"]["spec"]["activeDeadlineSeconds"] = 60
        case _:
            first["spec"]["template"]["metadata"] = {"annotations": {names.RUN_TIME: "1m"}}
    objects = [*make_world(3), first, make_job("next", 3)]
    situation = prepare(objects, Changes(), strict=True)
    keys = list(situation.inventory.made_workloads)
    found = forecast.foresee(situation, Config(), keys, is_live=False)
    assert [found[key].seconds for key in keys] == [0, 60]
    # Without any time among the objects there is no date.
    assert found[keys[1]].at is None
    assert "in 60 s" in queue("show", "a", objects=objects)


def test_so_many_ends_are_played_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast, "ENDS_MAX", 3)
    objects = [TEAM, make_flavor("gpus", "gpu"), *make_queue("a", {"gpus": 1})]
    objects += [limit(make_workload(f"w{i}", "a", 1, 1, second=i, **THEIRS), 10) for i in range(6)]
    found = foresee(*objects, wanted=["w3", "w5"])
    assert found["w3"].seconds == 30
    assert (found["w5"].seconds, found["w5"].is_cut, found["w5"].n_ends) == (None, True, 3)
    assert "within the next 3 ends" in " ".join(queue("why", "team/w5", objects=objects).split())


def test_who_runs_longer_than_he_has_said_is_expected_to_end_now() -> None:
    objects = make_teams({"segment": 60, "detect": 5 * 3600, "transcribe": 2 * 3600})
    found = ask("why", "vision/depth", objects=objects)
    assert found["waitsFor"]["ends"][0]["at"] == "2026-01-05T10:05:00Z"


def test_in_a_cluster_nothing_is_played_where_nobody_says_when_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A decision about many that wait takes long, and could not end anything."""
    given = {"name": "main", "flavors": {"nvidia.com/gpu": "gpus"}, "resourceUsage": {"nvidia.com/gpu": "4"}, "count": 1}  # fmt: skip
    runs = make_workload("runs", "a", 1, 4, **THEIRS)
    since = {"status": "True", "reason": "Admitted", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    runs["status"] = {
        "admission": {"clusterQueue": "a", "podSetAssignments": [given]},
        "conditions": [{"type": kind, **since} for kind in ("QuotaReserved", "Admitted")],
    }
    waits = make_workload("waits", "a", 1, 4, second=1, **THEIRS)
    world = [TEAM, make_flavor("gpus", "gpu"), *make_queue("a", {"gpus": 4})]
    situation = prepare([*world, runs, waits], Changes(), strict=True)
    played: list[set[str]] = []
    run = forecast._Play.run

    def count_and_run(play: forecast._Play, wanted: set[str]) -> None:
        played.append(wanted)
        run(play, wanted)

    monkeypatch.setattr(forecast._Play, "run", count_and_run)
    [quick] = forecast.foresee(situation, Config(), ["team/waits"], is_live=True).values()
    assert played == []
    assert (quick.seconds, quick.undeclared) == (None, ("team/runs",))
    [slow] = forecast.foresee(situation, Config(), ["team/waits"], is_live=False).values()
    assert played == [{"team/waits"}]
    assert quick.undeclared == slow.undeclared
    ends = prepare([*world, limit(runs, 60), waits], Changes(), strict=True)
    [known] = forecast.foresee(ends, Config(), ["team/waits"], is_live=True).values()
    assert len(played) == 2
    assert [one.key for one in known.ends] == ["team/runs"]
