"""What a replay prints and writes says the same in every form."""

import io
import json
import re
import sys
from pathlib import Path

import pytest
from pyarrow import parquet
from rich.console import Console

from scheduler import printing
from scheduler.errors import BadInput
from scheduler.replay import results
from scheduler.replay.headings import write_heading
from scheduler.replay.measures.averages import Record


def record(mode: str, seed: int, percent: float | None, **more: float | None) -> Record:
    return {
        "trace": "t", "variant": "default", "experiment": "churn", "mode": mode, "seed": seed,
        "load": 1.0, "load_of": "gpu", "binding": "gpu", "queue": False, "waiting": "", "learn": "seen", "queues": "", "defrag": "", "arrivals": 10,
        "allocated_percent": percent, **more,
    }  # fmt: skip


RECORDS = [
    record("keel", 1, 90.0, wait_mean=None, dropped_pods=4321),
    record("keel", 2, 92.0, wait_mean=None, dropped_pods=4321),
    record("fgd", 1, 80.0, wait_mean=None, dropped_pods=0),
]


def shown(records: list[Record], width: int = 100) -> list[str]:
    out = io.StringIO()
    results.print_results(records, Console(file=out, width=width))
    return [line.strip() for line in out.getvalue().splitlines() if line.strip()]


def test_the_table_has_modes_across_and_figures_down_with_their_spread() -> None:
    lines = shown(RECORDS)
    assert lines[0] == "churn of t, default, load 1.0"
    assert lines[1].split() == ["mean", "±", "sd", "of", "2", "seeds", "keel", "fgd"]
    assert ["GPUs", "allocated,", "%", "91.00", "±", "1.41", "80.00"] in [
        line.split() for line in lines
    ]
    assert ["pods", "lost", "4321", "±", "0", "0.00"] in [line.split() for line in lines]
    assert not [line for line in lines if line.startswith("wait")]


@pytest.mark.parametrize("width", [100, 80, 40])
def test_modes_that_do_not_fit_stand_in_a_table_below_and_no_figure_is_cut(width: int) -> None:
    modes = ["balanced-allocation", *(f"mode-{i:02}" for i in range(12))]
    records = [
        record(mode, seed, 90.0 + i + seed) for i, mode in enumerate(modes) for seed in (1, 2)
    ]
    lines = shown(records, width)
    assert max(map(len, lines)) <= width
    heads = [line for line in lines if "seeds" in line]
    assert 2 <= len(heads) <= len(modes)
    assert [word for line in heads for word in line.split() if word in modes] == modes
    figures = [line for line in lines if line.startswith("GPUs ")]
    assert [
        float(figure) for line in figures for figure in re.findall(r"([\d.]+) ± 0\.71", line)
    ] == [91.5 + i for i in range(len(modes))]
    assert not [line for line in lines if "…" in line]


def test_off_a_terminal_all_modes_stand_in_one_table_a_row_a_line() -> None:
    modes = [f"mode-with-a-long-name-{i:02}" for i in range(13)]
    text = printing.print_to_text(
        lambda console: results.print_results([record(mode, 1, 90.0) for mode in modes], console)
    )
    (head,) = [line for line in text.splitlines() if "mean of one seed" in line]
    assert head.split()[-13:] == modes
    (row,) = [line for line in text.splitlines() if "GPUs allocated, %" in line]
    assert row.split() == ["GPUs", "allocated,", "%", *["90.00"] * 13]
    assert text.splitlines() == [line.rstrip() for line in text.splitlines()]


def test_of_every_resource_the_table_tells_what_matters_and_files_all() -> None:
    figures = dict.fromkeys(
        [
            *(f"allocated_{n}_percent_at_{at}" for n in ("cpu", "gpu", "a.b/io") for at in (80, 100, "end")),
            *(f"stranded_{n}_percent_at_{at}" for n in ("cpu", "gpu", "a.b/io") for at in (80, 100)),
            "lost_a.b/io_percent",
        ],
        5.0,
    )  # fmt: skip
    of_gpus = record("keel", 1, 90.0, **figures)
    names = [line.rsplit("  ", 1)[0].strip() for line in shown([of_gpus])[3:]]
    # What is allocated of GPUs stands in the line without a name.
    assert names == [
        "GPUs allocated, %", "cpu allocated, %, at load 100", "cpu allocated, %, at the end",
        "a.b/io allocated, %, at load 100", "a.b/io allocated, %, at the end",
        "cpu stranded, %, at load 100", "GPUs stranded, %, at load 100", "a.b/io stranded, %, at load 100",
        "requested a.b/io lost, %",
    ]  # fmt: skip
    of_cpu: Record = {**record("keel", 1, None, **figures), "load_of": "cpu"}
    lines = shown([of_cpu])
    assert lines[0] == "churn of t, default, load 1.0 of cpu"
    assert [line for line in lines if line.startswith("cpu allocated, %, at load 80")]
    assert not [line for line in lines if line.startswith("GPUs allocated, %")]
    run = json.loads(results.write_json([of_cpu]))["runs"][0]
    assert run.keys() >= figures.keys()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("asked_percent_at_end", "requested, % of capacity, at the end"),
        ("frag_ratio_percent_at_80", "fragments, % of idle GPUs, at load 80"),
        ("occupied_nodes_at_50", "nodes in use, at load 50"),
        ("lost_pods_percent_share", "pods lost, %, shares of a GPU"),
        ("lost_gpu_percent", "requested GPUs lost, %"),
        ("lost_gpu_percent_2", "requested GPUs lost, %, 2 GPUs"),
        ("lost_percent", "requests lost, %, resources that bind"),
        ("wait_p99_8_seconds", "wait, 99th percentile, seconds, 5 or more GPUs"),
        ("wait_longest", "wait, longest, lifetimes"),
    ],
)
def test_a_heading_says_what_a_figure_is_in_which_unit_and_where(name: str, expected: str) -> None:
    assert write_heading(name) == expected


def test_what_is_recorded_has_no_load_in_its_title_and_its_gpus_have_a_line() -> None:
    given: Record = {
        **record("keel", 1, None),
        "experiment": "recorded",
        "load": None,
        "queue": True,
        "waiting": "backfill",
    }
    given["allocated_gpu_percent"] = 7.0
    lines = shown([given])
    assert lines[0] == "recorded of t, default, queued"
    assert lines[-1].split() == ["GPUs", "allocated,", "%", "7.00"]


def test_what_is_0_with_every_mode_of_a_recorded_trace_is_one_sentence() -> None:
    recorded: Record = {"experiment": "recorded"}
    pods = {"lost_pods_percent": 0, "still_waiting_pods": 0, "dropped_pods": 0}
    records: list[Record] = [
        record("keel", 1, 90.0, **pods) | recorded,
        record("fgd", 1, 80.0, **pods | {"dropped_pods": 7}) | recorded,
    ]
    lines = shown(records)
    (said,) = [i for i, line in enumerate(lines) if line.startswith("Figures that are 0")]
    assert " ".join(lines[said:]) == (
        "Figures that are 0 with every mode and seed: pods lost, %; pods still waiting."
    )
    assert ["pods", "lost", "0.00", "7.00"] in [line.split() for line in lines]
    assert not any(line.startswith("pods lost, %") for line in lines[:said])
    as_filled = shown([record("keel", 1, 90.0, **pods)])
    assert any(line.split() == ["pods", "lost,", "%", "0.00"] for line in as_filled)


def test_json_holds_every_run_and_the_summary() -> None:
    found = json.loads(results.write_json(RECORDS))
    assert found["runs"] == RECORDS
    assert [(one["mode"], one["runs"], one["allocated_percent"]) for one in found["summary"]] == [
        ("keel", 2, 91.0),
        ("fgd", 1, 80.0),
    ]
    assert found["summary"][0]["allocated_percent_sd"] == pytest.approx(2**0.5)


def test_parquet_reads_back_as_the_records_with_their_types(tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"
    results.write_parquet([*RECORDS, record("x", 3, None, late=1.5)], path)
    table = parquet.read_table(path)
    read = table.to_pylist()
    assert read[:3] == [{**one, "late": None} for one in RECORDS]
    assert read[3]["late"] == pytest.approx(1.5)
    assert read[3]["allocated_percent"] is None
    kinds = {name: str(kind) for name, kind in zip(table.schema.names, table.schema.types, strict=True)}  # fmt: skip
    assert (kinds["mode"], kinds["seed"], kinds["queue"]) == ("string", "int64", "bool")
    assert kinds["wait_mean"] == kinds["allocated_percent"] == "double"


def test_parquet_of_the_same_records_is_the_same_to_the_byte(tmp_path: Path) -> None:
    for name in ("a", "b"):
        results.write_parquet(RECORDS, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"--output-file: .*gone"):
        results.write_parquet(RECORDS, tmp_path / "gone/runs.parquet")


def test_without_pyarrow_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(BadInput, match=r"needs the extra parquet: pip install .*\[parquet\]"):
        results.write_parquet(RECORDS, tmp_path / "runs.parquet")
