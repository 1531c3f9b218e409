"""The commands, in the order in which ``evenkeel --help`` names them."""

from __future__ import annotations

import platform
import shutil
from importlib import metadata
from typing import Annotated

import typer

from scheduler.cli import audit, demo, manual, replay, run, simulate

_HELP_COLUMNS = 80  # longer lines are hard to read

app = typer.Typer(
    cls=manual.Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Boxes cut the names of options on a narrow terminal.
    rich_markup_mode=None,
)
for command in (
    run.run,
    run.rerun,
    simulate.simulate,
    replay.replay,
    audit.audit,
    demo.demo,
    demo.warm,
):
    # Given apart, because a line made from the long text is cut.
    app.command(cls=manual.Command, short_help=command.__doc__)(command)


def _version(is_asked: bool) -> None:
    if is_asked:
        version = metadata.version("evenkeel-scheduler")
        typer.echo(f"evenkeel {version} (Python {platform.python_version()})")
        raise typer.Exit


@app.callback()
def _of_all_commands(
    *,
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """A GPU-aware scheduler for Kubernetes: picks the node and the GPUs on it, and binds."""


def main() -> None:
    """The console script."""
    columns = shutil.get_terminal_size().columns
    app(terminal_width=min(columns, _HELP_COLUMNS) - 2)
