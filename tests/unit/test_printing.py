"""Tables are whole off a terminal, and a place for the result is there before the work."""

import io
import os
import pty
import re
import sys
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from scheduler import printing
from scheduler.errors import BadInput
from scheduler.simulate import report
from tests.screen import Screen

UUID = "GPU-" + "0123456789abcdef" * 20


def table() -> Table:
    shown = Table(box=None)
    for name in ("CARD", "NOTE"):
        shown.add_column(name)
    shown.add_row(UUID, "short")
    shown.add_row("GPU-1", "long " * 60)
    return shown


def test_a_row_is_one_line_in_a_pipe_however_long_and_without_blanks_at_its_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    printing.make_console().print(table())
    lines = capsys.readouterr().out.splitlines()
    assert lines == printing.print_to_text(lambda console: console.print(table())).splitlines()
    assert len(lines) == 3
    assert lines[1].split() == [UUID, "short"]
    assert lines[2].split() == ["GPU-1", *["long"] * 60]
    assert lines == [line.rstrip() for line in lines]


def test_on_a_terminal_the_console_ends_at_its_edge() -> None:
    keyboard, screen = pty.openpty()
    out, sys.stdout = sys.stdout, os.fdopen(screen, "w")
    try:
        console = printing.make_console()
        assert console.width <= 200
        assert console.is_terminal
    finally:
        sys.stdout.close()
        sys.stdout = out
        os.close(keyboard)


def test_a_file_gets_no_colours_even_where_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in printing.print_to_text(lambda console: console.print("[red]red[/red]"))


def test_a_pipe_is_no_terminal_whatever_rich_takes_it_for() -> None:
    """As it does where colours are asked for."""
    of_pipe = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "xterm"})
    of_screen = Console(file=Screen(), force_terminal=True, _environ={"TERM": "xterm"})
    assert of_pipe.is_terminal
    assert not printing.is_terminal(of_pipe)
    assert printing.is_terminal(of_screen)
    dumb = Console(file=Screen(), force_terminal=True, _environ={"TERM": "dumb"})
    assert not printing.is_terminal(dumb)


def test_a_simulation_in_a_pipe_is_that_of_a_terminal_without_colours() -> None:
    pod: dict[str, object] = {
        "namespace": "default", "name": "p", "owner": None, "node": None, "displacedFrom": None, "devices": [], "claims": [],
        "message": "long " * 40, "unschedulable": None, "nominated": None, "victims": [], "group": None,
    }  # fmt: skip
    summary = {"scheduled": 0, "pods": 1, "pending": 1, "nodes": 0}
    result = {"pods": [pod], "groups": [], "workloads": [], "summary": summary, "passedOver": {}, "suspended": {}}  # fmt: skip
    shown = {}
    for file in (io.StringIO(), Screen()):
        console = Console(file=file, force_terminal=True, width=80, _environ={"TERM": "xterm"})
        report.print_report({"": result}, console)
        shown[type(file)] = file.getvalue()
    assert "\x1b" not in shown[io.StringIO]
    lines = shown[io.StringIO].splitlines()
    assert "default/p  (pending)  reason 1" in lines
    assert lines.count("  " + " ".join(["long"] * 15)) == 2
    assert "\x1b" in shown[Screen]
    assert re.sub("\x1b\\[[0-9;]*m", "", shown[Screen]).splitlines() == lines


def test_a_place_for_the_result_is_tried_and_left_as_it_was(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_text("kept", encoding="utf-8")
    for path in (new, old, None, Path("/dev/null")):
        printing.check_writable("--output-file", path)
    assert not new.exists()
    assert old.read_text(encoding="utf-8") == "kept"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gone/file", "No such file or directory"),
        (".", "Is a directory"),
        ("x" * 300, "File name too long"),
    ],
)
def test_a_place_that_takes_nothing_is_refused_with_its_option(
    tmp_path: Path, name: str, said: str
) -> None:
    with pytest.raises(BadInput, match=f"--plot: .*{said}"):
        printing.check_writable("--plot", tmp_path / name)
    with pytest.raises(BadInput, match=f"--plot: .*{said}"):
        printing.write_file("--plot", tmp_path / name, "")
