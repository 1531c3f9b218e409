"""``evenkeel``: run | demo | simulate | explain."""

from __future__ import annotations

import logging
import os
import socket
import sys
import uuid
from pathlib import Path
from typing import Annotated

import structlog
import typer
import uvloop

from scheduler import config as settings
from scheduler.errors import BadInput

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A GPU-aware scheduler for Kubernetes: picks the node and the GPUs on it, and binds.",
)


def main() -> None:
    """The console script."""
    app()


@app.callback()
def _commands() -> None:
    """Makes ``run`` a command of its own even while it is the only one."""


@app.command()
def run(
    kubeconfig: Annotated[
        str | None, typer.Option(help="Default: $KUBECONFIG, or the pod's service account.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
    config_file: Annotated[
        Path | None, typer.Option("--config", help="Configuration file (YAML).")
    ] = None,
    lease_namespace: Annotated[
        str, typer.Option(help="Namespace of the leader-election Lease; empty: no leader election.")
    ] = "",
    host: Annotated[str, typer.Option(help="Address of probes and metrics.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port of probes and metrics; 0 takes a free one.")
    ] = 8080,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Run the scheduler until SIGTERM."""
    from scheduler.kube import client  # noqa: PLC0415 - kopf and the client cost a second at import
    from scheduler.kube.app import Operator, Options  # noqa: PLC0415

    _configure_logs(log_level)
    operator = Operator(
        Options(
            access=client.load_access(kubeconfig, context),
            config=_config(config_file),
            identity=f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4().hex[:8]}",
            lease_namespace=lease_namespace,
            host=host,
            port=port,
        )
    )
    uvloop.run(operator.run())


def _config(path: Path | None) -> settings.Config:
    try:
        return settings.load(path)
    except BadInput as error:
        typer.echo(f"{path}: {error}", err=True)
        raise typer.Exit(2) from error


def _configure_logs(level: str) -> None:
    levels = {"debug": 10, "info": 20, "warning": 30, "error": 40}
    if level not in levels:
        typer.echo(f"--log-level: {level} is not one of {', '.join(levels)}", err=True)
        raise typer.Exit(2)
    terminal = sys.stderr.isatty()
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    render = structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*shared, render],
        wrapper_class=structlog.make_filtering_bound_logger(levels[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    # kopf logs through the standard library; one line form for all.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(processor=render, foreign_pre_chain=shared)
    )
    logging.basicConfig(handlers=[handler], level=max(levels[level], logging.WARNING), force=True)
