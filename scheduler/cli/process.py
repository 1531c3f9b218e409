"""What the commands share that run until they are stopped: their logs, and the name of the process."""

from __future__ import annotations

import logging
import os
import socket
import sys
import uuid
from typing import Annotated, Literal

import structlog
import typer

LogLevel = Literal["debug", "info", "warning", "error"]
LogLevelOption = Annotated[LogLevel, typer.Option(help="The lowest level that is logged.")]
LeaseNamespace = Annotated[
    str, typer.Option(help="Namespace of the leader-election Lease; empty: no leader election.")
]
Host = Annotated[str, typer.Option(help="Address of probes and metrics.")]
Port = Annotated[
    int,
    typer.Option(min=0, max=65535, help="Port of probes and metrics; 0 takes a free one."),
]


def make_identity() -> str:
    """Make a name for this process, as a lease has it: that of its pod or machine, and a part that no other has."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4().hex[:8]}"


def configure_logs(level: LogLevel) -> None:
    """Log lines of JSON to standard error, or lines in colours to a terminal."""
    least = logging.getLevelNamesMapping()[level.upper()]
    terminal = sys.stderr.isatty()
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    render = structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*shared, render],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    # kopf logs through the standard library; all lines have the same form.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(processor=render, foreign_pre_chain=shared)
    )
    logging.basicConfig(handlers=[handler], level=max(least, logging.WARNING), force=True)
