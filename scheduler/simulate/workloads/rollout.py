"""Finds pods of the baseline that a changed workload replaces: their template differs in what placement reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from scheduler.api import values, wire
from scheduler.api.pods import templates
from scheduler.api.storage import ClaimSpec
from scheduler.errors import BadInput
from scheduler.simulate.reading import objects
from scheduler.simulate.reading.kinds import ObjectKey
from scheduler.simulate.reading.priorities import Priorities
from scheduler.simulate.workloads import claims
from scheduler.simulate.workloads import workload as workloads
from scheduler.simulate.workloads.molds import Mold
from scheduler.simulate.workloads.owned import Owned
from scheduler.simulate.workloads.workload import Workload

# The workloads of one's own files, each with the object of the same name in the baseline; None without one.
Earlier = Mapping[ObjectKey, Mapping[str, Any] | None]
# What decides where a pod may go, by the words for it. Names of images are left out: they only change scores.
_FIGURES = {
    "requests": ("requests",),
    "GPUs": ("gpu", "most"),
    "host ports": ("ports",),
    "nodeSelector": ("selector",),
    "node affinity": ("required", "preferred"),
    "pod affinity": ("affinity", "preferred_affinity"),
    "pod anti-affinity": ("anti_affinity", "preferred_anti_affinity"),
    "topology spread": ("spread",),
    "tolerations": ("tolerations",),
    "annotations": ("steering",),
    "other fields": ("features", "problem"),
}
# Only these are compared with a pod: admission adds tolerations and volumes, controllers add affinity and claims.
_OF_A_POD = frozenset({"requests", "GPUs", "nodeSelector", "priority"})
_encoder = msgspec.json.Encoder()

_Needs = dict[str, object]


class WorkloadChange(NamedTuple):
    """The pods that a workload replaces, and the fields in which their template differs from the new one."""

    pods: list[wire.Pod]
    fields: list[str]


def keep_size(workload: Workload, earlier: Mapping[str, Any] | None) -> Workload:
    """Keep the size of the baseline for a workload that gives no size, as ``kubectl apply`` does."""
    size = objects.find_mapping(earlier, "spec").get("replicas") if earlier else None
    if size is None or "replicas" in workload.spec:
        return workload
    return replace(workload, spec={**workload.spec, "replicas": size})


def find_change(
    workload: Workload,
    earlier: Mapping[str, Any] | None,
    owned: Owned,
    others: Mapping[ObjectKey, Workload],
    priorities: Priorities,
) -> WorkloadChange:
    """Find the pods of the baseline that a workload of one's own files replaces.

    Args:
        workload: the workload in the file.
        earlier: the object of the same name in the baseline.
        owned: the pods of each workload.
        others: all workloads; among them are the ReplicaSets and Jobs of this one.
        priorities: the PriorityClasses.

    Raises:
        BadInput: the template of the file cannot be read.
    """
    there = owned.list_alive(workload.key)
    if not there:
        return WorkloadChange([], [])
    is_cron = workload.key.kind == "CronJob"
    pod = Mold(workloads.make_job(workload) if is_cron else workload, priorities).pod
    wanted = _read_needs(pod) | _read_claims(workload.spec)
    # Pods of one controller have one template.
    fields: dict[ObjectKey | None, list[str]] = {}
    replaced: list[wire.Pod] = []
    for one in there:
        controller = owned.find_controller(one)
        above = others.get(controller) if controller and controller != workload.key else None
        body = above.given.body if above else earlier
        if body is None:
            found = _list_differing(wanted, _read_needs(one), _OF_A_POD)
        else:
            if controller not in fields:
                fields[controller] = _list_differing(
                    wanted, _read_template_needs(body, priorities), wanted
                )
            found = fields[controller]
        if found:
            replaced.append(one)
            fields.setdefault(None, []).extend(found)
    said = {name for pod_fields in fields.values() for name in pod_fields}
    return WorkloadChange(replaced, [name for name in wanted if name in said])


def _list_differing(wanted: _Needs, there: _Needs, names: Iterable[str]) -> list[str]:
    return [name for name in names if wanted.get(name) != there.get(name)]


def _read_template_needs(body: Mapping[str, Any], priorities: Priorities) -> _Needs:
    """Read what a workload's template requires; nothing if it cannot be read, so that it differs from any other."""
    path = ("jobTemplate", "spec", "template") if body.get("kind") == "CronJob" else ("template",)
    try:
        template = objects.find_mapping(body, "spec", *path)
        return _read_needs(objects.admit_pod(template, priorities)) | _read_claims(body["spec"])
    except BadInput:
        return {}


def _read_needs(pod: wire.Pod) -> _Needs:
    template, spec = templates.make_template(pod), pod.spec
    found: _Needs = {
        word: tuple(getattr(template, name) for name in names) for word, names in _FIGURES.items()
    }
    return found | {
        "priority": (spec.priority, spec.preemption_policy),
        "schedulerName": spec.scheduler_name,
        "scheduling gates": _encoder.encode(spec.scheduling_gates or []),
        "volumes": [_read_volume(one) for one in spec.volumes or () if one.is_storage],
    }


def _read_volume(volume: wire.Volume) -> tuple[bytes, ClaimSpec | None]:
    """Read a volume without what the API server fills into the template of its claim."""
    if volume.ephemeral is None:
        return _encoder.encode(volume), None
    spec = objects.find_mapping(volume.ephemeral, "volumeClaimTemplate", "spec")
    return volume.name.encode(), _admit(objects.decode(spec, ClaimSpec))


def _read_claims(spec: Mapping[str, Any]) -> _Needs:
    """Read the claims of each pod of a StatefulSet."""
    field = "volumeClaimTemplates"
    given = values.read_items(spec.get(field), f"spec.{field}", dict)
    found = claims.read_templates(given, f"spec.{field}")
    return {field: [(name, _admit(claim)) for name, claim in found]}


def _admit(spec: ClaimSpec) -> ClaimSpec:
    return structs.replace(spec, volume_mode=spec.volume_mode or "Filesystem")
