"""A trace whose teams share the cluster through queues: who runs when, what it costs, and how far each is from its fair part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from scheduler import cli
from scheduler.errors import BadInput
from scheduler.replay import fan_out, policies, team_run, traces, workloads
from scheduler.replay.experiment import RunOptions, Series, Trace, Workload
from scheduler.replay.fan_out import Job
from scheduler.replay.measures import fair, teams, usage
from scheduler.replay.policies import Policy
from tests.oracles import fair_parts
from tests.prose import unwrapped

NODES = "name,cpu,memory,gpus,model\na,64,256Gi,4,T4\nb,64,256Gi,4,A10\n"
# Speech has the cluster to itself when vision comes.
PODS = """name,cpu,memory,gpus,arrival,departure,queue,group
s1,1,1Gi,4,0,1000,speech,
s2,1,1Gi,4,10,60,speech,
v1,1,1Gi,4,40,240,vision,
v2,1,1Gi,2,400,600,vision,g
v3,1,1Gi,2,410,610,vision,g
end,1,1Gi,0,900,901,,
"""
RECLAIM = "  preemption: {reclaimWithinCohort: Any}\n"
COHORT = "  cohortName: all\n"
FLAVOR = """apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: gpus}
"""


def write_queue(name: str, more: str = "", quota: int = 4, flavor: str = "gpus") -> str:
    return f"""---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: {name}}}
spec:
{more}  resourceGroups:
    - coveredResources: [nvidia.com/gpu]
      flavors: [{{name: {flavor}, resources: [{{name: nvidia.com/gpu, nominalQuota: {quota}}}]}}]
"""


def write_local(name: str, queue: str, weight: int = 1) -> str:
    return f"""---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: {name}, namespace: any}}
spec: {{clusterQueue: {queue}, fairSharing: {{weight: {weight}}}}}
"""


APART = FLAVOR + write_queue("speech") + write_queue("vision")
SHARED = FLAVOR + write_queue("speech", COHORT + RECLAIM) + write_queue("vision", COHORT + RECLAIM)


Played = tuple[Trace, Workload, Series, Policy]


def play_policy(folder: Path, policy: str, pods: str = PODS, nodes: str = NODES) -> Played:
    """Play a trace, written to a folder, by a policy."""
    for name, text in (("nodes.csv", nodes), ("pods.csv", pods), ("p.yaml", policy)):
        (folder / name).write_text(text, encoding="utf-8")
    trace = traces.read_trace(folder)
    read = policies.read_policy(folder / "p.yaml")
    workload = workloads.make_recorded(trace, 1)
    options = RunOptions("keel", "seen", True, 1, measure_frag=False, policy=read)
    return trace, workload, team_run.run_teams(trace, workload, options), read


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., Played]:
    return partial(play_policy, tmp_path)


def list_stays(trace: Trace, workload: Workload, series: Series) -> list[tuple[str, float, float, bool]]:  # fmt: skip
    assert series.stays is not None
    found = series.stays
    rows = zip(found.arrival, found.start, found.end, found.is_lost, strict=True)
    return [(trace.pods[workload.pod[i]].name, float(a), float(b), bool(lost)) for i, a, b, lost in rows]  # fmt: skip


Play = Callable[..., tuple[Trace, Workload, Series, Policy]]


def test_who_is_evicted_waits_and_begins_anew(play: Play) -> None:
    trace, workload, series, policy = play(SHARED)
    assert list_stays(trace, workload, series) == [
        ("s1", 0, 1000, False),
        # Vision takes back what it is owed; speech has its 50 seconds after that.
        ("s2", 10, 40, True),
        ("v1", 40, 240, False),
        ("s2", 240, 290, False),
        # A group waits for the last one of its pods.
        ("v2", 410, 610, False),
        ("v3", 410, 610, False),
        ("end", 900, 901, False),
    ]
    waits = dict(zip([pod.name for pod in trace.pods], usage.find_waits(workload, series.stays), strict=True))  # type: ignore[arg-type]  # fmt: skip
    assert waits == {"s1": 0, "s2": 200, "v1": 0, "v2": 10, "v3": 0, "end": 0}
    curves = teams.make_curves(trace, workload, series, policy)
    assert curves is not None
    figures = teams.make_figures(trace, workload, series, curves)
    assert figures["evicted_pods"] == 1
    # 30 seconds of 4 GPUs, of all: 900, 30, 200, 50 seconds of 4, and twice 200 of 2.
    assert figures["evicted_work_percent"] == pytest.approx(100 * 30 / (900 + 30 + 200 + 50 + 200))
    assert figures["team_wait_mean_speech_seconds"] == 100
    assert figures["team_used_vision_percent"] == pytest.approx(100 * 400 * 4 / (900 * 8), abs=0.1)
    # Nobody lacks anything but the group whose pods came one after another: 10 seconds of 2 GPUs, of 402 times 4.
    assert figures["team_missing_speech_percent"] == pytest.approx(0, abs=0.1)
    assert figures["team_missing_vision_percent"] == pytest.approx(100 * 20 / (200 * 4 + 10 * 2 + 200 * 4), abs=0.1)  # fmt: skip


def test_where_nobody_lends_a_team_lacks_what_is_idle(play: Play) -> None:
    trace, workload, series, policy = play(APART)
    stays = list_stays(trace, workload, series)
    assert [one[0] for one in stays] == ["s1", "v1", "v2", "v3", "end"]
    curves = teams.make_curves(trace, workload, series, policy)
    assert curves is not None
    assert curves.teams == ("speech", "vision")
    assert [teams.read_owed(trace, policy, one) for one in curves.teams] == [4000, 4000]
    # Speech would have had all eight GPUs but for the time in which vision had work.
    at = [np.searchsorted(curves.x, x) for x in (20, 100, 300, 500)]
    fair_parts_ = [[100, 0], [50, 50], [100, 0], [50, 50]]
    assert pytest.approx(np.array(fair_parts_)) == curves.fair[:, at].T
    figures = teams.make_figures(trace, workload, series, curves)
    # Of the fair part it lacks 4 GPUs from 10 to 40, from 240 to 410 less 2 since 400, and from 610 on.
    lacks = 4 * 30 + 4 * 160 + 2 * 10 + 4 * 290
    assert figures["team_missing_speech_percent"] == pytest.approx(100 * lacks / (4 * 900 + lacks), abs=0.2)  # fmt: skip
    assert figures["evicted_pods"] == 0
    assert figures["evicted_work_percent"] == 0


def test_flavors_have_the_model_of_their_nodes_and_local_queues_are_teams(play: Play) -> None:
    flavors = FLAVOR + "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: a10}\nspec: {nodeLabels: {model: A10}}\n"  # fmt: skip
    policy = flavors + write_queue("all", quota=8, flavor="a10")
    policy += write_local("speech", "all", 3) + write_local("vision", "all")
    trace, workload, series, read = play(policy)
    assert {name: tuple(one) for name, one in read.teams.items()} == {
        "speech": ("all", 3),
        "vision": ("all", 1),
    }
    # Eight GPUs are owed, but only four are of the model: what gets quota gets a place.
    node = {trace.pods[i].name: trace.nodes[n].name for i, n in zip(workload.pod, series.node, strict=True) if n >= 0}  # fmt: skip
    assert node["s1"] == "b"
    # Both have work for all of it.
    wanted = np.full((2, 1), 8000.0)
    parts = teams.find_fair_parts(trace, read, np.array([8000.0]), wanted)
    assert parts.tolist() == [[6000], [2000]]
    # What one has no work for, the other may have: a team of weight 0 as well, if nobody else wants it.
    assert teams.find_fair_parts(trace, read, np.array([8000.0]), np.array([[0.0], [9000.0]])).tolist() == [[0], [8000]]  # fmt: skip


def test_pods_of_a_group_that_have_ended_do_not_come_again(play: Play) -> None:
    """The rest of a group that is evicted begins anew; what its pods had done by then stays done."""
    pods = """name,cpu,memory,gpus,arrival,departure,queue,group
a1,1,1Gi,2,0,10,speech,g
a2,1,1Gi,4,0,200,speech,g
v1,1,1Gi,4,50,150,vision,
v2,1,1Gi,4,50,100,vision,
end,1,1Gi,0,900,901,,
"""
    policy = FLAVOR + write_queue("speech", COHORT, 0) + write_queue("vision", COHORT + RECLAIM, 8)
    trace, workload, series, _ = play(policy, pods)
    assert list_stays(trace, workload, series) == [
        ("a1", 0, 10, False),
        ("a2", 0, 50, True),
        ("v1", 50, 150, False),
        ("v2", 50, 100, False),
        ("a2", 100, 300, False),
        ("end", 900, 901, False),
    ]


def test_a_group_without_a_queue_is_placed_all_at_once_beside_queues(play: Play) -> None:
    pods = """name,cpu,memory,gpus,arrival,departure,queue,group
s1,1,1Gi,4,0,100,speech,
g1,1,1Gi,4,10,50,,g
g2,1,1Gi,4,10,50,,g
end,1,1Gi,0,900,901,,
"""
    trace, workload, series, _ = play(APART, pods)
    starts = {name: start for name, start, *_ in list_stays(trace, workload, series)}
    assert starts == {"s1": 0, "g1": 100, "g2": 100, "end": 900}


def test_resources_that_no_queue_mentions_are_free_on_all_nodes(play: Play) -> None:
    """A pod without GPUs may go to a node of which no flavor has the label."""
    flavors = FLAVOR.replace("{name: gpus}", "{name: gpus}\nspec: {nodeLabels: {model: T4}}")
    pods = "name,cpu,memory,gpus,arrival,departure,queue\nlarge,60,1Gi,0,0,9,speech\nsmall,60,1Gi,0,1,9,speech\nend,1,1Gi,0,20,21,\n"  # fmt: skip
    trace, workload, series, _ = play(flavors + write_queue("speech") + write_queue("vision"), pods)
    assert [one[:2] for one in list_stays(trace, workload, series)] == [("large", 0), ("small", 1), ("end", 20)]  # fmt: skip


def test_a_share_of_a_gpu_is_owed_by_its_compute_where_that_has_quota(play: Play) -> None:
    policy = APART.replace("nvidia.com/gpu", "nvidia.com/gpucores").replace("nominalQuota: 4", "nominalQuota: 400")  # fmt: skip
    pods = "name,cpu,memory,gpus,gpu_share,arrival,departure,queue\n"
    pods += "".join(f"p{i},1,1Gi,1,0.5,{i},100,speech\n" for i in range(10))
    trace, workload, series, read = play(policy, pods + "end,1,1Gi,0,,50,51,\n")
    assert teams.read_owed(trace, read, "speech") == 4000
    # Eight halves are four GPUs.
    assert [one[0] for one in list_stays(trace, workload, series)] == [*(f"p{i}" for i in range(8)), "end"]  # fmt: skip


@given(
    total=st.integers(0, 60),
    teams_=st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 20), st.integers(0, 4)), min_size=1, max_size=6
    ),
)
@settings(max_examples=300, deadline=None)
def test_fair_parts_are_those_of_rising_water(
    total: int, teams_: list[tuple[int, int, int]]
) -> None:
    wanted, owed, weights = zip(*teams_, strict=True)
    found = fair.find_parts(
        np.array([total, 7.0]),
        np.array(wanted, float)[:, None].repeat(2, axis=1),
        np.array(owed, float),
        np.array(weights, float),
    )
    for column, have in enumerate((total, 7)):
        slow = fair_parts.find_parts(have, wanted, owed, weights)
        assert found[:, column] == pytest.approx([float(one) for one in slow], abs=1e-9)


@st.composite
def small_traces(draw: st.DrawFn) -> str:
    rows = ["name,cpu,memory,gpus,arrival,departure,queue"]
    for i in range(draw(st.integers(1, 14))):
        at = draw(st.integers(0, 60))
        lasts, gpus = draw(st.integers(1, 50)), draw(st.sampled_from((1, 2, 4)))
        rows.append(
            f"p{i},1,1Gi,{gpus},{at},{at + lasts},{draw(st.sampled_from(('speech', 'vision')))}"
        )
    return "\n".join(rows) + "\nend,1,1Gi,0,200,201,\n"


@given(pods=small_traces(), policy=st.sampled_from((APART, SHARED)))
@settings(max_examples=40, deadline=None)
def test_no_card_and_no_quota_is_given_twice_and_everybody_runs_in_the_end(
    tmp_path_factory: pytest.TempPathFactory, pods: str, policy: str
) -> None:
    folder = tmp_path_factory.mktemp("trace")
    for name, text in (("nodes.csv", NODES), ("pods.csv", pods), ("p.yaml", policy)):
        (folder / name).write_text(text, encoding="utf-8")
    trace, read = traces.read_trace(folder), policies.read_policy(folder / "p.yaml")
    workload = workloads.make_recorded(trace, 1)
    options = RunOptions("keel", "seen", True, 1, measure_frag=False, policy=read)
    series = team_run.run_teams(trace, workload, options)
    stays = usage.list_stays(workload, series)
    gpus = np.array([trace.pods[i].gpus for i in workload.pod])[stays.arrival]
    team = np.array([trace.pods[i].queue for i in workload.pod])[stays.arrival]
    for at in {*stays.start.tolist(), *(stays.start + 0.5).tolist()}:
        is_there = (stays.start <= at) & (stays.end > at)
        for node in range(2):
            assert gpus[is_there & (stays.node == node)].sum() <= 4
        if policy == APART:
            for name in read.teams:
                assert gpus[is_there & (team == name)].sum() <= 4
    whole = np.bincount(stays.arrival[~stays.is_lost], minlength=len(workload.pod))
    assert whole.max() == 1
    if policy == APART:
        assert not stays.is_lost.any()
    # A stay that is not lost lasts as long as the pod runs.
    lasted = (stays.end - stays.start)[~stays.is_lost]
    assert lasted == pytest.approx(workload.lifetime[stays.arrival[~stays.is_lost]])
    assert (stays.start >= workload.at[stays.arrival]).all()


def test_runs_in_processes_are_the_same(tmp_path: Path) -> None:
    for name, text in (("nodes.csv", NODES), ("pods.csv", PODS), ("p.yaml", SHARED)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    trace = traces.read_trace(tmp_path)
    options = RunOptions("keel", "seen", True, 1, measure_frag=False, policy=policies.read_policy(tmp_path / "p.yaml"))  # fmt: skip
    jobs = [Job("default", "recorded", None, 1, replace(options, seed=seed)) for seed in (1, 2)]
    here, there = (fan_out.run_jobs(jobs, {"default": trace}, processes=n) for n in (1, 2))
    for a, b in zip(here, there, strict=True):
        assert a.record | {"seconds": 0} == b.record | {"seconds": 0}
        assert a.record["queues"] == "p"


def test_policies_are_columns_of_one_table_and_a_picture(tmp_path: Path) -> None:
    files = ("nodes.csv", NODES), ("pods.csv", PODS), ("apart.yaml", APART), ("shared.yaml", SHARED)
    for name, text in files:
        (tmp_path / name).write_text(text, encoding="utf-8")
    result = CliRunner().invoke(
        cli.app,
        [
            "replay", str(tmp_path), "--experiment", "recorded", "--queue", "--plot", str(tmp_path / "t.svg"),
            *(word for one in ("apart", "shared") for word in ("--queues", str(tmp_path / f"{one}.yaml"))),
        ],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].endswith("default, queued")
    assert [line.split() for line in lines[2:4]] == [["apart", "shared"], ["mean", "of", "one", "seed", "keel", "keel"]]  # fmt: skip
    [row] = [line for line in lines if line.startswith(" evictions of pods")]
    assert row.split()[-2:] == ["0.00", "1.00"]
    picture = (tmp_path / "t.svg").read_text(encoding="utf-8")
    # Text is drawn as shapes; each line of the plots is a group of its own.
    assert picture.count('id="line2d') > 20


BAD = {
    "has no ClusterQueue": FLAVOR,
    "ClusterQueue q: there is no ResourceFlavor 'none'": FLAVOR + write_queue("q", flavor="none"),
    "LocalQueue l: spec.clusterQueue: there is no ClusterQueue 'none'": FLAVOR + write_queue("q") + write_local("l", "none"),
    "ClusterQueue q: appears more than once": FLAVOR + write_queue("q") + write_queue("q"),
    "ClusterQueue q: spec.resourceGroups: has none": FLAVOR + "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: q}\n",
    "Deployment d: is no ClusterQueue, LocalQueue, Cohort, ResourceFlavor or Configuration of Kueue": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n",
    "ClusterQueue: metadata.name: is missing": "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {}\n",
    "ClusterQueue q: spec.resourceGroups[0].flavors[0].resources[0].nominalQuota": FLAVOR + write_queue("q").replace("nominalQuota: 4", "nominalQuota: -4"),
    "Configuration.fairSharing.preemptionStrategies": SHARED + "---\napiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nfairSharing: {preemptionStrategies: [Never]}\n",
    "document 1: is no object": "- a\n",
    "document 1": "a: [\n",
    "spec.nodeTaints: must be left out": FLAVOR + "spec: {nodeTaints: [{key: a, effect: NoSchedule}]}\n" + write_queue("q"),
    "spec.topologyName: must be left out": FLAVOR + "spec: {topologyName: t}\n" + write_queue("q"),
    "metadata.name": FLAVOR + write_queue("'[bold]\\u001b'").replace("'[bold]\\u001b'", '"a\\eb"'),
}  # fmt: skip


@pytest.mark.parametrize("problem", BAD)
def test_a_policy_with_a_mistake_is_refused_with_its_place(tmp_path: Path, problem: str) -> None:
    (tmp_path / "bad.yaml").write_text(BAD[problem], encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        policies.read_policy(tmp_path / "bad.yaml")
    assert str(caught.value).startswith("--queues bad.yaml")
    assert problem in str(caught.value)


REFUSED = {
    "--queues: only for recorded": ("--queue", "--experiment", "churn"),
    "--queues: needs --queue": ("--experiment", "recorded"),
    "--waiting: not with --queues": ("--experiment", "recorded", "--queue", "--waiting", "fifo"),
    'pod v1: queue: "vision" is not in policy p, which has speech': ("--experiment", "recorded", "--queue"),
}  # fmt: skip


@pytest.mark.parametrize("problem", REFUSED)
def test_what_does_not_go_with_queues_is_refused(tmp_path: Path, problem: str) -> None:
    files = (
        ("nodes.csv", NODES),
        ("pods.csv", PODS),
        ("p.yaml", FLAVOR + write_queue("speech")),
    )
    for name, text in files:
        (tmp_path / name).write_text(text, encoding="utf-8")
    result = CliRunner().invoke(
        cli.app, ["replay", str(tmp_path), "--queues", str(tmp_path / "p.yaml"), *REFUSED[problem]]
    )
    assert result.exit_code == 2
    assert problem in unwrapped(result.stderr)


def test_a_group_of_two_queues_and_a_queue_that_admits_nothing_are_refused(tmp_path: Path) -> None:
    circle = "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: all}\nspec: {parentName: all}\n"  # fmt: skip
    for pods, policy, problem in (
        (PODS.replace("600,vision,g", "600,speech,g"), SHARED, "pods.csv, line 6, column queue"),
        (PODS, SHARED + circle, "CohortCycle"),
    ):
        for name, text in (("nodes.csv", NODES), ("pods.csv", pods), ("p.yaml", policy)):
            (tmp_path / name).write_text(text, encoding="utf-8")
        result = CliRunner().invoke(cli.app, ["replay", str(tmp_path), "--experiment", "recorded", "--queue", "--queues", str(tmp_path / "p.yaml")])  # fmt: skip
        assert result.exit_code == 2, result.output
        assert problem in unwrapped(result.stderr)


def test_a_quota_of_what_nobody_requests_is_said(tmp_path: Path) -> None:
    policy = SHARED.replace("nvidia.com/gpu", "nvidia.com/gpus")
    for name, text in (("nodes.csv", NODES), ("pods.csv", PODS), ("p.yaml", policy)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    result = CliRunner().invoke(cli.app, ["replay", str(tmp_path), "--experiment", "recorded", "--queue", "--queues", str(tmp_path / "p.yaml")])  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "no pod with a queue requests nvidia.com/gpus, so its quotas have no effect" in unwrapped(result.stderr)  # fmt: skip


def test_a_trace_without_teams_needs_no_policy(tmp_path: Path) -> None:
    pods = "\n".join(line.rsplit(",", 2)[0] for line in PODS.splitlines()) + "\n"
    for name, text in (("nodes.csv", NODES), ("pods.csv", pods), ("p.yaml", SHARED)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    result = CliRunner().invoke(cli.app, ["replay", str(tmp_path), "--experiment", "recorded", "--queue", "--queues", str(tmp_path / "p.yaml")])  # fmt: skip
    assert result.exit_code == 2
    assert "pods.csv needs the column queue" in unwrapped(result.stderr)
