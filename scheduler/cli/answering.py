"""The steps that `simulate` and `explain` share: read the objects, answer, and print the answer."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TextIO, TypeVar

import typer

from scheduler import printing, progress
from scheduler.cli import compiling, options, sources
from scheduler.documents import writing
from scheduler.errors import BadInput
from scheduler.progress import Tell

if TYPE_CHECKING:
    from scheduler.simulate.reading.gathering import Live


class Answer(Protocol):
    """The answer of a command."""

    @property
    def printed(self) -> dict[str, Any]:
        """The content of JSON and YAML."""

    @property
    def complaints(self) -> list[str]:
        """Texts for standard error."""

    @property
    def code(self) -> int:
        """The exit code."""


A = TypeVar("A", bound=Answer)


def read_and_answer(
    files: Sequence[str],
    kubeconfig: str | None,
    context: str | None,
    check: Callable[[], None],
    answer: Callable[[Live | None, TextIO, Tell], A],
    config_maps: Sequence[str] = (),
) -> A:
    """Read files alone, or a cluster when one is named or there are no files, and answer; bad input ends the command.

    ``check`` refuses wrong arguments before anything is read; ``config_maps`` are read of a cluster, as namespace/name.
    """
    is_live = not files or kubeconfig is not None or context is not None
    try:
        check()
        compiling.compile_first_time()
        with progress.show_stages() as tell:
            live = None
            if is_live:
                live = sources.read_whole_cluster(kubeconfig, context, tell, config_maps)
            return answer(live, sys.stdin, tell)
    except BadInput as error:
        options.refuse(str(error))


def print_answer(answer: Answer, output: str, show: Callable[[], None]) -> NoReturn:
    """Print an answer as JSON or YAML, or as ``show`` does, and end the command."""
    if output == "json":
        typer.echo(json.dumps(printing.add_version(answer.printed), indent=2))
    elif output == "yaml":
        typer.echo(writing.dump(printing.add_version(answer.printed)), nl=False)
    else:
        show()
    for text in answer.complaints:
        printing.complain(text)
    raise typer.Exit(answer.code)
