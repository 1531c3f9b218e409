"""A trace whose teams share the cluster through KAI's queues: who runs when, and fair shares over time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from scheduler.errors import BadInput
from scheduler.replay import policies
from scheduler.replay.measures import kai_parts, teams
from tests.unit.test_replay_teams import PODS, Played, list_stays, play_policy

Play = Callable[..., Played]


def write_queue(
    name: str, parent: str = "", quota: int = 4, limit: int = -1, weight: float = 1, **more: int
) -> str:
    lines = [f"  {key}: {value}" for key, value in more.items()]
    lines += [f"  parentQueue: {parent}"] if parent else []
    free = "{quota: -1, limit: -1}"
    return "\n".join(
        [
            "---",
            "apiVersion: scheduling.run.ai/v2",
            "kind: Queue",
            f"metadata: {{name: {name}}}",
            "spec:",
            *lines,
            "  resources:",
            f"    gpu: {{quota: {quota}, limit: {limit}, overQuotaWeight: {weight}}}",
            f"    cpu: {free}",
            f"    memory: {free}",
            "",
        ]
    )


ALL = write_queue("all", quota=-1)
SHARED = ALL + write_queue("speech", "all") + write_queue("vision", "all")


@pytest.fixture
def play(tmp_path: Path) -> Play:
    return partial(play_policy, tmp_path)


def test_who_is_evicted_waits_and_begins_anew(play: Play) -> None:
    trace, workload, series, policy = play(SHARED)
    assert set(policy.teams) == {"speech", "vision"}
    assert list_stays(trace, workload, series) == [
        ("s1", 0, 1000, False),
        # Vision takes back its quota; speech has its 50 seconds after that.
        ("s2", 10, 40, True),
        ("v1", 40, 240, False),
        ("s2", 240, 290, False),
        # A group waits for the last one of its pods.
        ("v2", 410, 610, False),
        ("v3", 410, 610, False),
        ("end", 900, 901, False),
    ]
    curves = teams.make_curves(trace, workload, series, policy)
    assert curves is not None
    figures = teams.make_figures(trace, workload, series, curves)
    assert figures["evicted_pods"] == 1
    assert figures["team_missing_speech_percent"] == pytest.approx(0, abs=0.1)


def test_a_limit_holds_pods_until_others_of_the_queue_end(play: Play) -> None:
    limited = ALL + write_queue("speech", "all", limit=4) + write_queue("vision", "all")
    pods = PODS.replace("s1,1,1Gi,4,0,1000", "s1,1,1Gi,4,0,300")
    trace, workload, series, _ = play(limited, pods)
    stays = {name: (start, end) for name, start, end, _ in list_stays(trace, workload, series)}
    assert stays["s1"] == (0, 300)
    assert stays["s2"] == (300, 350)


# Each job needs the only node for ten minutes; both teams have more of them than there is time for.
TURNS = "name,cpu,memory,gpus,arrival,departure,queue\n" + "".join(
    f"{team}{i},1,1Gi,4,0,600,{team}\n" for i in range(60) for team in ("a", "b")
) + "end,1,1Gi,0,30000,30001,\n"  # fmt: skip
ONE = "name,cpu,memory,gpus,model\na,64,256Gi,4,T4\n"


def count_runs(play: Play, policy: str) -> dict[str, int]:
    trace, workload, series, _ = play(policy, TURNS, ONE)
    names = [name[0] for name, _, _, is_lost in list_stays(trace, workload, series) if not is_lost]
    return {team: names.count(team) for team in ("a", "b")}


def test_time_based_shares_are_a_replay_of_two_teams(play: Play) -> None:
    """Without a memory the team with the larger weight has the node all the time; with one the weights show in time.

    Whose turn it is says the smaller part that a team holds of its share: one job is 4 of 3 GPUs, or of 1.
    """
    queues = ALL + write_queue("a", "all", quota=0, weight=3) + write_queue("b", "all", quota=0)
    usage = "---\nkind: Configuration\nkai: {usage: true, usageHalfLifeTime: 1h, kValue: 4}\n"
    without, remembered = count_runs(play, queues), count_runs(play, queues + usage)
    assert without["b"] == 0
    assert without["a"] >= 49
    assert sum(remembered.values()) >= 49
    assert remembered["b"] == pytest.approx(50 / 4, abs=4)


def test_fair_parts_are_found_level_by_level(play: Play) -> None:
    """Of 8 GPUs the two teams of one department get 4 of which the one of higher priority takes what it wants."""
    policy = (
        write_queue("left", quota=4)
        + write_queue("right", quota=4)
        + write_queue("first", "left", quota=1, priority=200)
        + write_queue("second", "left", quota=1, limit=2)
        + write_queue("third", "right", quota=-1)
    )
    pods = "name,cpu,memory,gpus,arrival,departure,queue\n" + "".join(
        f"{team},1,1Gi,1,0,10,{team}\n" for team in ("first", "second", "third")
    )
    trace, _, _, read = play(policy, pods)
    assert trace.teams == ("first", "second", "third")
    gpu = 1000.0
    wanted = np.array([[8.0, 2.5, 8.0], [8.0, 8.0, 8.0], [8.0, 8.0, 1.0]]) * gpu
    parts = kai_parts.find_parts(trace, read, np.full(3, 8 * gpu), wanted) / gpu
    assert parts.tolist() == [
        # What the third one leaves is the department's, too.
        [3.0, 2.5, 6.0],
        [1.0, 1.5, 1.0],
        [4.0, 4.0, 1.0],
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (write_queue("a", "nowhere"), "there is no Queue 'nowhere'"),
        (write_queue("a", "b") + write_queue("b", "a"), "lead in a circle"),
        (SHARED + write_queue("speech"), "Queue speech: appears more than once"),
        (write_queue("a", priority="high"), "spec.priority"),  # type: ignore[arg-type]
        (
            SHARED
            + "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: q}\n",
            "ClusterQueue q: is no Queue of KAI",
        ),
        (SHARED + "---\nkind: Configuration\nkai: {kValue: -1}\n", "kai.kValue"),
    ],
)
def test_a_policy_with_a_mistake_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(BadInput, match=why):
        policies.read_policy(path)


def test_a_pod_may_name_no_queue_that_has_queues_below(play: Play) -> None:
    """Such a queue is no team."""
    _, _, _, policy = play(SHARED)
    assert "all" not in policy.teams
