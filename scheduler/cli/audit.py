"""``evenkeel audit``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from scheduler import printing, progress
from scheduler.api.placement import MODES
from scheduler.cli import compiling, manual, options, sources
from scheduler.errors import BadInput

Output = Literal["table", "json", "yaml", "html", "csv"]
_MODES = ("default", *MODES)


def audit(
    *,
    file: Annotated[
        list[str] | None,
        typer.Option(
            "-f",
            "--filename",
            help="Nodes and Pods, YAML or JSON; - for standard input. Without it, the cluster is read.",
        ),
    ] = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    output: Annotated[Output, typer.Option("-o", "--output", help="Form of the answer.")] = "table",
    output_file: Annotated[Path | None, typer.Option(help="Default: standard output.")] = None,
    prices: Annotated[
        Path | None,
        typer.Option(
            help="Prices per month (YAML), as in scheduler/audit/prices/prices.yaml: cpu-core, memory-gib, "
            "gpu, gpu-memory-gib, gpu-models."
        ),
    ] = None,
    price: Annotated[
        list[str] | None,
        typer.Option(help="One price, such as cpu-core=30 or A100*80GB=1500. May be repeated."),
    ] = None,
    worst: Annotated[
        int, typer.Option(help="How many of the nodes that strand the most to name.")
    ] = 10,
    nodes: Annotated[
        bool,
        typer.Option(
            "--nodes",
            help="Show a table of all nodes: models, cards, pods on the cards, use, stranded (-o table, csv, json, yaml).",
        ),
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="namespace|label=KEY",
            help="Show who uses what: pods, GPUs, memory, CPU and money a month for each namespace or "
            "each value of a label (-o table, csv, json, yaml).",
        ),
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODE,...",
            autocompletion=options.make_completion(_MODES),
            help="Compare these modes. Repeat it, or use commas, for several. Default: default "
            "(the configuration's mode), keel, best-fit, least-allocated, most-allocated. Modes:"
            + manual.join_words(_MODES),
        ),
    ] = None,
    orders: Annotated[
        int | None,
        typer.Option(
            help="In how many orders pods are placed. Default: 5, or fewer on a large cluster."
        ),
    ] = None,
    config_file: options.ConfigFile = None,
) -> None:
    """Show free capacity that no pod can use, its price, and how much the cluster could hold with each mode.

    Exit codes: 0 answered; 2 an argument, a file or the cluster cannot be read;
    3 answered, but objects with mistakes were left out, or stay on their nodes with
    what can be read of them.
    """
    from scheduler.audit import command  # noqa: PLC0415 - numba costs half a second

    request = command.Request(
        config=options.read_config(config_file),
        output=output,
        output_file=output_file,
        prices_file=prices,
        prices=price or (),
        modes=mode or command.MODES_COMPARED,
        worst=worst,
        orders=orders,
        nodes=nodes,
        by=by,
    )
    try:
        if file and (kubeconfig or context):
            raise BadInput(
                "--filename",
                "cannot be combined with --kubeconfig or --context; use files or a cluster",
            )
        question = command.plan_question(request)
        compiling.compile_first_time()
        with progress.show_stages() as tell:
            tell("reading nodes and pods")
            read = (
                sources.read_files(file, tell)
                if file
                else sources.read_cluster(kubeconfig, context, request.config.config_maps)
            )
            if not (read.nodes or read.unread):
                raise BadInput(read.source, "no Node found; the audit needs at least one")
            question = command.put_question(
                question, read.source, read.unread, read.passed_over, read.config_maps
            )
            question = replace(question, devices=read.devices, unlisted=read.unlisted)
            found = command.answer_question(request, question, read.nodes, read.pods, tell)
        command.show_answer(request, found, printing.make_console())
    except BadInput as error:
        options.refuse(str(error))
    raise typer.Exit(command.find_code(found))
