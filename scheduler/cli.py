"""``evenkeel``: run | rerun | simulate | replay | audit | demo | warm."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import sys
import time
import uuid
from pathlib import Path
from typing import Annotated, Any, NoReturn

import structlog
import typer
import uvloop
import yaml
from rich.console import Console

from scheduler import config as settings
from scheduler.api import wire
from scheduler.errors import ApiError, BadInput

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A GPU-aware scheduler for Kubernetes: picks the node and the GPUs on it, and binds.",
)


def main() -> None:
    """The console script."""
    app()


@app.command()
def run(
    *,
    kubeconfig: Annotated[
        str | None, typer.Option(help="Default: $KUBECONFIG, or the pod's service account.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
    config_file: Annotated[
        Path | None, typer.Option("--config", help="Configuration file (YAML).")
    ] = None,
    lease_namespace: Annotated[
        str, typer.Option(help="Namespace of the leader-election Lease; empty: no leader election.")
    ] = "",
    host: Annotated[str, typer.Option(help="Address of probes and metrics.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port of probes and metrics; 0 takes a free one.")
    ] = 8080,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    record: Annotated[
        Path | None,
        typer.Option(
            help="Write all events and decisions there, for evenkeel rerun; its older half to FILE.1."
        ),
    ] = None,
    record_mib: Annotated[
        int, typer.Option(min=1, help="The most that the two files of --record may take, in MiB.")
    ] = 512,
) -> None:
    """Run the scheduler until SIGTERM."""
    from scheduler.kube import client  # noqa: PLC0415 - kopf and the client cost a second at import
    from scheduler.kube.app import Operator  # noqa: PLC0415
    from scheduler.kube.options import Options  # noqa: PLC0415

    _configure_logs(log_level)
    try:
        access = client.load_access(kubeconfig, context)
    except BadInput as error:
        _refuse(str(error))
    operator = Operator(
        Options(
            access=access,
            config=_config(config_file),
            identity=f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4().hex[:8]}",
            lease_namespace=lease_namespace,
            host=host,
            port=port,
            record=record,
            record_bytes=record_mib << 20,
        )
    )
    try:
        uvloop.run(operator.run())
    except BadInput as error:
        _refuse(str(error))


@app.command()
def rerun(
    file: Annotated[Path, typer.Argument(help="What evenkeel run --record has written.")],
) -> None:
    """Run a recorded log again, and tell the first decision that comes out differently."""
    from scheduler.engine import rerun as again  # noqa: PLC0415 - numba costs half a second

    try:
        with file.open("rb") as lines:
            report = again.rerun(lines)
    except OSError as error:
        _refuse(f"{file}: {error.strerror}")
    except BadInput as error:
        _refuse(f"{file}: {error}")
    typer.echo(again.told(report))
    if report.difference is not None:
        raise typer.Exit(1)


@app.command()
def simulate(
    file: Annotated[
        list[str],
        typer.Option("-f", "--filename", help="Manifests, YAML or JSON; - for standard input."),
    ],
    output: Annotated[str, typer.Option("-o", "--output", help="table, json or yaml.")] = "table",
    explain: Annotated[bool, typer.Option(help="What every node says of every pod.")] = False,
    only_ours: Annotated[bool, typer.Option(help="Only pods that name our scheduler.")] = False,
    config_file: Annotated[
        Path | None, typer.Option("--config", help="Configuration file (YAML).")
    ] = None,
) -> None:
    """Show where pods would go, from manifests, without a cluster."""
    from scheduler.simulate import files, inventory, report, run  # noqa: PLC0415 - numba costs half a second

    if output not in {"table", "json", "yaml"}:
        _refuse(f"--output: {output} is not one of table, json, yaml")
    objects: list[dict[str, Any]] = []
    origins: list[str] = []
    try:
        for name in file:
            found = files.read(name, sys.stdin)
            objects += found
            origins += [name] * len(found)
        result = run.schedule(
            objects,
            config=_config(config_file),
            only_ours=only_ours,
            with_nodes=explain,
            now=int(time.time()),
        )
    except inventory.InputProblem as error:
        _refuse(f"{origins[error.position]}: {error}")
    except BadInput as error:
        _refuse(str(error))
    if output == "json":
        typer.echo(json.dumps(result, indent=2))
    elif output == "yaml":
        typer.echo(yaml.safe_dump(result, sort_keys=False), nl=False)
    else:
        report.show(result, Console())


@app.command()
def replay(
    *,
    trace: Annotated[
        Path, typer.Argument(help="Folder in the format of openb, or with nodes.csv and pods.csv.")
    ],
    experiment: Annotated[
        str, typer.Option(help="fill, churn, bursts, daily or heavy-tail.")
    ] = "fill",
    mode: Annotated[
        list[str] | None,
        typer.Option(help="How pods are placed; again, or with commas, to compare. Default: keel."),
    ] = None,
    seeds: Annotated[str, typer.Option(help="As 42..51 or 1,2,3.")] = "42",
    variant: Annotated[
        list[str] | None,
        typer.Option(help="Of openb's pod lists; again, or with commas. Default: default."),
    ] = None,
    load: Annotated[
        float | None,
        typer.Option(help="GPUs asked, 1 being all there are. Default: 1.3 for fill, else 1."),
    ] = None,
    arrivals: Annotated[int, typer.Option(help="Pods that arrive; not for fill.")] = 50_000,
    queue: Annotated[
        bool, typer.Option("--queue", help="What does not fit waits; else it is lost.")
    ] = False,
    learn: Annotated[
        str, typer.Option(help="Whom modes learn the mix of pods from: seen or trace.")
    ] = "seen",
    jobs: Annotated[int, typer.Option(help="Runs at once, each in a process.")] = 1,
    dask: Annotated[str, typer.Option(help="Address of a Dask scheduler to run on.")] = "",
    output: Annotated[
        str, typer.Option("-o", "--output", help="table, json or parquet.")
    ] = "table",
    output_file: Annotated[Path | None, typer.Option(help="Default: standard output.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw it as .svg or .png.")] = None,
) -> None:
    """Replay a trace of a cluster: how full it gets, what fragments, who waits or is lost."""
    from scheduler.replay import command, fan_out, traces  # noqa: PLC0415 - as above

    request = command.Request(
        trace=trace,
        experiment=experiment,
        modes=mode or ("keel",),
        seeds=seeds,
        variants=variant or (traces.DEFAULT,),
        load=load,
        arrivals=arrivals,
        queue=queue,
        learn=learn,
        processes=jobs,
        dask=dask,
        output=output,
        output_file=output_file,
        plot=plot,
    )
    try:
        command.execute(request, Console(), Console(stderr=True))
    except BadInput as error:
        _refuse(str(error))
    except fan_out.JobFailed as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error


@app.command()
def audit(
    *,
    file: Annotated[
        list[str] | None,
        typer.Option(
            "-f",
            "--filename",
            help="Nodes and Pods, YAML or JSON; - for standard input; else a cluster.",
        ),
    ] = None,
    kubeconfig: Annotated[
        str | None, typer.Option(help="Default: $KUBECONFIG, or the pod's service account.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
    output: Annotated[str, typer.Option("-o", "--output", help="table, json or html.")] = "table",
    output_file: Annotated[Path | None, typer.Option(help="Default: standard output.")] = None,
    prices: Annotated[
        Path | None,
        typer.Option(help="Prices per month (YAML): cpu-core, memory-gib, gpu, gpu-memory-gib."),
    ] = None,
    price: Annotated[
        list[str] | None, typer.Option(help="One price, as cpu-core=30; again for others.")
    ] = None,
    worst: Annotated[int, typer.Option(help="How many of the worst nodes to name.")] = 10,
    mode: Annotated[
        list[str] | None,
        typer.Option(
            help="Place the present pods again with it; again, or with commas. Default: default "
            "(the configuration's), keel, best-fit, least-allocated, most-allocated."
        ),
    ] = None,
    config_file: Annotated[
        Path | None, typer.Option("--config", help="Configuration file (YAML).")
    ] = None,
) -> None:
    """Show what a cluster cannot use, what it costs, and how other modes would have placed its pods."""
    from scheduler.audit import command  # noqa: PLC0415 - as above

    request = command.Request(
        config=_config(config_file),
        output=output,
        output_file=output_file,
        prices_file=prices,
        prices=price or (),
        modes=mode or command.MODES_COMPARED,
        worst=worst,
    )
    try:
        if file and (kubeconfig or context):
            raise BadInput("--filename", "is of files, and --kubeconfig and --context of a cluster")
        question = command.plan(request)
        nodes, pods = _manifests(file) if file else _cluster(kubeconfig, context)
        command.tell(request, question, nodes, pods, Console())
    except BadInput as error:
        _refuse(str(error))


@app.command()
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


@app.command()
def warm() -> None:
    """Compile all kernels into the cache, so that the next start need not."""
    from scheduler.engine.warm import warm as run_every_kernel  # noqa: PLC0415 - as above

    run_every_kernel(settings.Config())


def _manifests(names: list[str]) -> tuple[list[wire.Node], list[wire.Pod]]:
    from scheduler.simulate import files, inventory  # noqa: PLC0415 - as above

    objects: list[dict[str, Any]] = []
    origins: list[str] = []
    for name in names:
        found = files.read(name, sys.stdin)
        objects += found
        origins += [name] * len(found)
    try:
        found_there = inventory.read(objects)
        inventory.refuse_malformed(found_there)
    except inventory.InputProblem as error:
        _refuse(f"{origins[error.position]}: {error}")
    return found_there.nodes, found_there.pods


def _cluster(kubeconfig: str | None, context: str | None) -> tuple[list[wire.Node], list[wire.Pod]]:
    from scheduler.kube import client  # noqa: PLC0415 - as for run
    from scheduler.kube.watch import listing  # noqa: PLC0415 - as for run

    access = client.load_access(kubeconfig, context)
    try:
        return asyncio.run(listing.nodes_and_pods(access))
    except ApiError as error:
        typer.echo(f"{access.url}: {error}", err=True)
        raise typer.Exit(1) from error


def _refuse(message: str) -> NoReturn:
    """Bad input: say what is wrong and end with 2."""
    typer.echo(message, err=True)
    raise typer.Exit(2)


def _config(path: Path | None) -> settings.Config:
    try:
        return settings.load(path)
    except BadInput as error:
        _refuse(f"{path}: {error}")


def _configure_logs(level: str) -> None:
    levels = {"debug": 10, "info": 20, "warning": 30, "error": 40}
    if level not in levels:
        _refuse(f"--log-level: {level} is not one of {', '.join(levels)}")
    terminal = sys.stderr.isatty()
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    render = structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*shared, render],
        wrapper_class=structlog.make_filtering_bound_logger(levels[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    # kopf logs through the standard library; one line form for all.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(processor=render, foreign_pre_chain=shared)
    )
    logging.basicConfig(handlers=[handler], level=max(levels[level], logging.WARNING), force=True)
