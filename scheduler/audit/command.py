"""``evenkeel audit`` without its flags: checks the request, audits, and shows the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from scheduler import printing
from scheduler.api import steering, wire
from scheduler.api.placement import MODES, Mode
from scheduler.audit import findings, showback, table
from scheduler.audit.comparison import DEFAULT_MODE
from scheduler.audit.findings import About, Question
from scheduler.audit.page import page
from scheduler.audit.prices import book
from scheduler.audit.unread import Unread
from scheduler.config import Config
from scheduler.documents import writing
from scheduler.errors import BadInput

Json = dict[str, Any]
ORDERS_MAX = 100
MISTAKES = 3  # the exit code that simulate has, too
# Text for a person has lines of at least 80 columns; in a file lines are not folded.
_COLUMNS_LEAST = 80
MODES_COMPARED = (
    DEFAULT_MODE, Mode.KEEL, Mode.BEST_FIT, Mode.LEAST_ALLOCATED, Mode.MOST_ALLOCATED
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The arguments of ``evenkeel audit`` as they were typed, except for the source of nodes and pods."""

    config: Config
    output: Literal["table", "json", "yaml", "html", "csv"] = "table"
    output_file: Path | None = None
    prices_file: Path | None = None
    prices: Sequence[str] = ()
    modes: Sequence[str] = MODES_COMPARED
    worst: int = 10
    orders: int | None = None
    nodes: bool = False
    by: str | None = None


def plan_question(request: Request) -> Question:
    """Make the question to the audit from the arguments, before anything is read.

    Raises:
        BadInput: an argument is wrong; the error names it and says what is allowed.
    """
    printing.check_writable("--output-file", request.output_file)
    if request.worst < 0:
        raise BadInput("--worst", f"{request.worst} is not 0 or more")
    if request.orders is not None and not 1 <= request.orders <= ORDERS_MAX:
        raise BadInput("--orders", f"{request.orders} is not within 1..{ORDERS_MAX}")
    if request.by is not None:
        showback.parse_by(request.by)
        if request.nodes:
            raise BadInput("--nodes", "cannot be combined with --by; use one of the two")
        if request.output == "html":
            raise BadInput("--by", "does not support -o html; use -o table, csv, json or yaml")
    elif request.output == "csv" and not request.nodes:
        raise BadInput(
            "-o csv", "needs --by or --nodes; without them use -o table, json, yaml or html"
        )
    if request.nodes and request.output == "html":
        raise BadInput("--nodes", "does not support -o html; use -o table, csv, json or yaml")
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Question(
        config=request.config,
        # The table of nodes does not show modes.
        modes=() if request.nodes else _read_modes(request.modes),
        prices=book.read_flags(request.prices_file, request.prices),
        worst=request.worst,
        orders=request.orders,
        about=About(made=made, source="", version=metadata.version("evenkeel-scheduler")),
    )


def put_question(
    question: Question,
    source: str,
    unread: Sequence[Unread],
    passed_over: Mapping[str, int],
    config_maps: Sequence[steering.ConfigMap] = (),
) -> Question:
    """Add to the question where the nodes and pods are from, and what there was beside them: see ``About``."""
    about = replace(question.about, source=source, unread=unread, passed_over=passed_over)
    return replace(question, about=about, config_maps=config_maps)


def answer_question(
    request: Request,
    question: Question,
    nodes: Sequence[wire.Node],
    pods: Sequence[wire.Pod],
    tell: Callable[[str], None],
) -> Json:
    """Answer the question with the audit, or with the share of each namespace or label value."""
    if request.by is not None:
        return showback.show_back(nodes, pods, question, showback.parse_by(request.by), tell)
    return findings.audit_cluster(nodes, pods, question, tell)


def find_code(audit: Json) -> int:
    """Find the exit code, which shows whether objects with mistakes were left out."""
    return MISTAKES if audit["mistakes"] else 0


def show_answer(request: Request, audit: Json, out: Console) -> None:
    """Print an audit, or write it to a file.

    Raises:
        BadInput: the file cannot be written.
    """
    path = request.output_file
    draw = (
        showback.print_showback
        if request.by
        else table.print_nodes
        if request.nodes
        else table.print_audit
    )
    if request.output == "json":
        text = json.dumps(printing.add_version(audit), indent=2, allow_nan=False) + "\n"
    elif request.output == "html":
        text = page.render_page(audit)
    elif request.output == "csv":
        text = showback.write_csv_rows(audit) if request.by else table.write_csv_nodes(audit)
    elif request.output == "yaml":
        text = writing.dump(printing.add_version(audit))
    elif path is None and printing.is_terminal(out):
        out.width = max(out.width, _COLUMNS_LEAST)
        draw(audit, out)
        return
    else:
        text = printing.print_to_text(lambda whole: draw(audit, whole))
    if path is None:
        out.file.write(text)
        return
    printing.write_file("--output-file", path, text)


def _read_modes(given: Sequence[str]) -> list[Mode | None]:
    words = [word.strip() for text in given for word in text.split(",")]
    allowed = (DEFAULT_MODE, *MODES)
    for word in words:
        if word not in allowed:
            raise BadInput("--mode", f'"{word}" is not one of {", ".join(allowed)}')
    return [None if word == DEFAULT_MODE else Mode(word) for word in dict.fromkeys(words)]
