"""What is being done is drawn on a terminal only, and what is quickly done is not drawn at all."""

import io
import os
import time
from pathlib import Path

import pytest
from rich.console import Console

from scheduler import progress
from scheduler.simulate.reading import files
from tests.screen import Screen


def a_screen() -> tuple[Console, Screen]:
    screen = Screen()
    return Console(file=screen, force_terminal=True, width=80, _environ={"TERM": "xterm"}), screen


def test_what_takes_long_is_told_on_a_terminal() -> None:
    console, screen = a_screen()
    with progress.show_stages(console, patience_seconds=0.0) as tell:
        tell("placing pods", 1, 2)
        # It is drawn by a thread of its own.
        while "placing pods" not in screen.getvalue():
            time.sleep(0.01)


def test_what_is_quickly_done_is_silent() -> None:
    console, screen = a_screen()
    pipe = io.StringIO()
    for one in (console, Console(file=pipe, force_terminal=True, width=80)):
        with progress.show_stages(one, patience_seconds=1000.0) as tell:
            tell("placing pods", 1, 2)
    assert screen.getvalue() + pipe.getvalue() == ""


def test_a_pipe_gets_one_line_of_what_takes_long_even_where_colours_are_wanted() -> None:
    pipe = io.StringIO()
    coloured = Console(file=pipe, force_terminal=True, width=80)
    with progress.show_stages(coloured, patience_seconds=0.0) as tell:
        tell("reading dump.yaml (95 MB)")
        while not pipe.getvalue():
            tell("placing pods", 400, 1500)
        tell("placing pods", 500, 1500)
    assert pipe.getvalue() in {
        "evenkeel: reading dump.yaml (95 MB) ...\n",
        "evenkeel: placing pods, 400 of 1,500 ...\n",
    }


def test_what_takes_long_is_told_on_standard_error_and_never_on_standard_output(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE_SECONDS", 0.0)
    err = ""
    with progress.show_bar("runs", 40) as progressed:
        progressed(2.5)
        while not err:
            out, err = capsys.readouterr()
            assert out == ""
    assert err in {"evenkeel: runs, 0 of 40 ...\n", "evenkeel: runs, 2 of 40 ...\n"}
    assert capsys.readouterr() == ("", "")


def test_a_pipe_that_nobody_reads_on_is_no_trouble() -> None:
    pipe = io.StringIO()
    console = Console(file=pipe, force_terminal=True, width=80)
    with progress.show_stages(console, patience_seconds=0.0) as tell:
        pipe.close()
        tell("placing pods", 1, 2)


def test_a_file_that_takes_long_to_read_is_named_with_its_size(tmp_path: Path) -> None:
    small, large = tmp_path / "small.yaml", tmp_path / "large.yaml"
    small.write_text("a: b\n", encoding="utf-8")
    with large.open("wb") as file:
        file.truncate(95_000_000)
    assert files.describe_file(str(small)) == str(small)
    assert files.describe_file(str(large)) == f"{large} (95 MB)"
    assert files.describe_file("-") == "standard input"
    assert files.describe_file("nowhere.yaml") == "nowhere.yaml"


def test_progress_and_its_look_leave_a_pipe_alone(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[float] = []
    with progress.show_bar("kernels", 3) as progressed, progress.look_often(lambda: told.append(1)):
        progressed(2)
        while not told:
            pass
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


def test_a_bar_names_what_is_counted_and_goes_when_all_is_done() -> None:
    console, screen = a_screen()
    with progress.show_bar("kernels", 3, console) as progressed:
        progressed(1.5)
    drawn = screen.getvalue()
    assert "kernels" in drawn
    assert "1 of 3" in drawn
    assert drawn.endswith("\x1b[2K")  # the line is wiped


def test_a_file_is_read_whole_and_a_pipe_too(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"one\ntwo\n")
    with progress.read_file(file) as lines:
        assert list(lines) == [b"one\n", b"two\n"]
    reading, writing = os.pipe()
    os.write(writing, b"three\n")
    os.close(writing)
    with progress.read_file(Path(f"/dev/fd/{reading}")) as lines:
        assert list(lines) == [b"three\n"]
    os.close(reading)
