"""The Lease object: its fields as client-go's leader election writes them, and Evenkeel's annotations on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from scheduler.api import names
from scheduler.kube import wall_clock
from scheduler.kube.lead.holding import FoundLease

Json = dict[str, Any]


def get_spec(lease: Json) -> Json:
    """Return the fields of a lease; none when it has none."""
    return lease.get("spec") or {}


def get_annotations(lease: Json) -> dict[str, str]:
    """Return the annotations of a lease; none when it has none."""
    return lease["metadata"].get("annotations") or {}


def get_holder(spec: Mapping[str, Any]) -> str:
    """Return who holds a lease; empty if it has no holder."""
    return spec.get("holderIdentity") or ""


def read_lease(lease: Json, at: float, seconds: float) -> FoundLease:
    """Read a lease that was found at a time of the clock; it lasts for ``seconds`` if it does not say for how long."""
    spec = get_spec(lease)
    holder, signed = get_holder(spec), get_annotations(lease).get(names.HOLDER, "")
    duration = float(spec.get("leaseDurationSeconds") or seconds)
    return FoundLease(holder, spec, at, duration, is_stranger=signed != holder)


def is_clean(lease: Json) -> bool:
    """Whether the last holder gave the lease back with nothing on its way: in this reign, not in an earlier one."""
    spec = get_spec(lease)
    settled = get_annotations(lease).get(names.SETTLED, "")
    return (settled, spec.get("holderIdentity")) == (str(spec.get("leaseTransitions")), "")


def make_held(
    lease: Json,
    *,
    identity: str,
    seconds: float,
    renewed: str,
    acquired: str,
    is_transition: bool,
    notes: dict[str, str],
) -> Json:
    """Return the lease as its holder writes it.

    Args:
        lease: as it was read or written last.
        identity: of the holder.
        seconds: how long it lasts without a renewal.
        renewed: when it is renewed, which is now.
        acquired: since when the holder has it.
        is_transition: whether the holder takes it over.
        notes: annotations for the next leader.
    """
    # A stranger that takes the lease leaves this annotation as it was.
    signed = {names.HOLDER: identity}
    annotations = {**get_annotations(lease), **notes, **signed}
    annotations.pop(names.SETTLED, None)
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {**lease["metadata"], "annotations": annotations},
        # No other field is kept: a preferred holder or a strategy belongs to an earlier holder.
        "spec": {
            "holderIdentity": identity,
            "leaseDurationSeconds": max(1, round(seconds)),
            "renewTime": renewed,
            "acquireTime": acquired,
            "leaseTransitions": int(get_spec(lease).get("leaseTransitions") or 0) + is_transition,
        },
    }


def make_free(lease: Json, *, is_settled: bool) -> Json:
    """Return the lease as its holder gives it back; ``is_settled``: nothing is on its way any more."""
    spec = {
        **lease["spec"],
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "renewTime": format_now(),
    }
    metadata = lease["metadata"]
    if is_settled:
        # True of this reign only: the next holder counts the transitions on.
        settled = {names.SETTLED: str(spec["leaseTransitions"])}
        metadata = {**metadata, "annotations": {**get_annotations(lease), **settled}}
    return {**lease, "metadata": metadata, "spec": spec}


def add_version(lease: Json, answer: bytes) -> Json | None:
    """Return the lease as it was written, with the version that the answer names; None when it names none."""
    try:
        version = msgspec.json.decode(answer)["metadata"]["resourceVersion"]
    except (msgspec.MsgspecError, LookupError, TypeError):
        return None
    return {**lease, "metadata": {**lease["metadata"], "resourceVersion": version}}


def format_now() -> str:
    """Return this moment as a Lease writes times."""
    return wall_clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
