"""``evenkeel explain``."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import typer

from scheduler import printing
from scheduler.cli import answering, options

Output = Literal["table", "wide", "json", "yaml"]


def explain(
    *,
    what: Annotated[
        str,
        typer.Argument(
            autocompletion=options.make_completion(
                ("pod", "node", "group", "deploy", "sts", "ds", "rs", "rc", "job", "cj")
            ),
            help="A type as kubectl names it (pod, node, group, or a workload such as deploy), or TYPE/NAME. "
            "Of a workload, its first waiting pod is explained.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Argument(
            help="Name of the object, if WHAT is a type; for pods also the beginning of a name. "
            "NAMESPACE/NAME works, too."
        ),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option("-n", "--namespace", help='Namespace of the object. Default: "default".'),
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option(
            "-f",
            "--filename",
            metavar="FILE",
            help="Objects, YAML or JSON; - for standard input. Alone, no cluster is read. With "
            "--kubeconfig or --context, the objects are added to the cluster's or replace them.",
        ),
    ] = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    output: Annotated[
        Output,
        typer.Option(
            "-o",
            "--output",
            help="Form of the answer; wide also has the ids of cards, and off a terminal rows of any width.",
        ),
    ] = "table",
    config_file: options.ConfigFile = None,
) -> None:
    """Say why a pod or a group of pods waits or went where it went, or what is on a node and which pods wait for it.

    For a pod it shows why nodes refuse it, the node that comes closest, what would
    let it in and how the best nodes score. Every advice was tried on the
    scheduler's own engine. For a group it shows how many of its pods fit in the
    domains of each level that come closest. Nothing is written.

    Exit codes: 0 answered; 2 there is no such pod, node or group, or an argument, a file
    or the cluster cannot be read; 3 answered, but objects of files have mistakes
    and were left out.
    """
    from scheduler.explain import command, report  # noqa: PLC0415 - numba costs half a second

    request = command.Request(
        config=options.read_config(config_file),
        what=what,
        name=name,
        namespace=namespace,
        files=file or (),
    )
    answer = answering.read_and_answer(
        file or (),
        kubeconfig,
        context,
        partial(command.check_request, request),
        partial(command.explain, request),
        request.config.config_maps,
    )
    is_wide = output == "wide"
    answering.print_answer(
        answer,
        output,
        lambda: report.print_answer(answer.printed, printing.make_console(), is_wide=is_wide),
    )
