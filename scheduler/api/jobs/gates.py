"""Who has to agree before a workload is tried: the annotation ``kueue.x-k8s.io/admission-gated-by`` of jobs and pods.

It is written when an object is made. From then on names can only be taken off it.

Kueue sets no bound on the number of names, and an annotation may have 256 KiB. The bounds here are far above what
people write. The webhook refuses what is beyond them. Where there is no webhook, a longer text is one gate that never
opens: no name can be taken off it, so its workload never starts early. It is gone once the whole annotation is.

Source: Kueue (2026-08), ``pkg/util/webhook/validation_admissiongatedby.go`` and ``UpdateAdmissionGatedBy`` of
``pkg/controller/jobframework/reconciler.go``.
"""

from __future__ import annotations

import re

from scheduler.api import names, values
from scheduler.api.jobs.parts import Json, read_object
from scheduler.errors import BadInput

_MOST = 63
_NAMES_MOST = 64
# As many names as are allowed, of the most characters, each with its comma.
_TEXT_MOST = _NAMES_MOST * (_MOST + 1)
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
# The characters of a path of a URL that need no escape.
_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_FIELD = f"metadata.annotations[{names.KUEUE_GATED}]"


def find_gates(found: Json) -> str:
    """Find who has to agree before the workload of an object is tried, as it is written; empty for nobody.

    A text that is too long is cut, but not so far that it would be within the bound.
    """
    return cut_gates(_read_text(found))


def cut_gates(text: str) -> str:
    """Cut a text that is too long to one that is still too long: no more of it is kept or copied."""
    return text[: _TEXT_MOST + 1]


def narrow(of_workload: str, of_job: str) -> str:
    """Return what is left of a workload's gates if those count no longer that its job does not name.

    If either text is too long, the workload keeps all of its own, unless its job has none any more.
    """
    if of_workload == of_job or not of_job:
        return of_job
    if max(len(of_workload), len(of_job)) > _TEXT_MOST:
        return of_workload
    ours, theirs = _split(of_workload), frozenset(_split(of_job))
    left = [one for one in ours if one in theirs]
    return of_workload if left == ours else ",".join(left)


def check_gates(found: Json, before: Json | None) -> None:
    """Check who has to agree; ``before``: the object as it is, None while it is created.

    What has not changed is not checked: an object that has come past the webhook can still lose its finalizers.

    Raises:
        BadInput: a name is malformed, or was added later; or there are too many.
    """
    text = _read_text(found)
    if before is not None and text == _read_text(before):
        return
    if len(text) > _TEXT_MOST:
        raise BadInput(_FIELD, f"has more than {_TEXT_MOST} characters, the maximum")
    gates = _split(text)
    if len(gates) > _NAMES_MOST:
        raise BadInput(_FIELD, f"has more than {_NAMES_MOST} names, the maximum")
    if before is not None:
        known = frozenset(_split(_read_text(before)))
        added = [one for one in gates if one not in known]
        if added and not known:
            raise BadInput(_FIELD, "may not be added later")
        if added:
            raise BadInput(
                _FIELD,
                f"{values.quote(added[0])} may not be added later: names may only be removed",
            )
    seen: set[str] = set()
    for one in gates:
        if one in seen:
            raise BadInput(_FIELD, f"{values.quote(one)} is named twice")
        seen.add(one)
        domain, _, path = one.partition("/")
        if len(one) > _MOST or not (_DOMAIN.fullmatch(domain) and _PATH.fullmatch(path)):
            raise BadInput(
                _FIELD,
                f"{values.quote(one)} is not a domain with a path, such as example.com/approval, of at most {_MOST} characters",
            )


def _read_text(found: Json) -> str:
    return str(read_object(found, "metadata", "annotations").get(names.KUEUE_GATED) or "")


def _split(text: str) -> list[str]:
    return [one.strip() for one in text.split(",")] if text.strip() else []
