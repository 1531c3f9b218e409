"""``evenkeel replay``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scheduler import printing
from scheduler.cli import compiling, manual, options
from scheduler.errors import BadInput
from scheduler.replay import words


def _complete_variants(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the variants of the trace on the command line, if there is one."""
    from scheduler.replay import traces  # noqa: PLC0415 - NumPy is expensive to import

    # If an option has no value yet, the parser stops: words that it did not read are in ``context.args``.
    given = map(Path, filter(None, (context.params.get("trace"), *context.args)))
    folder = next((path for path in given if path.is_dir()), None)
    return options.make_completion(traces.list_variants(folder) if folder else ())(incomplete)


def replay(
    *,
    trace: Annotated[
        Path, typer.Argument(help="Folder in the format of openb, or with nodes.csv and pods.csv.")
    ],
    experiment: Annotated[
        words.Experiment,
        typer.Option(
            help="How pods come and go. In fill pods only come, until the cluster is full; recorded plays the trace as it happened."
        ),
    ] = "fill",
    mode: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODE,...",
            autocompletion=options.make_completion(words.MODES),
            help="How pods are placed. Repeat it, or use commas, to compare. Default: keel. Modes:"
            + manual.join_words(words.MODES),
        ),
    ] = None,
    seeds: Annotated[
        str, typer.Option(help="Seeds of the random order, such as 42..51 or 1,2,3.")
    ] = "42",
    variant: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VARIANT,...",
            autocompletion=_complete_variants,
            help="Which pod lists of openb: X for each file openb_pod_list_X in the folder. Repeat "
            "it, or use commas, for several. Default: default.",
        ),
    ] = None,
    load: Annotated[
        float | None,
        typer.Option(
            help="GPUs requested, as a share of all GPUs; if the trace has no GPUs, of the scarcest "
            "resource. Default: 1.3 for fill, else 1; not for recorded."
        ),
    ] = None,
    arrivals: Annotated[
        int | None,
        typer.Option(help="Pods that arrive; not for fill and recorded. Default: 50000."),
    ] = None,
    queue: Annotated[
        bool, typer.Option("--queue", help="Pods that do not fit wait; without it they are lost.")
    ] = False,
    waiting: Annotated[
        words.Waiting,
        typer.Option(
            help="With --queue: pods pass the first group in line if they do not delay it, or always (best-effort), or "
            "never (fifo)."
        ),
    ] = "backfill",
    queues: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="How teams share the cluster: a file with queues of Kueue or KAI, for the column queue of pods.csv. Repeat it "
            "to compare policies. For recorded, with --queue.",
        ),
    ] = None,
    defrag: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MOVES,...",
            help="Every ten minutes plan and carry out at most so many moves of running pods; a mean lifetime is an hour. "
            "0 moves none; several are compared. Not for fill.",
        ),
    ] = None,
    learn: Annotated[
        words.Learning,
        typer.Option(
            help="The pods from which modes learn: those that have come, or the whole trace."
        ),
    ] = "seen",
    jobs: Annotated[
        int, typer.Option(min=1, help="How many runs at once, each in a process of its own.")
    ] = 1,
    dask: Annotated[str, typer.Option(help="Address of a Dask scheduler to run on.")] = "",
    output: Annotated[
        words.Output, typer.Option("-o", "--output", help="Form of the figures.")
    ] = "table",
    output_file: Annotated[Path | None, typer.Option(help="Default: standard output.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the result too, as FILE.svg or FILE.png.")
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Refuse contradictory lines. Without it, such lines are read with the smallest value that makes "
            "sense, and named with their number in a warning.",
        ),
    ] = False,
) -> None:
    """Replay a trace of a cluster: how full it gets, how much is fragmented, and which pods wait or are lost."""
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
        waiting=waiting,
        learn=learn,
        processes=jobs,
        dask=dask,
        output=output,
        output_file=output_file,
        plot=plot,
        strict=strict,
        queues=queues or (),
        defrag=defrag or ("0",),
    )
    try:
        command.plan_jobs(request)
        compiling.compile_first_time()
        command.execute(request, printing.make_console(), printing.make_console(stderr=True))
    except BadInput as error:
        options.refuse(str(error))
    except fan_out.JobFailed as error:
        # With a traceback, whose lines are left as they are.
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error
