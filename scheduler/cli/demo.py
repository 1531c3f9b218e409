"""``evenkeel demo`` and ``evenkeel warm``."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Annotated, Any

import typer
from rich.console import Console

from scheduler.cli import compiling


def demo(
    keep: Annotated[
        bool, typer.Option(help="Leave the cluster running and print how to use kubectl with it.")
    ] = False,
) -> None:
    """Try Evenkeel on an embedded cluster: four placement patterns, and keel beside least-allocated, as pictures."""
    from scheduler.demo import run as demo_run  # noqa: PLC0415 - for this command only
    from scheduler.demo.operator import NeverStartedError  # noqa: PLC0415

    console = Console()
    try:
        succeeded = asyncio.run(_run_until_signal(demo_run.run_demo(console, keep=keep)))
    except (demo_run.DemoFailed, NeverStartedError) as error:
        console.print(f"{error}", style="red", markup=False)
        raise typer.Exit(1) from error
    except asyncio.CancelledError:
        # This is a shell's exit code for a program that Ctrl-C ended before its work was done.
        raise typer.Exit(130) from None
    if not keep:
        console.print(
            "\nNext, place the last pattern from manifests alone, with the answer of every node:"
        )
        # The command is not broken into lines, so that it can be copied.
        command = f"  {demo_run.find_next_command()}"
        console.print(command, soft_wrap=True, markup=False, highlight=False)
    if not succeeded:
        raise typer.Exit(1)


async def _run_until_signal(work: Coroutine[Any, Any, bool]) -> bool:
    """Run until the work is done or a signal comes; a second signal does not disturb the end.

    Signals are also handled in the background of a script, where SIGINT is ignored by default, and when the
    terminal is closed, so that no process is left behind. A demo that was started under nohup stays.
    """
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    ending = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        ending.append(signal.SIGHUP)

    def end() -> None:
        for number in ending:
            loop.add_signal_handler(number, lambda: None)
        task.cancel()

    for number in ending:
        loop.add_signal_handler(number, end)
    return await task


def warm() -> None:
    """Compile all kernels into the cache, so that the next start is fast."""
    compiling.compile_kernels()
