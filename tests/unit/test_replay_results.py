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
from scheduler.replay.measures.averages import Record


def record(mode: str, seed: int, percent: float | None, **more: float | None) -> Record:
    return {
        "trace": "t", "variant": "default", "experiment": "churn", "mode": mode, "seed": seed,
        "load": 1.0, "load_of": "gpu", "binding": "gpu", "queue": False, "learn": "seen", "arrivals": 10,
        "allocated_percent": percent, **more,
    }  # fmt: skip


RECORDS = [
    record("keel", 1, 90.0, wait=None, dropped=4321),
    record("keel", 2, 92.0, wait=None, dropped=4321),
    record("fgd", 1, 80.0, wait=None, dropped=0),
]


def shown(records: list[Record], width: int = 100) -> list[str]:
    out = io.StringIO()
    results.show(records, Console(file=out, width=width))
    return [line.strip() for line in out.getvalue().splitlines() if line.strip()]


def test_the_table_has_modes_across_and_figures_down_with_their_spread() -> None:
    lines = shown(RECORDS)
    assert lines[0] == "churn of t, default, load 1.0"
    assert lines[1].split() == ["mean", "±", "sd", "of", "2", "seeds", "keel", "fgd"]
    assert ["allocated", "%", "91.00", "±", "1.41", "80.00"] in [line.split() for line in lines]
    assert ["dropped", "4321", "±", "0", "0.00"] in [line.split() for line in lines]
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
    figures = [line for line in lines if line.startswith("allocated %")]
    assert [
        float(figure) for line in figures for figure in re.findall(r"([\d.]+) ± 0\.71", line)
    ] == [91.5 + i for i in range(len(modes))]
    assert not [line for line in lines if "…" in line]


def test_off_a_terminal_all_modes_stand_in_one_table_a_row_a_line() -> None:
    modes = [f"mode-with-a-long-name-{i:02}" for i in range(13)]
    text = printing.text(
        lambda console: results.show([record(mode, 1, 90.0) for mode in modes], console)
    )
    (head,) = [line for line in text.splitlines() if "mean of one seed" in line]
    assert head.split()[-13:] == modes
    (row,) = [line for line in text.splitlines() if "allocated %" in line]
    assert row.split() == ["allocated", "%", *["90.00"] * 13]
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
        "allocated %", "allocated cpu % at 100", "allocated cpu % at end", "allocated a.b/io % at 100",
        "allocated a.b/io % at end", "stranded cpu % at 100", "stranded gpu % at 100",
        "stranded a.b/io % at 100", "lost a.b/io %",
    ]  # fmt: skip
    of_cpu: Record = {**record("keel", 1, None, **figures), "load_of": "cpu"}
    lines = shown([of_cpu])
    assert lines[0] == "churn of t, default, load 1.0 of cpu"
    assert [line for line in lines if line.startswith("allocated cpu % at 80")]
    assert not [line for line in lines if line.startswith("allocated %")]
    run = json.loads(results.as_json([of_cpu]))["runs"][0]
    assert run.keys() >= figures.keys()


def test_what_is_recorded_has_no_load_in_its_title_and_its_gpus_have_a_line() -> None:
    given: Record = {
        **record("keel", 1, None),
        "experiment": "recorded",
        "load": None,
        "queue": True,
    }
    given["allocated_gpu_percent"] = 7.0
    lines = shown([given])
    assert lines[0] == "recorded of t, default, queued"
    assert lines[-1].split() == ["allocated", "gpu", "%", "7.00"]


def test_what_is_0_with_every_mode_of_a_recorded_trace_is_one_sentence() -> None:
    recorded: Record = {"experiment": "recorded"}
    pods = {"lost_pods": 0, "waiting_pods": 0, "dropped": 0}
    records: list[Record] = [
        record("keel", 1, 90.0, **pods) | recorded,
        record("fgd", 1, 80.0, **pods | {"dropped": 7}) | recorded,
    ]
    lines = shown(records)
    assert lines[-1] == "Figures that are 0 with every mode and seed: lost pods, waiting pods."
    assert ["dropped", "0.00", "7.00"] in [line.split() for line in lines]
    assert not any(line.split()[:2] == ["lost", "pods"] for line in lines)
    as_filled = shown([record("keel", 1, 90.0, **pods)])
    assert any(line.split() == ["lost", "pods", "0.00"] for line in as_filled)


def test_json_holds_every_run_and_the_summary() -> None:
    found = json.loads(results.as_json(RECORDS))
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
    assert kinds["wait"] == kinds["allocated_percent"] == "double"


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
