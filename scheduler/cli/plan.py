"""``evenkeel plan``."""

from __future__ import annotations

import time
from functools import partial
from typing import Annotated, Literal

import typer

from scheduler import printing
from scheduler.cli import answering, options

Output = Literal["table", "json", "yaml", "markdown"]
What = Literal["defrag"]


def plan(
    *,
    what: Annotated[
        What,
        typer.Argument(
            help="defrag: which running pods to move so that cards and nodes become whole, or waiting pods find room."
        ),
    ],
    file: Annotated[
        list[str] | None,
        typer.Option(
            "-f",
            "--filename",
            metavar="FILE",
            help="Objects, YAML or JSON, also .gz; - for standard input. Alone, no cluster is read.",
        ),
    ] = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    only_for: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="NAMESPACE/POD",
            help="Plan only what lets this waiting pod in, with its group if it has one.",
        ),
    ] = None,
    moves: Annotated[int, typer.Option(metavar="N", help="The most moves.")] = 10,
    min_run: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Move only pods that have run for so long, as 30m or 2h."
        ),
    ] = "10m",
    output: Annotated[Output, typer.Option("-o", "--output", help="Form of the answer.")] = "table",
    config_file: options.ConfigFile = None,
) -> None:
    """Plan which running pods to move, what each move frees, and which waiting pods it lets in.

    Each move is tried on the scheduler's own engine, in order: the pod leaves, and
    one like it goes where the scheduler puts it. No card and no node is broken on
    the way, so a plan that is stopped half-way leaves nothing worse than it was.
    Only pods move that a controller makes again, that have run for a while and that
    their disruption budgets let go. Nothing is written, and nothing is moved.

    Exit codes: 0 answered, also if there is nothing to move; 2 an argument, a file
    or the cluster cannot be read; 3 answered, but objects of files have mistakes
    and were left out.
    """
    from scheduler.plan import command, markdown, report  # noqa: PLC0415 - numba costs half a second

    del what
    request = command.Request(
        config=options.read_config(config_file),
        files=file or (),
        only_for=only_for,
        most=moves,
        min_run=min_run,
        now=int(time.time()),
    )
    answer = answering.read_and_answer(
        file or (),
        kubeconfig,
        context,
        partial(command.check_request, request),
        partial(command.plan_defrag, request),
        request.config.config_maps,
    )

    def show() -> None:
        if output == "markdown":
            typer.echo(markdown.write_comment(answer.printed), nl=False)
        else:
            report.print_plan(answer.printed, printing.make_console())

    answering.print_answer(answer, output, show)
