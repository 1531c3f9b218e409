"""An engine's log: run again it gives the same decisions, it holds no secret, and it says what differs."""

import gc
import json
import weakref
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from typer.testing import CliRunner

from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.cli import app
from scheduler.config import Config
from scheduler.engine import log, rerun
from scheduler.engine.allowance import Unlimited
from scheduler.engine.recorded import Recorded
from scheduler.errors import BadInput
from scheduler.kube import heap
from scheduler.kube.report.recording import Recorder, Recording
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from tests import make
from tests.model.engine_stories import GroupStory, Story
from tests.prose import unwrapped


@pytest.mark.parametrize("seed", range(12))
def test_a_log_gives_the_same_decisions_again_file_by_file(seed: int) -> None:
    story = Story(seed)
    for i in range(150):
        story.happen()
        if i in {60, 110}:
            story.anew()
    reports = [rerun.rerun(lines) for lines in story.files]
    assert [report.difference for report in reports] == [None] * 3
    assert sum(report.n_binds for report in reports) > 10
    assert sum(report.n_holds for report in reports) > 0


@pytest.mark.parametrize("seed", range(6))
def test_a_log_gives_the_same_decisions_again_with_groups(seed: int) -> None:
    story = GroupStory(seed)
    for i in range(150):
        story.happen()
        if i % 15 == 0:
            checks.verify(story.engine._cluster)
        if i in {60, 110}:
            story.anew()
    reports = [rerun.rerun(lines) for lines in story.files]
    assert [report.difference for report in reports] == [None] * 3
    lines = b"".join(line for lines in story.files for line in lines)
    assert b'"PodGroup.scheduling.k8s.io"' in lines
    assert b'"evicts":[{' in lines


def test_a_call_that_may_do_no_work_is_in_the_log_if_it_does_something() -> None:
    """It notes groups to which something is missing, and these lose the room that was promised to them."""
    lines: list[bytes] = []
    engine = Recorded(Config(), "test", lines.append)
    engine.handle(events.Seen(make.node(name="n", cpu=4)), 0.0)
    engine.handle(events.Seen(make.pod(name="low", node="n", cpu=4)), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", 2, priority=5)), 0.0)
    for name in ("a", "b"):
        engine.handle(events.Seen(make.member(make.pod(name=name, cpu=2, priority=5))), 0.0)
    assert engine.decide(0.0, Unlimited()).evicts
    engine.handle(events.Gone("Pod", "default/b"), 1.0)
    for now in (1.0, 9.0):
        engine.decide(now, Unlimited(pods=0))
    assert b'"nominates":[{"uid":"default/a","node":""}]' in lines[-1]
    assert rerun.rerun(lines).difference is None


def read_used_pools(cluster: Cluster, row: int) -> list[list[int]]:
    """What is in use of each pool of a node."""
    used = cluster.nodes.columns.pools.used
    return [used[:, pool].tolist() for pool in cluster.registers.list_pools(row)]


@pytest.mark.parametrize("seed", range(6))
def test_a_fresh_start_forgets_nothing_that_is_charged_or_known(seed: int) -> None:
    story = Story(seed)
    for _ in range(80):
        story.happen()
    story.engine.decide(story.now, Unlimited())
    before = story.engine._cluster
    story.anew()
    after = story.engine._cluster
    assert after is not before
    for name in before.nodes.rows:
        old, new = before.nodes.find_row(name), after.nodes.find_row(name)
        assert read_used_pools(after, new) == read_used_pools(before, old)
        assert after.nodes.columns.nonzero[:, new].tolist() == before.nodes.columns.nonzero[:, old].tolist()  # fmt: skip
        assert (after.nodes.was_signed[:, new] == before.nodes.was_signed[:, old]).all()
        assert after.nodes.silent[new] == before.nodes.silent[old]
    assert {p.uid: (p.node, p.life) for p in after.pods.values()} == {
        p.uid: (p.node, p.life) for p in before.pods.values()
    }
    assert after.demand.list_known() == before.demand.list_known()


def test_a_log_holds_no_word_that_could_be_a_secret() -> None:
    secret = "hunter2"
    spec = {
        "schedulerName": names.SCHEDULER,
        "containers": [
            {
                "name": "c",
                "env": [{"name": "TOKEN", "value": secret}],
                "command": ["login", secret],
                "args": [secret],
                "resources": {"requests": {"cpu": "1"}},
            }
        ],
        "volumes": [{"name": "v", "secret": {"secretName": secret}}],
    }
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": secret, names.MODE: "keel"}
    raw: dict[str, Any] = {
        "metadata": {"name": "p", "uid": "u", "annotations": annotations},
        "spec": spec,
        "status": {"conditions": [{"type": "Ready", "status": "False", "message": secret}]},
    }
    policy = {
        "metadata": {"name": "x", "annotations": {"a": secret}, "managedFields": [secret]},
        "spec": {"nodePolicy": "binpack"},
        "status": {"conditions": [secret]},
    }
    lines: list[bytes] = []
    engine = Recorded(Config(), "test", lines.append)
    engine.handle(events.Seen(msgspec.convert(raw, wire.Pod)), 0.0)
    engine.handle(events.Seen(make.policy(policy)), 0.0)
    node = make.node(name="n", annotations={"a": secret})
    engine.handle(events.Seen(node), 0.0)
    written = b"".join(lines).decode()
    assert secret not in written
    assert '"keel"' in written
    assert "binpack" in written
    assert engine._cluster.pods["u"].template.steering == ((names.MODE, "keel"),)


def test_a_decision_that_comes_out_differently_is_told_with_its_line() -> None:
    story = Story(1)
    while not any(b'"binds":[{' in line for line in story.files[0]):
        story.happen()
    lines = story.files[0]
    at = next(i for i, line in enumerate(lines) if b'"binds":[{' in line)
    line = json.loads(lines[at])
    real, line["binds"][0]["node"] = line["binds"][0]["node"], "elsewhere"
    lines[at] = json.dumps(line).encode() + b"\n"
    report = rerun.rerun(lines)
    assert report.difference is not None
    assert report.difference.line == at + 1
    told = rerun.write_report(report)
    assert f"the decision on line {at + 1} differs" in told
    assert "elsewhere" in told
    assert real in told


def test_a_log_whose_last_line_was_cut_is_run_as_far_as_it_goes() -> None:
    story = Story(2)
    for _ in range(20):
        story.happen()
    whole = story.files[0]
    report = rerun.rerun([*whole, b'{"type":"event","at":1.0,"ev'])
    assert report.is_cut
    assert report.difference is None
    assert "incomplete" in rerun.write_report(report)


def test_a_log_without_a_decision_is_not_said_to_have_come_out_the_same() -> None:
    story = Story(2)
    head = story.files[0][:1]
    told = rerun.write_report(rerun.rerun(head))
    assert told.splitlines()[1:] == [
        "the file has settings but no decision, so there is nothing to compare"
    ]
    events = [line for line in story.files[0] if b'"type":"event"' in line]
    assert "nothing to compare" in rerun.write_report(rerun.rerun([*head, *events]))
    story.happen()
    while not any(b'"binds":' in line for line in story.files[0]):
        story.happen()
    told = rerun.write_report(rerun.rerun(story.files[0]))
    assert told.splitlines()[1:] == ["every decision is the same as the recorded one"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([b"what\n"], "line 1: is not a line that evenkeel run --record writes"),
        (
            [log.encode(log.Decided(0.0, 1, (0, 0, 0)))],
            "line 1: the first line must hold the settings",
        ),
        (
            [log.encode(log.Head(99, "x", Config()))],
            "line 1: has format 99; this version of Evenkeel reads only format 6",
        ),
    ],
)
def test_what_is_no_log_is_refused_by_its_line(lines: list[bytes], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        rerun.rerun(lines)


def test_a_recording_keeps_to_its_size_and_each_of_its_files_runs_by_itself(tmp_path: Path) -> None:
    path, most = tmp_path / "log", 60_000
    recorder = Recorder(Config(), "test", Recording(path, most))
    engine = recorder.engine
    for i in range(3):
        engine.handle(events.Seen(make.node(name=f"n{i}", cpu="4")), 0.0)
    for i in range(400):
        now = float(i)
        engine.handle(events.Seen(make.pod(name=f"p{i}", cpu="1")), now)
        for bind in engine.decide(now, Unlimited()).binds:
            engine.handle(events.BindDone(bind.uid), now)
        if i >= 5:
            engine.handle(events.Gone("Pod", f"default/p{i - 5}"), now)
        recorder.flush()
        recorder.keep_up(now)
    recorder.close()
    older = tmp_path / "log.1"
    assert path.stat().st_mode & 0o777 == 0o600
    assert older.stat().st_size + path.stat().st_size < 1.2 * most
    for file in (older, path):
        with file.open("rb") as lines:
            report = rerun.rerun(lines)
        assert report.difference is None
        assert report.n_binds > 0


def test_a_recording_that_is_smaller_than_the_state_does_not_begin_anew_again_and_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log"
    recorder = Recorder(Config(), "test", Recording(path, 20_000))
    begun: list[None] = []
    begin_new_file, recording = recorder._recording.begin_new_file, recorder._recording
    recording.begin_new_file = lambda: begun.append(begin_new_file())  # type: ignore[method-assign]
    with structlog.testing.capture_logs() as logs:
        for i in range(400):
            recorder.engine.handle(events.Seen(make.pod(name=f"p{i}", cpu="1")), float(i))
            recorder.flush()
            for _ in range(10):
                recorder.keep_up(float(i))
    recorder.close()
    # Each file is at least twice as long as the state with which it begins.
    assert 3 <= len(begun) <= 10
    warnings = [one for one in logs if "larger than it was to be" in one["event"]]
    assert 0 < len(warnings) <= len(begun)
    with path.open("rb") as lines:
        assert rerun.rerun(lines).difference is None


def test_the_state_of_before_a_new_file_is_freed_though_it_was_frozen(tmp_path: Path) -> None:
    recorder = Recorder(Config(), "test", Recording(tmp_path / "log", 1000))
    recorder.engine.handle(events.Seen(make.node(name="n", cpu="4")), 0.0)
    before = weakref.ref(recorder.engine._cluster)
    thresholds = gc.get_threshold()
    try:
        heap.freeze()
        recorder.flush()
        recorder.keep_up(1.0)
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
    assert before() is None
    assert "n" in recorder.engine._cluster.nodes.rows
    recorder.close()


def test_a_file_that_cannot_be_written_is_told_at_once_and_a_full_disk_ends_the_recording_only(
    tmp_path: Path,
) -> None:
    with pytest.raises(BadInput, match="--record"):
        Recording(tmp_path / "missing" / "log", 1000)
    recording = Recording(Path("/dev/full"), 1000) if Path("/dev/full").exists() else None
    if recording is not None:
        recording.write(b"line\n")
        recording.flush()
        recording.write(b"line\n")
        assert not recording.is_full


def test_the_command_tells_what_came_of_a_file_and_ends_with_1_where_it_differs(
    tmp_path: Path,
) -> None:
    story = Story(4)
    while not any(b'"binds":[{' in line for line in story.files[0]):
        story.happen()
    path = tmp_path / "log"
    path.write_bytes(b"".join(story.files[0]))
    runner = CliRunner()
    same = runner.invoke(app, ["rerun", str(path)])
    assert (same.exit_code, same.output.splitlines()[-1]) == (
        0, "every decision is the same as the recorded one"
    )  # fmt: skip
    path.write_bytes(path.read_bytes().replace(b'"binds":[{"uid":"', b'"binds":[{"uid":"x', 1))
    other = runner.invoke(app, ["rerun", str(path)])
    assert other.exit_code == 1
    assert "differs" in other.output
    missing = runner.invoke(app, ["rerun", str(tmp_path / "none")])
    assert missing.exit_code == 2
    assert "there is no such file" in unwrapped(missing.output)
    # Of an empty file, and of one that ends within its first line, nothing came out as written.
    for content in (b"", b'{"type"'):
        path.write_bytes(content)
        empty = runner.invoke(app, ["rerun", str(path)])
        assert empty.exit_code == 2
        assert "has no complete line" in unwrapped(empty.output)
