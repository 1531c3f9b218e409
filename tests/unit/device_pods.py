"""Pods with devices as a webhook gets them, and what becomes of them."""

from __future__ import annotations

from typing import Any

import msgspec

from scheduler.api.admission.settings import AdmissionSettings
from scheduler.devices.admission import steps
from scheduler.devices.admission.steps import Allowed, ClusterFacts, FindQuotaExcess, Verdict
from tests.unit.jsonpatch import apply_patch

Json = dict[str, Any]
DEFAULT = AdmissionSettings()


def make_container(name: str = "main", limits: Json | None = None, **more: Any) -> Json:
    """A container; its requests are its limits, as the API server has them."""
    resources = {} if limits is None else {"limits": limits, "requests": dict(limits)}
    return {"name": name, "resources": resources, **more}


def make_pod(*containers: Json, scheduler: str = "default-scheduler", **spec: Any) -> Json:
    return {"metadata": {"name": "x"}, "spec": {"schedulerName": scheduler, "containers": list(containers), **spec}}  # fmt: skip


def find_nothing(_: object) -> None:
    """No quota is exceeded."""


def review(pod: Any, settings: AdmissionSettings = DEFAULT, find_quota_excess: FindQuotaExcess = find_nothing) -> Verdict:  # fmt: skip
    return steps.review_pod(
        msgspec.json.encode(pod), "team", settings, ClusterFacts(find_quota_excess)
    )


def admit(pod: Json, settings: AdmissionSettings = DEFAULT) -> Json:
    """The spec of the pod as it is created."""
    verdict = review(pod, settings)
    assert isinstance(verdict, Allowed), verdict
    spec: Json = apply_patch(pod, verdict.patch)["spec"]
    return spec
