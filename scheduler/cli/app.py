"""The commands, in the order in which ``evenkeel --help`` names them."""

from __future__ import annotations

import errno
import os
import platform
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from scheduler import printing
from scheduler.cli import audit, demo, explain, manual, replay, run, simulate

_HELP_COLUMNS = 80  # longer lines are hard to read
_NO_PLACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})

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
    explain.explain,
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
    try:
        try:
            app(terminal_width=min(columns, _HELP_COLUMNS) - 2)
        finally:
            # What is still to be written decides how the command ends.
            if sys.stdout is not None:
                sys.stdout.flush()
    except OSError as error:
        code = _code_of_lost_output(error)
        if code is None:
            raise
        # What is left is not tried again at the very end.
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        sys.exit(code)


def _code_of_lost_output(error: OSError) -> int | None:
    """The exit code if output cannot be written (which is reported) or has no reader; None for another error."""
    if error.errno == errno.EPIPE:
        return 1
    # Errors of files that are opened have their names.
    if error.filename is not None or error.errno not in _NO_PLACE:
        return None
    printing.complain(f"output cannot be written: {error.strerror}")
    return 2
