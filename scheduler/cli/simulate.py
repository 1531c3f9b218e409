"""``evenkeel simulate``."""

from __future__ import annotations

import time
from functools import partial
from typing import Annotated, Literal

import typer

from scheduler import printing
from scheduler.api.placement import MODES
from scheduler.cli import answering, manual, options

Output = Literal["table", "wide", "json", "yaml", "markdown"]


def simulate(
    *,
    file: Annotated[
        list[str] | None,
        typer.Option(
            "-f",
            "--filename",
            metavar="FILE",
            help="Objects, YAML or JSON, also .gz; - for standard input. Beside a baseline they are your own, "
            "and are added to its objects or replace those of the same name.",
        ),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="A dump of a cluster, read in the place of a cluster; - for standard input. May be repeated.",
        ),
    ] = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    output: Annotated[Output, typer.Option("-o", "--output", help="Form of the answer.")] = "table",
    explain: Annotated[
        bool, typer.Option("--explain", help="Show for every pod how each node answers and scores.")
    ] = False,
    only_ours: Annotated[
        bool,
        typer.Option("--only-ours", help="Only pods that name our scheduler, and your own pods."),
    ] = False,
    without_node: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE",
            help="Simulate that the node is gone; its pods are placed again. May be repeated.",
        ),
    ] = None,
    cordon: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE", help="Simulate that the node takes no new pods. May be repeated."
        ),
    ] = None,
    drain: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Simulate that the nodes with these labels take no new pods, and that their pods are placed again. "
            "May be repeated.",
        ),
    ] = None,
    add_node: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="File of a Node to add. May be repeated."),
    ] = None,
    scale: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT=N",
            help="Simulate that a workload has this size: deploy/web=3; with a namespace deploy/team-a/web=3 or team-a/deploy/web=3; also "
            "sts, rs, rc, and job (its parallelism). May be repeated.",
        ),
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODE,...",
            autocompletion=options.make_completion(MODES),
            help="Place pods with this mode instead of the configuration's. Repeat it, or use commas, "
            "to compare several. Modes:" + manual.join_words(MODES),
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="File of a BalancePolicy, or of its spec alone; it replaces one of the same name. May "
            "be repeated.",
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Refuse everything if one object is malformed (exit code 2)."
        ),
    ] = False,
    fail_if_pending: Annotated[
        bool,
        typer.Option(
            "--fail-if-pending",
            help="Exit code 1 if a pod stays pending. If your own files or a change are given beside a baseline, "
            "only your own pods and the pods of the change count.",
        ),
    ] = False,
    config_file: options.ConfigFile = None,
) -> None:
    """Show where pods would go, in a cluster or from manifests alone.

    For workloads (Deployment, StatefulSet, ReplicaSet, DaemonSet, Job, CronJob,
    ReplicationController) it makes the pods that do not exist yet.

    The baseline is the cluster as it is: the files of --baseline, or the cluster
    of --kubeconfig, --context or the environment, which is only read. Its running
    pods keep their nodes, and its pending pods wait. What -f gives beside a
    baseline is your own; your own pods come first, with a *, and then pods that a
    change displaces or adds, with a +. With -f alone, files that hold nodes or
    running pods are the baseline of the other files. One stream is never divided;
    with a dump in a file, write:

    helm template DIR | evenkeel simulate --baseline cluster.json -f -

    If a workload of yours is in the baseline with another pod template (in what
    placement reads, so not with another image), its old pods are removed in a
    trial and all its replicas are placed. With the same template only missing
    pods are placed. Surplus pods are removed in a trial.

    Pods of one workload with the same answer share a line; -o wide has a line
    for each pod, and -o json is for programs.

    Exit codes: 0 answered; 1 with --fail-if-pending, a pod stays pending;
    2 an argument, a file or the cluster cannot be read; 3 answered, but objects
    with mistakes were left out or held. 3 goes before 1. If your own files or a
    change are given beside a baseline, its waiting pods do not count, and neither
    do the mistakes of the cluster or of --baseline.
    """
    from scheduler.simulate import command, markdown, report  # noqa: PLC0415 - numba costs half a second

    if baseline and (kubeconfig or context):
        options.refuse(
            "--baseline: cannot be combined with --kubeconfig or --context; the baseline is files or a cluster"
        )
    request = command.Request(
        config=options.read_config(config_file),
        files=file or (),
        baseline=baseline or (),
        output=output,
        explain=explain,
        only_ours=only_ours,
        strict=strict,
        fail_if_pending=fail_if_pending,
        without_nodes=without_node or (),
        cordon=cordon or (),
        drain=drain or (),
        add_nodes=add_node or (),
        scale=scale or (),
        modes=mode or (),
        policies=policy or (),
        now=int(time.time()),
    )
    answer = answering.read_and_answer(
        (*request.baseline, *request.files),
        kubeconfig,
        context,
        partial(command.check_request, request),
        partial(command.simulate, request),
        request.config.config_maps,
    )

    def show() -> None:
        if output == "markdown":
            typer.echo(markdown.write_comment(answer.results), nl=False)
        else:
            report.print_report(answer.results, printing.make_console(), is_wide=output == "wide")

    answering.print_answer(answer, output, show)
