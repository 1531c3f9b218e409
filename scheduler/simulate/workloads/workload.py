"""A workload as its controller reads it: its key, and checked figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from scheduler.api import kinds as api_kinds
from scheduler.api import values, wire
from scheduler.errors import BadInput
from scheduler.simulate.reading import kinds, objects
from scheduler.simulate.reading.inventory import Given
from scheduler.simulate.reading.kinds import ObjectKey

# The most pods of one workload, and of all together.
PODS_MAX = 200_000
JOB_TEMPLATE = "spec.jobTemplate.spec.template"


@dataclass(frozen=True, slots=True)
class Workload:
    """An object from which a controller makes pods.

    Attributes:
        given: the object.
        key: its kind, namespace and name.
        meta: its metadata.
        spec, status: as they are in the object.
        template: the path of its pods' template in the object.
    """

    given: Given
    key: ObjectKey
    meta: wire.Meta
    spec: Mapping[str, Any]
    status: Mapping[str, Any]
    template: str = "spec.template"

    def read_count(self, field: str, default: int) -> int:
        """Read a number of pods from a field.

        Raises:
            BadInput: the value is no number, or is out of bounds.
        """
        return values.read_integer(self.spec.get(field, default), f"spec.{field}", 0, PODS_MAX)

    @property
    def owner(self) -> wire.Owner:
        """The reference to the workload that its pods have."""
        version = api_kinds.BY_NAME[self.key.kind].api_version
        return wire.Owner(self.key.kind, self.key.name, version, controller=True)

    @property
    def controller(self) -> wire.Owner | None:
        """The controller of the workload itself, such as the Deployment of a ReplicaSet."""
        refs = self.meta.owner_references or ()
        return next((one for one in refs if one.controller), None)


def read_workload(given: Given) -> Workload:
    """Read a workload from its object.

    Raises:
        BadInput: the object has no name, or its parts are no objects.
    """
    body = {"metadata": objects.find_mapping(given.body, "metadata")}
    meta = objects.decode(body, wire.Pod).metadata
    if not meta.name:
        raise BadInput("metadata.name", "is missing")
    spec = {k: v for k, v in objects.find_mapping(given.body, "spec").items() if v is not None}
    status = objects.find_mapping(given.body, "status")
    return Workload(given, kinds.read_key(given.body), meta, spec, status)


def make_job(cron: Workload) -> Workload:
    """Make the Job of a CronJob's next run.

    Raises:
        BadInput: the CronJob has no template of a Job.
    """
    spec = {"spec": cron.spec}
    job = objects.find_mapping(spec, "spec", "jobTemplate", "spec")
    written = {"metadata": objects.find_mapping(spec, "spec", "jobTemplate", "metadata")}
    with prefix_errors("spec.jobTemplate"):
        of_template = objects.decode(written, wire.Pod).metadata
    name = f"{cron.key.name}-next"
    meta = wire.Meta(
        name=name,
        namespace=cron.key.namespace,
        labels=of_template.labels,
        annotations=of_template.annotations,
    )
    meta.owner_references = [cron.owner]
    key = ObjectKey("Job", cron.key.namespace, name)
    return Workload(cron.given, key, meta, job, {})


def take_template(workload: Workload, template: Any, path: str) -> Workload:
    """Return a workload with one of its templates as its only one."""
    return replace(workload, spec={"template": template}, template=path)


@contextmanager
def prefix_errors(path: str) -> Iterator[None]:
    """Within this context, the fields of errors get this path in front."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{path}.{error.field}", error.problem) from error
