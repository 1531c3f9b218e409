"""``evenkeel queue``."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import typer

from scheduler import printing
from scheduler.cli import answering, options

Output = Literal["table", "json", "yaml"]
What = Literal["list", "tree", "show", "why"]


def queue(
    *,
    what: Annotated[
        What,
        typer.Argument(
            help="list: every queue; tree: cohorts and queues as a tree; show NAME: one queue or cohort in full; "
            "why NAMESPACE/NAME: why a workload waits, or a pod or PodGroup in a queue of KAI's."
        ),
    ],
    name: Annotated[
        str | None,
        typer.Argument(
            help="With show, a queue or a cohort (cohort/NAME, or kai/NAME for KAI's, where a queue has the same name); "
            "with why, a Workload, a pod or a PodGroup."
        ),
    ] = None,
    file: options.ObjectFiles = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="A dump of a cluster, read in the place of a cluster; - for standard input. May be repeated.",
        ),
    ] = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    decide: Annotated[
        bool,
        typer.Option(
            "--decide",
            help="First give quota to all who can have it, as simulate does. Else all is as the objects say.",
        ),
    ] = False,
    most: Annotated[
        int,
        typer.Option(metavar="N", help="With show: how many of those who wait; 0 for all."),
    ] = 20,
    output: Annotated[Output, typer.Option("-o", "--output", help="Form of the answer.")] = "table",
    config_file: options.ConfigFile = None,
) -> None:
    """Show the queues of tenants (ClusterQueues, Cohorts): quotas, who uses and borrows them, who waits, and why.

    Objects are only read: those of files, or of a cluster in which Kueue gives
    quota. Why a workload waits, and which workloads could give quota back for it,
    is answered by the scheduler's own engine.

    Exit codes: 0 answered, also if there are no queues; 2 there is no such queue or
    workload, or an argument, a file or the cluster cannot be read; 3 answered, but
    objects of files have mistakes and were left out.
    """
    from scheduler.queues import command, report  # noqa: PLC0415 - numba costs half a second

    if baseline and (kubeconfig or context):
        options.refuse(
            "--baseline: cannot be combined with --kubeconfig or --context; the baseline is files or a cluster"
        )
    request = command.Request(
        config=options.read_config(config_file),
        what=what,
        name=name,
        files=file or (),
        baseline=baseline or (),
        decide=decide,
        most=most,
    )
    answer = answering.read_and_answer(
        (*request.baseline, *request.files),
        kubeconfig,
        context,
        partial(command.check_request, request),
        partial(command.answer, request),
        request.config.config_maps,
    )
    answering.print_answer(
        answer, output, lambda: report.print_answer(answer.printed, printing.make_console())
    )
