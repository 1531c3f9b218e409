"""The jobs with a queue among the objects, and what they and their parts have made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from scheduler.api import wire
from scheduler.api.jobs import table, workloads
from scheduler.api.jobs.owners import find_job_key
from scheduler.api.jobs.parts import get_in, read_object
from scheduler.api.jobs.table import JobKind
from scheduler.api.kinds import JOBS
from scheduler.simulate.reading import kinds
from scheduler.simulate.reading.inventory import Given, Inventory
from scheduler.simulate.reading.kinds import ObjectKey

Json = dict[str, Any]
_CRON = "CronJob"
_RUN = "spec", "jobTemplate"
# A RayJob makes a RayCluster, a TrainJob a JobSet that makes Jobs: no chain is longer.
_GENERATIONS = 4


class QueuedJob(NamedTuple):
    """A job with a queue, or the next run of a CronJob.

    Attributes:
        given: the object.
        key: the key of the object.
        row: the kind of the job.
        body: the job.
        under: where the object has the job: empty, or ``spec.jobTemplate.``.
    """

    given: Given
    key: ObjectKey
    row: JobKind
    body: Json
    under: str = ""


class QueuedJobs:
    """The jobs with a queue.

    Attributes:
        jobs: by the keys of their objects, in the order given.
    """

    def __init__(self, inventory: Inventory) -> None:
        """Find them; one that cannot be read is added to the mistakes of the inventory."""
        self.jobs: dict[ObjectKey, QueuedJob] = {}
        self._above: dict[ObjectKey, ObjectKey] = {}
        for given in inventory.workloads:
            with inventory.collect_mistakes(given):
                key = kinds.read_key(given.body)
                job = _read_job(given, key)
                if job is not None:
                    self.jobs[key] = job
                owners = read_object(given.body, "metadata").get("ownerReferences") or []
                above = find_job_key(msgspec.convert(owners, list[wire.Owner]), key.namespace)
                if above is not None:
                    self._above[key] = ObjectKey(*above)

    def find(self, key: ObjectKey | None) -> QueuedJob | None:
        """Find the job with a queue that an object is, or that has made it: the topmost one; None if there is none."""
        found = None
        for _ in range(_GENERATIONS):
            if key is None:
                break
            found, key = self.jobs.get(key, found), self._above.get(key)
        return found


def _read_job(given: Given, key: ObjectKey) -> QueuedJob | None:
    """Read a job; None for an object that is none, or has no queue.

    Raises:
        BadInput: the object is malformed.
    """
    body, under, row = dict(given.body), "", table.BY_NAME.get(key.kind)
    name = key.name
    if key.kind == _CRON:
        body, under, row = dict(read_object(body, *_RUN)), "spec.jobTemplate.", table.BY_NAME[JOBS.name]  # fmt: skip
        name = f"{key.name}-next"
    if row is None or not workloads.find_queue(body) or row.is_elsewhere(body):
        return None
    meta = {**read_object(body, "metadata"), "name": name, "namespace": key.namespace}
    return QueuedJob(given, key, row, body | {"metadata": meta}, under)


def let_run(inventory: Inventory) -> None:
    """Have the pods of suspended jobs with a queue made: their quota decides whether they may run."""
    found = QueuedJobs(inventory)
    for at, given in enumerate(inventory.workloads):
        key = kinds.read_key(given.body)
        if found.find(key) is not None:
            with inventory.collect_mistakes(given):
                inventory.workloads[at] = given._replace(body=_let_one_run(given.body, key.kind))


def _let_one_run(body: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    if kind == _CRON:
        place: tuple[str, ...] = (*_RUN, "spec", "suspend")
    else:
        place = tuple(map(str, table.BY_NAME[kind].suspend))
    return _set_in(body, place, value=False) if get_in(body, place) is True else body


def _set_in(body: Mapping[str, Any], place: tuple[str, ...], *, value: object) -> Json:
    """Return a copy of an object with another value at a place."""
    first, *rest = place
    inner = _set_in(read_object(body, first), tuple(rest), value=value) if rest else value
    return {**body, first: inner}
