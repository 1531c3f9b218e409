"""The commands, in the order in which ``evenkeel --help`` names them."""

from __future__ import annotations

import typer

from scheduler.cli import audit, demo, replay, run, simulate

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A GPU-aware scheduler for Kubernetes: picks the node and the GPUs on it, and binds.",
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
    app.command()(command)


def main() -> None:
    """The console script."""
    app()
