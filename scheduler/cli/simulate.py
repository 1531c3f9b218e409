"""``evenkeel simulate``."""

from __future__ import annotations

import time
from functools import partial
from typing import Annotated, Literal

import typer

from scheduler import printing
from scheduler.api.placement import MODES
from scheduler.cli import answering, manual, options

Output = Literal["table", "wide", "json", "yaml"]


def simulate(
    *,
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
    explain: Annotated[
        bool, typer.Option("--explain", help="What every node says of every pod.")
    ] = False,
    only_ours: Annotated[
        bool,
        typer.Option(
            "--only-ours", help="Only pods that name our scheduler, and those of your own files."
        ),
    ] = False,
    without_node: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE",
            help="As if the node were gone; its pods are placed again. Again for others.",
        ),
    ] = None,
    cordon: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE", help="As if the node took no new pods. Again for others."),
    ] = None,
    add_node: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="File of a Node that comes. Again for others."),
    ] = None,
    scale: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT=N",
            help="As if a workload had this size: deploy/web=3, or team-a/deploy/web=3; also sts, "
            "rs, rc, and job, of which the parallelism. Again for others.",
        ),
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODE,...",
            autocompletion=options.listed(MODES),
            help="Place with this mode in place of the configuration's; again, or with commas, to "
            "compare several. There are:" + manual.words(MODES),
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="File of a BalancePolicy, or of its spec alone; one of the same name goes. Again "
            "for others.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse everything for one malformed object (2).")
    ] = False,
    fail_if_pending: Annotated[
        bool,
        typer.Option(
            "--fail-if-pending",
            help="Exit code 1 when a pod stays pending; beside a cluster or a dump, one of your files or of the change.",
        ),
    ] = False,
    config_file: options.ConfigFile = None,
) -> None:
    """Show where pods would go, in a cluster or from manifests alone.

    Workloads (Deployment, StatefulSet, ReplicaSet, DaemonSet, Job, CronJob,
    ReplicationController) stand for the pods that they have yet to make.

    Exit codes: 0 answered; 1 with --fail-if-pending, a pod stays pending;
    2 an argument, a file or the cluster cannot be read; 3 answered, but objects
    with mistakes were left out or held. 3 goes before 1. Of a cluster that is
    asked with -f or a change, what waited or was wrong before does not count.
    """
    from scheduler.simulate import command, report  # noqa: PLC0415 - numba costs half a second

    request = command.Request(
        config=options.config(config_file),
        files=file or (),
        output=output,
        explain=explain,
        only_ours=only_ours,
        strict=strict,
        fail_if_pending=fail_if_pending,
        without_nodes=without_node or (),
        cordon=cordon or (),
        add_nodes=add_node or (),
        scale=scale or (),
        modes=mode or (),
        policies=policy or (),
        now=int(time.time()),
    )
    answer = answering.read(
        file,
        kubeconfig,
        context,
        partial(command.check, request),
        partial(command.answer, request),
    )
    is_wide = output == "wide"
    answering.give(
        answer, output, lambda: report.show(answer.results, printing.console(), is_wide=is_wide)
    )
