"""``evenkeel`` as a shell runs it: help on any terminal, completion, the version, and what is refused."""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

from scheduler import cli
from scheduler.api.placement import Mode
from scheduler.replay import words
from tests.prose import unwrapped

SCRIPT = Path(sys.executable).with_name("evenkeel")
ROOT = Path(__file__).parents[2]
COMMANDS = (
    "run",
    "rerun",
    "simulate",
    "explain",
    "plan",
    "rebalance",
    "queue",
    "replay",
    "audit",
    "demo",
    "warm",
)
# Says at its end which modules were imported.
_IMPORTED = """
import sys
from evenkeel_scheduler import main
sys.argv = ["evenkeel", *sys.argv[1:]]
try:
    main()
finally:
    print("imported:", *(name for name in ("numba", "kopf", "matplotlib") if name in sys.modules))
"""


def evenkeel(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scheduler", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )


def in_one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_the_terminal_and_names_every_option_whole(command: str, columns: int) -> None:
    done = evenkeel(*filter(None, [command]), "--help", COLUMNS=str(columns))
    assert done.returncode == 0, unwrapped(done.stderr)
    assert "…" not in done.stdout
    assert "..." not in done.stdout.replace("ARGS]...", "").replace(",...", "")
    for line in done.stdout.splitlines():
        # The name of an option with all that it may be stands on a line of its own.
        assert len(line) <= columns or re.match(r"  (-o, )?--[\w-]+ <[^>]+>$", line), line
    app = cli.app.registered_commands
    names = {one.callback.__name__ for one in app if one.callback is not None}
    assert names == set(COMMANDS)
    if not command:
        assert all(re.search(rf"^  {name}\b", done.stdout, re.MULTILINE) for name in COMMANDS)


def test_help_lists_the_words_that_an_option_takes() -> None:
    told = in_one_line(evenkeel("replay", "--help").stdout)
    assert "<fill|churn|bursts|daily|heavy-tail|recorded>" in told
    assert "<seen|trace>" in told
    assert "<table|json|parquet>" in told
    assert ", ".join(words.MODES) in told
    told = in_one_line(evenkeel("run", "--help").stdout)
    assert "<debug|info|warning|error>" in told


def test_evenkeel_alone_shows_its_help() -> None:
    alone, asked = evenkeel(), evenkeel("--help")
    assert alone.stdout + alone.stderr == asked.stdout
    assert "Commands:" in asked.stdout


def test_the_version_is_that_of_the_distribution() -> None:
    done = evenkeel("--version")
    version, python = (
        metadata.version("evenkeel-scheduler"),
        ".".join(map(str, sys.version_info[:3])),
    )
    assert (done.returncode, done.stdout) == (0, f"evenkeel {version} (Python {python})\n")


@pytest.mark.parametrize("line", [["--help"], ["replay", "--help"], ["run", "--help"], []])
def test_help_and_completion_import_nothing_heavy(line: list[str]) -> None:
    """Numba costs half a second, at every press of a key."""
    env = {"_EVENKEEL_COMPLETE": "complete_bash", "COMP_WORDS": "evenkeel re", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTED, *line],
        cwd=ROOT, env={**os.environ, **({} if line else env)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1].split() == ["imported:"], done.stdout + unwrapped(
        done.stderr
    )


def completed(line: str, shell: str = "bash") -> list[str]:
    """What a shell offers at the end of a line: bash runs the script that --show-completion gives it."""
    env = {**os.environ, "PATH": f"{SCRIPT.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    if shell == "zsh":
        env |= {"_EVENKEEL_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": line}
        told = subprocess.run([SCRIPT], env=env, capture_output=True, text=True, check=True).stdout
        return re.findall(r'(?:\(\(|\n)"([^"]+)"', told)
    program = f"""
        source <(evenkeel --show-completion bash)
        COMP_WORDS=({line.replace(",", chr(92) + ",")}) COMP_CWORD={len(line.split()) - (not line.endswith(" "))}
        [[ '{line}' == *' ' ]] && COMP_WORDS+=('')
        _evenkeel_completion evenkeel
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "-c", program], env={**env, "SHELL": "/bin/bash"}, cwd=ROOT,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.split()


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("evenkeel re", ["rerun", "rebalance", "replay"]),
        ("evenkeel replay --experiment ", list(words.EXPERIMENTS)),
        ("evenkeel replay --learn ", ["seen", "trace"]),
        ("evenkeel replay -o ", ["table", "json", "parquet"]),
        ("evenkeel replay --mode keel,f", ["keel,fgd", "keel,first-fit"]),
        ("evenkeel replay --mode ran", ["random"]),
        ("evenkeel replay bench/data/openb --variant gpushare4", ["gpushare40"]),
        (
            "evenkeel replay bench/data/openb --variant default,multigpu",
            [f"default,multigpu{n}" for n in (20, 30, 40, 50)],
        ),
        ("evenkeel audit -o ", ["table", "json", "yaml", "html", "csv"]),
        ("evenkeel audit --mode defa", ["default"]),
        ("evenkeel simulate -o ", ["table", "wide", "json", "yaml", "markdown"]),
        ("evenkeel simulate --mode keel,lambda-g-", ["keel,lambda-g-v3"]),
        ("evenkeel run --log-level ", ["debug", "info", "warning", "error"]),
        ("evenkeel run --lease", ["--lease-namespace", "--lease-name", "--lease-seconds"]),
    ],
)
def test_a_shell_completes_commands_options_and_words(
    line: str, offered: list[str], shell: str
) -> None:
    assert completed(line, shell) == offered


def test_completion_is_installed_for_the_shell_that_asks(tmp_path: Path) -> None:
    env = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    asking = ["bash", "-c", f"{SCRIPT} --install-completion; true"]
    subprocess.run(asking, env=env, capture_output=True, check=True)
    completes = ["bash", "-c", "source ~/.bashrc; complete -p evenkeel"]
    told = subprocess.run(completes, env=env, capture_output=True, text=True, check=True).stdout
    assert "_evenkeel_completion" in told


def test_every_mode_but_the_one_that_needs_a_curve_is_offered() -> None:
    assert set(words.MODES) == set(Mode) - {Mode.REQUESTED_TO_CAPACITY_RATIO}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "70000"], "'--port': must be at most 65535"),
        (["--port", "-1"], "'--port': must be at least 0"),
        (["--log-level", "loud"], "'loud' is not one of 'debug', 'info', 'warning', 'error'"),
    ],
)
def test_run_refuses_a_wrong_argument(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(cli.app, ["run", *arguments])
    assert result.exit_code == 2
    assert said in unwrapped(result.stderr)


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "-o", "nonsense"),
        ("simulate", "--mode", "fastest"),
        ("simulate", "--baseline", "x", "--context", "y"),
        ("explain", "service", "web"),
        ("replay", "bench/data/openb", "--experiment", "drain"),
        ("replay", "docs"),
        ("audit", "-f", "docs/examples/nodes.yaml", "--mode", "fastest"),
        ("rerun", "docs/examples/nodes.yaml"),
    ],
)
def test_a_refusal_is_wrapped_at_80_columns(arguments: tuple[str, ...]) -> None:
    lines = CliRunner().invoke(cli.app, arguments).stderr.splitlines()
    assert lines[-1].startswith("  ")
    assert max(map(len, lines)) <= 80


def test_a_refusal_of_run_is_one_line_as_its_log_has() -> None:
    # A process of its own: `run` sets up the log of its process.
    command = [str(SCRIPT), "run", "--config", "docs/examples/nodes.yaml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
