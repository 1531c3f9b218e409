"""What any command writes on standard error has lines of at most 80 columns; no word is broken."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from scheduler import cli, printing
from scheduler.documents import writing
from tests.screen import Screen
from tests.unit.test_simulate_what_if import node, pod

LONG = "a-pod-whose-name-is-as-long-as-those-that-charts-and-replica-sets-make-5f6d8c"


@pytest.mark.parametrize(
    "arguments",
    [
        ("explain", "deploy", "web", "-f", "FILE"),
        ("explain", "service/web", "-f", "FILE"),
        ("explain", "pod", LONG, "-f", "FILE"),
        ("explain", "node", "a", "-f", "FILE"),
        ("explain", "pod", "nobody", "-f", "FILE"),
        ("simulate", "-f", "FILE"),
        ("simulate", "-f", "FILE", "--strict"),
        ("simulate", "-f", "FILE", "--mode", "unknown"),
        ("simulate", "-f", "FILE", "--scale", "deploy/web=3"),
        ("audit", "-f", "FILE", "--mode", "unknown"),
        ("audit", "-f", "FILE", "-o", "unknown"),
        ("audit", "-f", "FILE", "--nodes", "-o", "html"),
        ("audit", "-f", "FILE", "--orders", "many-of-them-as-many-as-there-are-stars-in-the-sky"),
        ("replay", "/nowhere", "--mode", "unknown"),
        ("replay", "FILE", "--experiment", "unknown"),
        ("run", "--log-level", "unknown"),
        ("rerun", "FILE"),
    ],
)
def test_sentences_on_standard_error_are_wrapped(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    file = tmp_path / "f.yaml"
    bad = pod(f"{LONG}-bad")
    bad["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "much more than there is of it"}
    }
    objects = [node("a"), *(pod(f"{LONG}-{i}", priority=i) for i in range(3)), bad, bad]
    file.write_text(writing.dump_all(objects), encoding="utf-8")
    result = CliRunner().invoke(cli.app, [str(file) if one == "FILE" else one for one in arguments])
    assert result.exit_code in (0, 2, 3), result.output
    assert result.stderr or result.exit_code == 0
    for line in result.stderr.splitlines():
        assert len(line) <= 80 or len(line.split()) == 1, line


def test_a_narrow_terminal_gets_lines_of_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", "40")
    printing.complain("one: " + "word " * 20)
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= 40
    assert [line[:2] for line in lines[1:]] == ["  "] * (len(lines) - 1)
