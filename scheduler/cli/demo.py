"""``evenkeel demo`` and ``evenkeel warm``."""

from __future__ import annotations

import asyncio
import signal
from typing import Annotated

import typer
from rich.console import Console

from scheduler import config as settings
from scheduler import printing


def demo(
    keep: Annotated[
        bool, typer.Option(help="Leave the cluster running and say how to use kubectl with it.")
    ] = False,
) -> None:
    """Try it: four placement patterns on an embedded cluster, drawn."""
    from scheduler.demo import run as demo_run  # noqa: PLC0415 - for this command only

    console = Console()
    # Both signals end it in order, also in the background of a script, where SIGINT is ignored by default.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        succeeded = asyncio.run(demo_run.demo(console, keep=keep))
    except demo_run.DemoFailed as error:
        console.print(f"[red]{error}[/red]")
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        succeeded = True
    if not succeeded:
        raise typer.Exit(1)


def warm() -> None:
    """Compile all kernels into the cache, so that the next start need not."""
    from scheduler.engine import warm as kernels  # noqa: PLC0415 - as above

    count = kernels.Count()
    with (
        printing.progress("kernels", len(count)) as progressed,
        # What compiles them is one call, so somebody else has to look.
        printing.often(lambda: progressed(count.compiled())),
    ):
        kernels.warm(settings.Config())
