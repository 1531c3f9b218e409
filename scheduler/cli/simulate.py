"""``evenkeel simulate``."""

from __future__ import annotations

import json
import sys
import time
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console

from scheduler.cli import options
from scheduler.errors import BadInput


def simulate(
    file: Annotated[
        list[str],
        typer.Option("-f", "--filename", help="Manifests, YAML or JSON; - for standard input."),
    ],
    output: Annotated[str, typer.Option("-o", "--output", help="table, json or yaml.")] = "table",
    explain: Annotated[bool, typer.Option(help="What every node says of every pod.")] = False,
    only_ours: Annotated[bool, typer.Option(help="Only pods that name our scheduler.")] = False,
    config_file: options.ConfigFile = None,
) -> None:
    """Show where pods would go, from manifests, without a cluster."""
    from scheduler.simulate import files, inventory, report, run  # noqa: PLC0415 - numba costs half a second

    if output not in {"table", "json", "yaml"}:
        options.refuse(f"--output: {output} is not one of table, json, yaml")
    objects: list[dict[str, Any]] = []
    origins: list[str] = []
    try:
        for name in file:
            found = files.read(name, sys.stdin)
            objects += found
            origins += [name] * len(found)
        result = run.schedule(
            objects,
            config=options.config(config_file),
            only_ours=only_ours,
            with_nodes=explain,
            now=int(time.time()),
        )
    except inventory.InputProblem as error:
        options.refuse(f"{origins[error.position]}: {error}")
    except BadInput as error:
        options.refuse(str(error))
    if output == "json":
        typer.echo(json.dumps(result, indent=2))
    elif output == "yaml":
        typer.echo(yaml.safe_dump(result, sort_keys=False), nl=False)
    else:
        report.show(result, Console())
