"""Who has to agree before a workload is tried: the annotation ``kueue.x-k8s.io/admission-gated-by`` of jobs and pods.

It is written when an object is made. From then on names can only be taken off it.

Source: Kueue (2026-08), ``pkg/util/webhook/validation_admissiongatedby.go`` and ``UpdateAdmissionGatedBy`` of
``pkg/controller/jobframework/reconciler.go``.
"""

from __future__ import annotations

import re

from scheduler.api import names, values
from scheduler.api.jobs.parts import Json, read_object
from scheduler.errors import BadInput

_MOST = 63
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
# The characters of a path of a URL that need no escape.
_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_FIELD = f"metadata.annotations[{names.KUEUE_GATED}]"


def find_gates(found: Json) -> str:
    """Find who has to agree before the workload of an object is tried, as it is written; empty for nobody."""
    return str(read_object(found, "metadata", "annotations").get(names.KUEUE_GATED, ""))


def narrow(of_workload: str, of_job: str) -> str:
    """Return what is left of a workload's gates if those count no longer that its job does not name."""
    ours, theirs = _split(of_workload), _split(of_job)
    left = [one for one in ours if one in theirs]
    return of_workload if left == ours else ",".join(left)


def check_gates(found: Json, before: Json | None) -> None:
    """Check who has to agree; ``before``: the object as it is, None while it is created.

    Raises:
        BadInput: a name is malformed, or was added later.
    """
    text = find_gates(found)
    gates = _split(text)
    if before is not None:
        known = _split(find_gates(before))
        added = [one for one in gates if one not in known]
        if added and not known:
            raise BadInput(_FIELD, "may not be added later")
        if added:
            raise BadInput(
                _FIELD,
                f"{values.quote(added[0])} may not be added later: names may only be removed",
            )
    for i, one in enumerate(gates):
        if one in gates[:i]:
            raise BadInput(_FIELD, f"{values.quote(one)} is named twice")
        domain, _, path = one.partition("/")
        if len(one) > _MOST or not (_DOMAIN.fullmatch(domain) and _PATH.fullmatch(path)):
            raise BadInput(
                _FIELD,
                f"{values.quote(one)} is not a domain with a path, such as example.com/approval, of at most {_MOST} characters",
            )


def _split(text: str) -> list[str]:
    return [one.strip() for one in text.split(",")] if text.strip() else []
