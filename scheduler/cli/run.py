"""``evenkeel run`` and ``evenkeel rerun``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from scheduler import ending, progress
from scheduler.api import names
from scheduler.cli import compiling, options, process
from scheduler.documents import foreign
from scheduler.errors import BadInput, explain_unreadable

_LOGS = "`evenkeel rerun` reads what `evenkeel run --record` writes"


# The operator handles signals itself, once it runs.
@ending.end_at_signals()
def run(
    *,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    config_file: options.ConfigFile = None,
    lease_namespace: process.LeaseNamespace = "",
    lease_name: Annotated[
        str,
        typer.Option(help="Name of the Lease; kube-scheduler if Evenkeel replaces kube-scheduler."),
    ] = names.LEASE,
    lease_seconds: Annotated[
        int,
        typer.Option(
            min=5, max=60, help="Seconds until another replica takes over from a dead one."
        ),
    ] = 15,
    host: process.Host = "127.0.0.1",
    port: process.Port = 8080,
    log_level: process.LogLevelOption = "info",
    record: Annotated[
        Path | None,
        typer.Option(
            help="File for all events and decisions, for evenkeel rerun; the older half goes to FILE.1."
        ),
    ] = None,
    record_mib: Annotated[
        int, typer.Option(min=1, help="The most that the two files of --record may take, in MiB.")
    ] = 512,
) -> None:
    """Run the scheduler until SIGTERM."""
    from scheduler.kube import client  # noqa: PLC0415 - numba and the client cost half a second
    from scheduler.kube.app import Operator  # noqa: PLC0415
    from scheduler.kube.options import Options  # noqa: PLC0415

    process.configure_logs(log_level)
    pod = os.environ.get("POD_NAMESPACE", ""), os.environ.get("POD_NAME", "")
    try:
        access = client.load_access(kubeconfig, context)
    except BadInput as error:
        options.refuse(str(error), is_log=True)
    operator = Operator(
        Options(
            access=access,
            config=options.read_config(config_file, is_log=True),
            identity=process.make_identity(),
            pod=pod if all(pod) else None,
            lease_namespace=lease_namespace,
            lease_name=lease_name,
            lease_seconds=lease_seconds,
            host=host,
            port=port,
            record=record,
            record_bytes=record_mib << 20,
        )
    )
    try:
        uvloop.run(operator.run())
    except BadInput as error:
        options.refuse(str(error), is_log=True)


def rerun(
    file: Annotated[Path, typer.Argument(help="File that evenkeel run --record wrote.")],
) -> None:
    """Make the decisions of a recorded log again, and report the first one that differs."""
    from scheduler.engine import rerun as again  # noqa: PLC0415 - numba costs half a second

    compiling.compile_first_time()
    try:
        with progress.read_file(file) as lines:
            report = again.rerun(lines)
    except OSError as error:
        options.refuse(f"{file}: {explain_unreadable(error)}")
    except BadInput as error:
        # A file that is wrong only in a later line is a log.
        found = foreign.recognize_file(file) if error.field == "line 1" else None
        options.refuse(
            f"{file}: {_describe_foreign(found)}; {_LOGS}" if found else f"{file}: {error}"
        )
    if not report.version:
        found = foreign.recognize_file(file)
        options.refuse(
            f"{file}: {_describe_foreign(found) if found else 'has no complete line'}; {_LOGS}"
        )
    typer.echo(again.write_report(report))
    if report.difference is not None:
        raise typer.Exit(1)


def _describe_foreign(found: foreign.Foreign) -> str:
    """Describe what was given instead of a log; a packed file may be a log."""
    return str(found) if found.wanted == foreign.GUNZIP else found.what
