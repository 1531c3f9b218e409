"""Options that several commands share, and how a command refuses a wrong argument."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from scheduler import config as settings
from scheduler import printing
from scheduler.errors import BadInput

ObjectFiles = Annotated[
    list[str] | None,
    typer.Option(
        "-f",
        "--filename",
        metavar="FILE",
        help="Objects, YAML or JSON, also .gz; - for standard input. Alone, no cluster is read.",
    ),
]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="Configuration file (YAML).")]
Kubeconfig = Annotated[
    str | None,
    typer.Option(help="Default: $KUBECONFIG, else the pod's service account, else ~/.kube/config."),
]
Context = Annotated[
    str | None, typer.Option(help="Context of the kubeconfig. Default: its current one.")
]


def refuse(message: str, *, is_log: bool = False) -> NoReturn:
    """Refuse bad input: print what is wrong and end with 2; with ``is_log`` the message is one line of a log."""
    if is_log:
        typer.echo(message, err=True)
    else:
        printing.complain(message)
    raise typer.Exit(2)


def read_config(path: Path | None, *, is_log: bool = False) -> settings.Config:
    """Read the configuration in a file; without a file, the defaults; ``is_log`` as for ``refuse``."""
    try:
        return settings.load_config(path)
    except BadInput as error:
        refuse(f"{path}: {error}", is_log=is_log)


def make_completion(words: Sequence[str]) -> Callable[[str], list[str]]:
    """Make the completion of an option that takes several words, repeated or with commas between them."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        taken = before.split(",")
        return [
            f"{before}{comma}{word}"
            for word in words
            if word.startswith(last) and word not in taken
        ]

    return complete
