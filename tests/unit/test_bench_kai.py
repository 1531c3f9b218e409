"""KAI's simulators of fair shares as the bench plays them: inputs of its form, and shares worked out by its rules."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import kai_over_time, kai_shares

Json = dict[str, Any]


def make_request(*queues: Json, gpus: float = 100, **more: Any) -> Json:
    total = {"GPU": gpus, "CPU": 16_000, "Memory": 32_000_000}
    named = [{"uid": f"queue{i}", **one} for i, one in enumerate(queues, 1)]
    return {"totalResource": total, "queues": named, **more}


def make_queue(deserved: float = 0, weight: float = 1, **more: Any) -> Json:
    priority = more.pop("priority", 0)
    gpu = {"deserved": deserved, "overQuotaWeight": weight, **more}
    return {"priority": priority, "resourceShare": {"gpu": gpu}}


def find_gpus(given: Json) -> list[float]:
    return [one["gpu"] for one in kai_shares.find_shares(given).values()]


def test_the_example_of_kais_readme() -> None:
    """Both have their quota of 10; of the 80 that are left one gets three parts, the other one."""
    given = make_request(make_queue(10, 3, request=100), make_queue(10, 1, request=100))
    assert kai_shares.find_shares(given) == {
        "queue1": {"gpu": 70, "cpu": 16_000, "memory": 100_000},
        "queue2": {"gpu": 30, "cpu": 16_000, "memory": 100_000},
    }


def test_who_asks_less_leaves_the_rest_to_the_others() -> None:
    """Of 90 each of three is offered 30; the first takes 6, and the others divide the other 24 in a second round."""
    given = make_request(make_queue(request=6), make_queue(), make_queue(), gpus=90)
    assert find_gpus(given) == [6, 42, 42]


def test_a_limit_counts_as_a_smaller_request() -> None:
    given = make_request(make_queue(50, maxAllowed=20), make_queue())
    assert find_gpus(given) == [20, 80]


def test_a_higher_priority_takes_all_that_is_over_the_quotas() -> None:
    given = make_request(make_queue(10, priority=1, request=60), make_queue(10), make_queue(10))
    assert find_gpus(given) == [60, 20, 20]


def test_gpus_are_divided_as_whole_ones_and_the_oldest_gets_what_is_over() -> None:
    given = make_request(make_queue(), make_queue(), make_queue(), gpus=8)
    given["queues"][2]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    given["queues"][0]["creationTimestamp"] = given["queues"][1]["creationTimestamp"] = (
        "2026-02-01T00:00:00Z"
    )
    assert find_gpus(given) == [3, 2, 3]


def test_what_was_used_counts_against_the_weight_as_k_says() -> None:
    """Weights of a half each; the first has used all: a half and a half minus one is nothing."""
    queues = make_queue(usage=1.0), make_queue()
    assert find_gpus(make_request(*queues)) == [50, 50]
    assert find_gpus(make_request(*queues, kValue=1)) == [0, 100]
    assert find_gpus(make_request(*queues, kValue=0.5)) == [25, 75]


def test_a_request_is_read_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "request.json"
    path.write_text(json.dumps(make_request(make_queue(), make_queue())))
    monkeypatch.setattr(sys, "argv", ["kai_shares", str(path)])
    kai_shares.main()
    assert json.loads(capsys.readouterr().out)["queue2"]["gpu"] == 50


def make_simulation(weights: Json, jobs: tuple[int, int], **more: Any) -> Json:
    """Two queues or more of one department on a node with 16 GPUs; ``jobs``: GPUs and number of the jobs of each."""
    queues = [{"Name": "all", "Parent": ""}]
    queues += [{"Name": name, "Parent": "all", "Weight": one} for name, one in weights.items()]
    gpus, number = jobs
    return {
        "Nodes": [{"GPUs": 16, "Count": 1}],
        "Queues": queues,
        "Jobs": {name: {"GPUs": gpus, "NumPods": 1, "NumJobs": number} for name in weights},
        **more,
    }


def find_means(given: Json) -> list[float]:
    found = kai_over_time.sum_up(kai_over_time.play(given))
    return [one["mean_allocated"] for name, one in found.items() if name != "all"]


def test_jobs_of_a_whole_node_take_turns_and_both_queues_have_half_of_the_time() -> None:
    """As in KAI's example of two queues that oscillate, on a shorter half-life."""
    given = make_simulation({"a": 1, "b": 1}, (16, 4), Cycles=400, HalfLifePeriod=4, KValue=1)
    points = kai_over_time.play(given)
    turns = [found["a"].allocated for found in points]
    assert set(turns) == {0.0, 16.0}
    assert sum(one != other for one, other in itertools.pairwise(turns)) > 10
    found = kai_over_time.sum_up(points)
    assert found["a"]["mean_allocated"] == pytest.approx(8, abs=1.5)
    assert found["all"]["mean_allocated"] == 16


def test_without_a_half_life_the_first_keeps_the_node() -> None:
    given = make_simulation({"a": 1, "b": 1}, (16, 4), Cycles=40)
    assert sorted(find_means(given)) == [0, 16]


def test_weights_show_in_the_time_that_each_queue_has_the_node() -> None:
    """By the rule the first queue gets the node when it has used a sixteenth lately, and loses it at five sixteenths."""
    given = make_simulation({"a": 1, "b": 3}, (16, 4), Cycles=600, HalfLifePeriod=10, KValue=4)
    first, second = find_means(given)
    assert first + second == 16
    assert first == pytest.approx(4, abs=1.5)


def test_small_jobs_have_the_weights_at_once() -> None:
    given = make_simulation({"a": 1, "b": 3}, (2, 12), Cycles=20, HalfLifePeriod=5)
    assert find_means(given) == [4, 12]


def test_a_simulation_is_written_as_kai_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A field that is null has its default."""
    path = tmp_path / "simulation.yaml"
    path.write_text(
        """
Cycles: 2
KValue: null
Nodes: [{Count: 2, GPUs: 4}]
Queues:
- {Name: all, Parent: "", Priority: null, DeservedGPUs: null, Weight: null}
- {Name: a, Parent: all}
- {Name: b, Parent: all}
Jobs:
  a: {GPUs: 4, NumJobs: 3, NumPods: 1}
  b: {GPUs: 4, NumJobs: 3, NumPods: 1}
"""
    )
    monkeypatch.setattr(sys, "argv", ["kai_over_time", str(path)])
    kai_over_time.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Time,QueueID,Allocation,FairShare"
    assert lines[1:4] == [
        "0,a,4.000000,4.000000",
        "0,all,8.000000,8.000000",
        "0,b,4.000000,4.000000",
    ]
    assert len(lines) == 1 + 2 * 3
