"""Reads what the containers of a pod request of a vendor's devices.

HAMi treats a container whose figures cannot be read as one that requests nothing, and the pod runs without a device.
Evenkeel refuses the pod and says which field is wrong.
"""

from __future__ import annotations

from scheduler.api import wire
from scheduler.api.pods import gpus
from scheduler.api.pods.gpus import ContainerAsk, GpuAsk
from scheduler.devices.vendors.vendor import Vendor
from scheduler.errors import BadInput


def read_request(pod: wire.Pod, vendor: Vendor) -> GpuAsk | None:
    """Read what a pod requests of a vendor's devices; None if it requests none.

    Raises:
        BadInput: a figure that the vendor's plugin could not serve.
    """
    slots = [
        vendor.read_container(kind, container, field)
        if vendor.read_container is not None
        else _read_container(kind, container, field, vendor)
        for kind, container, field in gpus.list_containers(pod)
    ]
    if not any(slot.cards for slot in slots):
        return None
    notes = pod.metadata.annotations or {}

    def list_named(*keys: str, upper: bool = False) -> tuple[str, ...]:
        return tuple(
            one for key in keys for one in gpus.split_list(notes.get(key, ""), upper=upper)
        )

    is_several = sum(bool(slot.cards) for slot in slots) > 1
    every = (container.name for _, container, _ in gpus.list_containers(pod))
    ask = GpuAsk(
        family=vendor.cards,
        containers=tuple(slots),
        use_types=list_named(vendor.use_types, upper=True),
        nouse_types=list_named(vendor.nouse_types, upper=True),
        use_uuids=list_named(*vendor.use_ids),
        nouse_uuids=list_named(*vendor.nouse_ids),
        names=tuple(every) if is_several else (),
        by_card=True,
        scorer=vendor.scorer,
    )
    return ask if vendor.complete_ask is None else vendor.complete_ask(ask, pod)


def read_most(pod: wire.Pod, vendor: Vendor) -> GpuAsk | None:
    """Read the most that a pod with a malformed request may hold: whole devices; None if it requests none."""
    slots = []
    for kind, container, field in gpus.list_containers(pod):
        n = _count_most(container, field, vendor)
        whole = gpus.WHOLE_CARD_PERCENT
        if not n:
            slots.append(ContainerAsk(kind))
        elif vendor.is_unmeasured:
            slots.append(ContainerAsk(kind, n, 1))
        else:
            slots.append(ContainerAsk(kind, n, 0, whole, whole, whole))
    is_any = any(one.cards for one in slots)
    return GpuAsk(vendor.cards, tuple(slots), by_card=True) if is_any else None


def _count_most(container: wire.Container, field: str, vendor: Vendor) -> int:
    if vendor.count_most is not None:
        return vendor.count_most(container, field)
    try:
        return gpus.read_integer(container, vendor.cards, field) or 0
    except BadInput:
        return 0


def _read_container(
    kind: gpus.ContainerKind, container: wire.Container, field: str, vendor: Vendor
) -> ContainerAsk:
    def read(resource: str) -> int | None:
        return gpus.read_integer(container, resource, field) if resource else None

    count, memory, cores = read(vendor.cards), read(vendor.memory), read(vendor.cores)
    if not count:
        asked = [one for one, n in ((vendor.memory, memory), (vendor.cores, cores)) if n]
        # HAMi's webhook adds memory to a request for 0 devices of some vendors.
        if asked and count is None:
            raise BadInput(
                f"{field}[{asked[0]}]",
                f"requested without {vendor.cards}: add {vendor.cards}: 1",
            )
        return ContainerAsk(kind)
    if vendor.is_unmeasured:
        return ContainerAsk(kind, count, 1)
    if vendor.is_whole:
        return ContainerAsk(kind, count, 0, gpus.WHOLE_CARD_PERCENT, gpus.FULL_CORES)
    mib = (memory or 0) * vendor.mib
    if mib > gpus.MEMORY_MAX_MIB:
        most = gpus.MEMORY_MAX_MIB // vendor.mib
        raise BadInput(f"{field}[{vendor.memory}]", f"{memory} is not within 0..{most}")
    given = vendor.default_cores if cores is None else cores
    if vendor.are_totals:
        mib, given = mib // count, given // count
    if vendor.is_of_cores and not 1 <= given <= gpus.FULL_CORES:
        raise BadInput(f"{field}[{vendor.cores}]", f"{given} is not within 1..100")
    given = min(given, gpus.FULL_CORES)
    if memory is not None and vendor.fit_size is not None:
        mib, given = vendor.fit_size(mib)
    percent = 0 if mib else gpus.WHOLE_CARD_PERCENT
    return ContainerAsk(kind, count, mib, percent, given, given if vendor.is_of_cores else 0)
