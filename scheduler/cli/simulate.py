"""``evenkeel simulate``."""

from __future__ import annotations

import json
import sys
import time
from typing import Annotated, Literal

import typer
import yaml

from scheduler import printing, progress
from scheduler.api.placement import MODES
from scheduler.cli import manual, options, sources
from scheduler.errors import BadInput

Output = Literal["table", "json", "yaml"]


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
        bool, typer.Option("--only-ours", help="Only pods that name our scheduler.")
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
        bool, typer.Option("--fail-if-pending", help="Exit code 1 when a pod stays pending.")
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
    is_live = not file or kubeconfig is not None or context is not None
    try:
        command.check(request)
        with progress.stages() as tell:
            live = sources.whole_cluster(kubeconfig, context, tell) if is_live else None
            answer = command.answer(request, live, sys.stdin, tell)
    except BadInput as error:
        options.refuse(str(error))
    if output == "json":
        typer.echo(json.dumps(answer.printed, indent=2))
    elif output == "yaml":
        typer.echo(yaml.safe_dump(answer.printed, sort_keys=False), nl=False)
    else:
        report.show(answer.results, printing.console())
    for text in answer.complaints:
        typer.echo(text, err=True)
    raise typer.Exit(answer.code)
