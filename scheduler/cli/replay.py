"""``evenkeel replay``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from scheduler.cli import options
from scheduler.errors import BadInput


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
        options.refuse(str(error))
    except fan_out.JobFailed as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error
