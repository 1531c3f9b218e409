"""What several commands take, and how a command refuses what it was given."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NoReturn

import typer

from scheduler import config as settings
from scheduler.errors import BadInput

ConfigFile = Annotated[Path | None, typer.Option("--config", help="Configuration file (YAML).")]
Kubeconfig = Annotated[
    str | None, typer.Option(help="Default: $KUBECONFIG, or the pod's service account.")
]
Context = Annotated[str | None, typer.Option(help="Context of the kubeconfig.")]


def refuse(message: str) -> NoReturn:
    """Bad input: say what is wrong and end with 2."""
    typer.echo(message, err=True)
    raise typer.Exit(2)


def config(path: Path | None) -> settings.Config:
    """The configuration in a file, the defaults without one."""
    try:
        return settings.load(path)
    except BadInput as error:
        refuse(f"{path}: {error}")
