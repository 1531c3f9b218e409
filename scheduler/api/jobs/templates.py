"""What becomes of the pod templates of a job when it is started, and when it is stopped.

Source: Kueue (2026-08), ``pkg/podset/podset.go``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from scheduler.api import names, values
from scheduler.api.jobs.parts import Json, Place, get_in, read_list, read_object

# What a start may change, and a stop puts back.
_MAPS = ("metadata", "labels"), ("metadata", "annotations"), ("spec", "nodeSelector")
_LISTS = ("spec", "tolerations"), ("spec", "schedulingGates")
# What an earlier start has left may be written over.
_OURS = frozenset({
    names.KUEUE_WORKLOAD, names.KUEUE_CHAIN, names.KUEUE_POD_SET, names.KUEUE_CLUSTER_QUEUE, names.KUEUE_LOCAL_QUEUE,
})  # fmt: skip


class CannotStart(Exception):  # noqa: N818
    """What a job is given contradicts what its templates say, so it can never be started."""


class Addition(NamedTuple):
    """What is added to the template of a part of a job.

    Attributes:
        name: of the part.
        n_pods: how many pods it may have.
        maps: labels, annotations and the node selector.
        tolerations: as the API server has them.
        gates: of its pods, which wait until they are taken away.
    """

    name: str
    n_pods: int
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    selector: Mapping[str, str]
    tolerations: Sequence[Json]
    gates: Sequence[str] = ()

    @property
    def maps(self) -> tuple[Mapping[str, str], ...]:
        """What is added to labels, annotations and the node selector."""
        return self.labels, self.annotations, self.selector


def merge(template: Json, addition: Addition) -> Json:
    """Return the fields of a template as they are once the job is started, by their places.

    Raises:
        CannotStart: the template has another value for something that is added.
    """
    changed: Json = {}
    for place, added in zip(_MAPS, addition.maps, strict=True):
        found = dict(read_object(template, *place))
        for key, value in added.items():
            if found.get(key, value) != value and key not in _OURS:
                where = f"{'.'.join(place)}[{key}]"
                raise CannotStart(
                    f"pod set {addition.name}: {where} is {values.quote(found[key])}, and would become {values.quote(value)}"
                )
            found[key] = value
        changed[".".join(place)] = found
    tolerations = list(read_list(template, "spec", "tolerations"))
    tolerations += [one for one in addition.tolerations if one not in tolerations]
    gates = list(read_list(template, "spec", "schedulingGates"))
    known = {one.get("name") for one in gates}
    gates += [{"name": one} for one in addition.gates if one not in known]
    return changed | {"spec.tolerations": tolerations, "spec.schedulingGates": gates}


def restore(template: Json, kept: Mapping[str, str]) -> Json:
    """Return the fields of a template as they are once the job is stopped, by their places.

    Args:
        template: that of the pod set of its workload.
        kept: labels that the controller of the job writes.
    """
    fields: Json = {".".join(place): dict(read_object(template, *place)) for place in _MAPS}
    fields["metadata.labels"] |= kept
    return fields | {".".join(place): read_list(template, *place) for place in _LISTS}


def write_changes(job: Json, place: Place, fields: Json) -> list[Json]:
    """Write the operations of a JSON patch by which a template gets fields; none for what is as it should be."""
    template = get_in(job, place)
    made: list[Json] = []
    have = template if isinstance(template, Mapping) else {}
    new_meta: Json = {}
    for name, wanted in fields.items():
        under, _, key = name.partition(".")
        before = get_in(have, (under, key))
        if (before or None) == (wanted or None):
            continue
        if under == "metadata" and not isinstance(have.get(under), Mapping):
            new_meta[key] = wanted
        elif wanted:
            made.append(write_operation("add", (*place, under, key), wanted))
        else:
            made.append(write_operation("remove", (*place, under, key)))
    if new_meta:
        made.insert(0, write_operation("add", (*place, "metadata"), new_meta))
    return made


def write_operation(op: str, place: Place, value: Any = None) -> Json:
    """Write one operation of a JSON patch."""
    steps = (str(one).replace("~", "~0").replace("/", "~1") for one in place)
    path = "".join(f"/{one}" for one in steps)
    return {"op": op, "path": path} | ({} if op == "remove" else {"value": value})
