"""Writes a plan as a comment for an issue or a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scheduler import printing
from scheduler.plan import words
from scheduler.simulate.markdown import escape_prose, quote_code

Json = Mapping[str, Any]
_HEADS = ("Move", "Pod", "From", "To", "Why it may go", "Frees", "Lets in")


def write_comment(plan: Json) -> str:
    """Write the comment."""
    plan = printing.make_printable(plan)
    return "".join(f"{line}\n" for line in _write_lines(plan))


def _write_lines(plan: Json) -> Iterator[str]:
    yield f"**{escape_prose(words.sum_up(plan))}**"
    if plan["bundles"]:
        yield ""
        yield escape_prose(words.HOW)
        yield ""
        yield _write_row(_HEADS)
        yield _write_row(["---"] * len(_HEADS))
    for i, bundle in enumerate(plan["bundles"], 1):
        for k, move in enumerate(bundle["moves"], 1):
            yield _write_row(
                (
                    f"{i}.{k}",
                    quote_code(words.name_pod(move["pod"])),
                    quote_code(words.name_seat(move["from"])),
                    quote_code(words.name_seat(move["to"])),
                    escape_prose(words.say_why(move)),
                    escape_prose(", ".join(words.list_freed(move))),
                    escape_prose(", ".join(words.list_let_in(move))),
                )
            )
    for text in words.list_remarks(plan):
        yield ""
        yield escape_prose(text)


def _write_row(cells: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(cells)} |"
