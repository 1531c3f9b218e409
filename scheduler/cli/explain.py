"""``evenkeel explain``."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import typer

from scheduler import printing
from scheduler.cli import answering, options

Output = Literal["table", "json", "yaml"]


def explain(
    *,
    what: Annotated[
        str,
        typer.Argument(
            autocompletion=options.listed(
                ("pod", "node", "deploy", "sts", "ds", "rs", "rc", "job", "cj")
            ),
            help="pod, node, or a workload as kubectl calls it, such as deploy: the first of its pods that waits.",
        ),
    ],
    name: Annotated[
        str,
        typer.Argument(
            help="NAMESPACE/NAME, or NAME in default; of pods also how their names begin; of a node its name."
        ),
    ],
    file: Annotated[
        list[str] | None,
        typer.Option(
            "-f",
            "--filename",
            metavar="FILE",
            help="Objects, YAML or JSON; - for standard input. Alone: no cluster is asked. With "
            "--kubeconfig or --context: they come to the cluster's, or stand in their place.",
        ),
    ] = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    output: Annotated[Output, typer.Option("-o", "--output", help="Form of the answer.")] = "table",
    config_file: options.ConfigFile = None,
) -> None:
    """Say why a pod waits or went where it went, or what is on a node and who waits for it.

    Of a pod: what the nodes say of it, the node that comes closest, what would
    let it in and how the best nodes score. Everything that is advised was tried
    on the scheduler's own engine. Nothing is written.

    Exit codes: 0 answered; 2 there is no such pod or node, or an argument, a file
    or the cluster cannot be read; 3 answered, but objects of files have mistakes
    and were left out.
    """
    from scheduler.explain import command, report  # noqa: PLC0415 - numba costs half a second

    request = command.Request(
        config=options.config(config_file), what=what, name=name, files=file or ()
    )
    answer = answering.read(
        file,
        kubeconfig,
        context,
        partial(command.check, request),
        partial(command.answer, request),
    )
    answering.give(answer, output, lambda: report.show(answer.printed, printing.console()))
