"""``evenkeel audit``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import typer

from scheduler import printing, progress
from scheduler.api import wire
from scheduler.api.placement import MODES
from scheduler.cli import manual, options
from scheduler.errors import ApiError, BadInput

Output = Literal["table", "json", "html"]
_MODES = ("default", *MODES)

# Nodes, pods, and in words where they come from.
Read = tuple[list[wire.Node], list[wire.Pod], str]


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
        typer.Option(help="One price, as cpu-core=30 or A100*80GB=1500; again for others."),
    ] = None,
    worst: Annotated[int, typer.Option(help="How many of the worst nodes to name.")] = 10,
    mode: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODE,...",
            autocompletion=options.listed(_MODES),
            help="Place the present pods again with it; again, or with commas. Default: default "
            "(the configuration's), keel, best-fit, least-allocated, most-allocated. There are:"
            + manual.words(_MODES),
        ),
    ] = None,
    orders: Annotated[
        int | None,
        typer.Option(
            help="In how many orders to place them. Default: 5, or fewer if there are many."
        ),
    ] = None,
    config_file: options.ConfigFile = None,
) -> None:
    """Show what a cluster cannot use, what it costs, and how other modes would have placed its pods."""
    from scheduler.audit import command, findings  # noqa: PLC0415 - as above

    request = command.Request(
        config=options.config(config_file),
        output=output,
        output_file=output_file,
        prices_file=prices,
        prices=price or (),
        modes=mode or command.MODES_COMPARED,
        worst=worst,
        orders=orders,
    )
    try:
        if file and (kubeconfig or context):
            raise BadInput("--filename", "is of files, and --kubeconfig and --context of a cluster")
        question = command.plan(request)
        with progress.stages() as tell:
            tell("reading nodes and pods")
            nodes, pods, source = _manifests(file) if file else _cluster(kubeconfig, context)
            found = findings.audit(nodes, pods, command.of(question, source), tell)
        command.show(request, found, printing.console())
    except BadInput as error:
        options.refuse(str(error))


def _manifests(names: list[str]) -> Read:
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
        options.refuse(f"{origins[error.position]}: {error}")
    shown = ("standard input" if name == "-" else name for name in names)
    return found_there.nodes, found_there.pods, ", ".join(shown)


def _cluster(kubeconfig: str | None, context: str | None) -> Read:
    from scheduler.kube import client  # noqa: PLC0415 - as for run
    from scheduler.kube.watch import listing  # noqa: PLC0415 - as for run

    access = client.load_access(kubeconfig, context)
    try:
        nodes, pods = asyncio.run(listing.nodes_and_pods(access))
    except ApiError as error:
        typer.echo(f"{access.url}: {error}", err=True)
        raise typer.Exit(1) from error
    return nodes, pods, source_of(access.url, context)


def source_of(url: str, context: str | None) -> str:
    """A cluster in words: the context, if it was given, and the server, without a password before its name."""
    server = urlsplit(url)
    shown = f"{server.scheme}://{server.netloc.rpartition('@')[2]}"
    return f"context {context} at {shown}" if context else shown
