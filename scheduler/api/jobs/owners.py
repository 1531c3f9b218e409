"""Which job controls an object."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.api import wire
from scheduler.api.jobs import table

# A kind of jobs by its name, a namespace and a name.
JobKey = tuple[str, str, str]
_NAMES = {(one.kind.kind, one.kind.group): name for name, one in table.BY_NAME.items()}


def find_job_key(owners: Sequence[wire.Owner] | None, namespace: str) -> JobKey | None:
    """Find the job that controls an object; None if none does."""
    for one in owners or ():
        if one.controller:
            name = _NAMES.get((one.kind, one.api_version.rpartition("/")[0]))
            return (name, namespace, one.name) if name is not None else None
    return None
