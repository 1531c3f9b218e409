"""Lays out ``--help``, even on a narrow terminal: no name of an option, of a mode or of a file is cut."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from functools import partial
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from scheduler import printing

# Columns for names of options before their descriptions, on a wide terminal and on a narrow one.
_WIDE, _NARROW = 24, 4
_NARROW_PAGE = 60
_WORDS = 30  # columns of a list of words, which fit on both
# typer's sentences about wrong values are written for programmers; these replace them.
_PLAIN = (
    (r"Value error, ", ""),
    (r"Input should be a valid integer.*", "must be a whole number"),
    (r"Input should be a valid number.*", "must be a number"),
    (r"Input should be greater than or equal to ", "must be at least "),
    (r"Input should be less than or equal to ", "must be at most "),
)
# The root of all mistakes on a command line; typer exports only this subclass.
_WRONG: Any = typer.BadParameter.__base__
_BEFORE = "Error: "


def join_words(listed: Sequence[str]) -> str:
    """Join words to a paragraph of a help text in which no word is broken at its hyphens."""
    lines = textwrap.fill(", ".join(listed), _WORDS, break_on_hyphens=False, break_long_words=False)
    return f"\n\n\b\n{lines}"


class _Wrong(_WRONG):  # type: ignore[misc]
    """A mistake on the command line, in lines of 80 columns."""

    def format_message(self) -> str:
        """Format the mistake as it follows ``Error: ``."""
        message = f"{_BEFORE}{self.message}"
        return printing.wrap_prose(message, printing.PROSE, hanging="  ")[len(_BEFORE) :]


class Command(TyperCommand):
    """A command whose help fits the terminal, and that names a mistake in plain words."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments.

        Raises:
            _Wrong: one of them is wrong.
        """
        try:
            return super().parse_args(ctx, args)
        except _WRONG as error:
            text = error.format_message()
            for words, plain in _PLAIN:
                text = re.sub(words, plain, text)
            raise _Wrong(text, ctx=error.ctx) from None

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the descriptions of its options."""
        super().format_options(ctx, _fit_columns(formatter))


class Group(TyperGroup):
    """The page that lists the commands."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the descriptions of its options and commands."""
        super().format_options(ctx, _fit_columns(formatter))


def _fit_columns(formatter: Any) -> Any:
    """Return the formatter with columns that leave room for the text."""
    columns = _NARROW if formatter.width < _NARROW_PAGE else _WIDE
    formatter.write_dl = partial(formatter.write_dl, col_max=columns)
    return formatter
