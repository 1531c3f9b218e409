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
from scheduler.cli import (
    audit,
    demo,
    explain,
    manual,
    plan,
    queue,
    rebalance,
    replay,
    run,
    simulate,
)

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
    plan.plan,
    rebalance.rebalance,
    queue.queue,
    replay.replay,
    audit.audit,
    demo.demo,
    demo.warm,
):
    # This help is given separately, because a line made from the long text is cut.
    app.command(cls=manual.Command, short_help=command.__doc__)(command)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        version = metadata.version("evenkeel-scheduler")
        typer.echo(f"evenkeel {version} (Python {platform.python_version()})")
        raise typer.Exit


@app.callback()
def _accept_options(
    *,
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """A GPU-aware scheduler for Kubernetes: picks the node and the GPUs on it, and binds."""


def main() -> None:
    """Run the console script."""
    columns = shutil.get_terminal_size().columns
    try:
        try:
            app(terminal_width=min(columns, _HELP_COLUMNS) - 2)
        finally:
            # Writing the rest of the output decides how the command ends.
            if sys.stdout is not None:
                sys.stdout.flush()
    except OSError as error:
        code = _find_lost_output_code(error)
        if code is None:
            raise
        # The rest of the output is not written again at the very end.
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        sys.exit(code)


def _find_lost_output_code(error: OSError) -> int | None:
    """Find the exit code if output cannot be written (which is reported) or has no reader; None for another error."""
    if error.errno == errno.EPIPE:
        return 1
    # Errors of opening a file have the name of the file.
    if error.filename is not None or error.errno not in _NO_PLACE:
        return None
    printing.complain(f"output cannot be written: {error.strerror}")
    return 2
