"""``evenkeel replay`` as a user types it: what goes in, what comes out, how mistakes are told."""

import json
import re
import sys
from pathlib import Path

import pytest
from pyarrow import parquet
from typer.testing import CliRunner, Result

from scheduler import cli
from scheduler.errors import BadInput
from scheduler.replay import command, fan_out
from scheduler.replay.experiment import Series
from scheduler.replay.headings import write_heading
from scheduler.replay.results import GROUP
from tests.prose import unwrapped
from tests.unit import replay_engine

NODES = "name,cpu,memory,gpus,model\na,32,64Gi,4,A\nb,32,64Gi,2,B\n"
PODS = "name,cpu,memory,gpus,gpu_share\np,1,1Gi,1,0.3\nq,2,1Gi,1,\nr,4,1Gi,2,\nc,1,1Gi,0,\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "nodes.csv").write_text(NODES, encoding="utf-8")
    (tmp_path / "pods.csv").write_text(PODS, encoding="utf-8")
    return tmp_path


@pytest.fixture(autouse=True)
def simple_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fan_out, "_import_engine", lambda _: replay_engine.first_fit)


def replay(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli.app, ["replay", *map(str, arguments)])


def refused(*arguments: str | Path) -> str:
    result = replay(*arguments)
    assert result.exit_code == 2
    assert not result.stdout
    return unwrapped(result.stderr).strip()


def test_by_default_one_seed_of_our_mode_fills_the_cluster_to_a_table(folder: Path) -> None:
    result = replay(folder)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"fill of {folder.name}, default, load 1.3\n")
    assert "keel" in result.stdout
    assert "mean of one seed" in result.stdout


def test_modes_seeds_and_loads_are_all_run_and_only_json_is_on_standard_output(
    folder: Path,
) -> None:
    result = replay(
        folder, "--experiment", "churn", "--mode", "first-fit,random", "--mode", "fgd",
        "--seeds", "3..4,9", "--load", "0.5", "--arrivals", "40", "--queue", "--learn", "trace",
        "-o", "json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    runs = json.loads(result.stdout)["runs"]
    assert [(run["mode"], run["seed"]) for run in runs] == [
        (mode, seed) for mode in ("first-fit", "random", "fgd") for seed in (3, 4, 9)
    ]
    assert {(r["load"], r["arrivals"], r["queue"], r["learn"]) for r in runs} == {
        (0.5, 40, True, "trace")
    }
    assert all("wait_longest" in run for run in runs)


def test_files_are_written_and_nothing_is_printed(folder: Path) -> None:
    for output, name in (("table", "t.txt"), ("json", "r.json"), ("parquet", "r.parquet")):
        path = folder / name
        result = replay(folder, "-o", output, "--output-file", path, "--plot", folder / "p.svg")
        assert (result.exit_code, result.stdout) == (0, "")
    (run,) = json.loads((folder / "r.json").read_text(encoding="utf-8"))["runs"]
    (row,) = parquet.read_table(folder / "r.parquet").to_pylist()
    assert row == run
    assert (folder / "t.txt").read_text(encoding="utf-8").startswith("fill of")
    assert (folder / "p.svg").read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--experiment", "drain"], "'--experiment': 'drain' is not one of 'fill', 'churn', 'bursts', 'daily', 'heavy-tail', 'recorded'"),
        (["--mode", "best"], "--mode: best is not one of keel, fgd, best-fit"),
        (["--mode", "keel,"], "--mode: has an empty value"),
        (["--learn", "all"], "'--learn': 'all' is not one of 'seen', 'trace'"),
        (["--seeds", "5..3"], '--seeds: "5..3": write 42..51 or 1,2,3'),
        (["--seeds", "-1"], '--seeds: "-1": write'),
        (["--seeds", "0..10000"], "at most 10000 of them"),
        (["--seeds", "4294967296"], "each 0..4294967295"),
        (["--load", "0"], "--load: 0 is not above 0"),
        (["--load", "nan"], "--load: nan is not above 0"),
        (["--arrivals", "0"], "--arrivals: 0 is not within 1..10000000"),
        (["--jobs", "0"], "'--jobs': must be at least 1"),
        (["--queue"], "--queue: not for fill"),
        (["-o", "yaml"], "'--output': 'yaml' is not one of 'table', 'json', 'parquet'"),
        (["-o", "parquet"], "--output-file: is needed with --output parquet"),
        (["--plot", "picture.pdf"], "--plot: picture.pdf does not end in .svg or .png"),
        (["--plot", "gone/picture.svg"], "--plot: gone/picture.svg cannot be written: No such file or directory"),
        (["--experiment", "recorded", "--load", "1"], "--load: not for recorded: the trace sets the load; to raise it, remove nodes from nodes.csv"),
        (["--experiment", "recorded", "--arrivals", "9"], "--arrivals: not for recorded: the trace sets how many pods arrive"),
        (["--experiment", "recorded"], "--experiment: recorded: the pods of"),
        (["--variant", "gpuspec33"], 'variant: "gpuspec33": only traces of openb have variants'),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_told_with_what_is_allowed(
    folder: Path, arguments: list[str], said: str
) -> None:
    assert said in refused(folder, *arguments)


@pytest.mark.parametrize("queue", [False, True])
def test_what_is_recorded_is_played_and_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, queue: bool
) -> None:
    monkeypatch.undo()
    pods = "name,cpu,memory,arrival,departure\n" + "".join(
        f"p{i},20,1Gi,{60 * i},{60 * i + 150}\n" for i in range(20)
    )
    (folder / "pods.csv").write_text(pods, encoding="utf-8")
    modes = ("--mode", "keel,least-allocated")
    waiting = ["--queue"] if queue else []
    result = replay(folder, "--experiment", "recorded", *modes, *waiting)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == f"recorded of {folder.name}, default{', queued' if queue else ''}"
    assert max(map(len, lines)) <= 80
    said = {line.strip().split("  ")[0] for line in lines}
    assert said >= {"cpu allocated, %", "memory stranded, %", "nodes in use, %"}
    assert ("wait, mean, seconds" in said) is queue
    assert ("requests lost, %, resources that bind" in said) is not queue
    assert not [name for name in said if "GPU" in name]


@pytest.mark.parametrize(
    "arguments",
    [["fill"], ["churn"], ["churn", "--queue"], ["recorded"], ["recorded", "--queue"]],
    ids=" ".join,
)
def test_every_figure_has_a_heading_of_its_own(folder: Path, arguments: list[str]) -> None:
    pods = "name,cpu,memory,gpus,arrival,departure\n" + "".join(
        f"p{i},1,1Gi,{i % 3},{i},{i + 9}\n" for i in range(9)
    )
    (folder / "pods.csv").write_text(pods, encoding="utf-8")
    (run,) = json.loads(replay(folder, "--experiment", *arguments, "-o", "json").stdout)["runs"]
    # Except for recorded traces, the table leaves out the GPUs among the resources: they have figures of their own.
    is_left_out = arguments[0] != "recorded"
    figures = [
        name
        for name in run
        if name not in {*GROUP, "seed", "arrivals"}
        and not (is_left_out and name.startswith("allocated_gpu_"))
    ]
    headings = {write_heading(name) for name in figures}
    assert len(headings) == len(figures) > 10
    assert not [one for one in headings if "_" in one]


def test_times_do_not_matter_to_other_experiments(folder: Path) -> None:
    before = json.loads(replay(folder, "-o", "json").stdout)["runs"]
    rows = PODS.splitlines()
    timed = [
        f"{rows[0]},arrival,departure",
        *(f"{row},{i},{i + 5}" for i, row in enumerate(rows[1:])),
    ]
    (folder / "pods.csv").write_text("\n".join(timed), encoding="utf-8")
    assert json.loads(replay(folder, "-o", "json").stdout)["runs"] == before


def test_a_wrong_cell_of_the_trace_is_told(folder: Path) -> None:
    (folder / "pods.csv").write_text(PODS.replace("0.3", "3"), encoding="utf-8")
    assert 'pods.csv, line 2, column gpu_share: "3" is not a share' in refused(folder)
    assert "there is no such folder" in refused(folder / "nowhere")
    assert "is not a trace: it must contain nodes.csv" in refused(folder.parent)


def test_a_run_that_fails_ends_with_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fan_out, "_import_engine", lambda _: replay_engine.fails)
    result = replay(folder, "--seeds", "1,2")
    assert result.exit_code == 1
    assert "fill of default, keel, seed 2: Traceback" in unwrapped(result.stderr)


def test_seeds_are_taken_once_and_in_order() -> None:
    assert command.parse_seeds("7, 3..5,4") == [7, 3, 4, 5]
    with pytest.raises(BadInput, match="--seeds"):
        command.parse_seeds("")


def test_fragments_are_measured_in_a_fill_and_for_a_picture() -> None:
    def is_measured(**given: object) -> bool:
        return command.plan_jobs(command.Request(trace=Path(), **given))[0].options.measure_frag  # type: ignore[arg-type]

    assert is_measured()
    assert not is_measured(experiment="churn")
    assert is_measured(experiment="churn", plot=Path("p.svg"))


def fails_if_run(*_: object) -> Series:
    """An engine."""
    raise AssertionError("the work was begun")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--plot", "gone/picture.svg"], "--plot: gone/picture.svg cannot be written"),
        (["--plot", "{folder}/taken.svg"], "taken.svg cannot be written: Is a directory"),
        (["--output-file", "{folder}"], "cannot be written: Is a directory"),
        (["--plot", "p.jpeg"], "--plot: p.jpeg does not end in .svg or .png"),
    ],
)
def test_a_result_without_a_place_is_told_before_the_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.setattr(fan_out, "_import_engine", lambda _: fails_if_run)
    (folder / "taken.svg").mkdir()
    assert said in refused(folder, *(one.format(folder=folder) for one in arguments))


@pytest.mark.parametrize(
    ("extra", "module", "arguments"),
    [
        ("plot", "matplotlib", ["--plot", "{folder}/p.svg"]),
        ("parquet", "pyarrow", ["-o", "parquet", "--output-file", "{folder}/p"]),
    ],
)
def test_a_missing_extra_is_told_before_the_work(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    extra: str,
    module: str,
    arguments: list[str],
) -> None:
    monkeypatch.setattr(fan_out, "_import_engine", lambda _: fails_if_run)
    monkeypatch.setitem(sys.modules, module, None)
    told = refused(folder, *(one.format(folder=folder) for one in arguments))
    assert f"needs the extra {extra}: pip install evenkeel-scheduler[{extra}]" in told
    assert sorted(path.name for path in folder.iterdir()) == ["nodes.csv", "pods.csv"]


def test_a_fill_of_two_nodes_has_a_figure_at_every_load_that_it_reached(folder: Path) -> None:
    """One pod is a third of such a cluster: no arrival rounds to 80, to 90 or to 95 percent."""
    pods = "name,cpu,memory,gpus\n" + "".join(f"p{i},1,1Gi,2\n" for i in range(4))
    (folder / "pods.csv").write_text(pods, encoding="utf-8")
    rows = dict(
        re.split(r"  +", line.strip())
        for line in replay(folder).stdout.splitlines()
        if re.search(r", %.* \d", line)
    )
    # Loads 33, 67, 100, and no fourth pod, which would be too many: what was there at 67 is there at 95 too.
    figures = {name.removeprefix("GPUs allocated, %, at "): rows[name] for name in rows}
    assert figures["load 80"] == figures["load 90"] == figures["load 95"] == "66.67"
    assert figures["load 100"] == figures["the end"] == "100.00"
    assert figures["requested, % of capacity, at the end"] == "100.00"
    assert "load 110" not in figures


def test_a_table_in_a_pipe_is_whole_whatever_the_width(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = (folder, "--mode", "keel,balanced-allocation,requested-never,least-allocated")
    assert "requested-never is not one of keel" in refused(*arguments)
    arguments = (folder, "--mode", "keel,balanced-allocation,gpu-clustering,least-allocated")
    for columns in ("20", "40", "80"):
        monkeypatch.setenv("COLUMNS", columns)
        lines = replay(*arguments).stdout.splitlines()
        (head,) = [line for line in lines if "mean of one seed" in line]
        assert head.split()[-4:] == [
            "keel",
            "balanced-allocation",
            "gpu-clustering",
            "least-allocated",
        ]
        (row,) = [line for line in lines if "GPUs allocated, %, at load 100" in line]
        assert len(row.split()) == 10
