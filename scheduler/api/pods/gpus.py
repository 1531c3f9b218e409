"""A pod's requests for devices: for cards, read as HAMi's webhook and scheduler read them, and for whole devices.

HAMi's webhook does not change pods that name another scheduler, so what it would have filled in is filled in here:
a bare ``nvidia.com/gpu: 1`` is a whole card, exclusive. HAMi silently treats a malformed request as no request;
Evenkeel refuses the pod and says which field is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from enum import IntEnum
from typing import NamedTuple, Protocol

from scheduler.api import limits, names, quantities, wire
from scheduler.api.cards import Sharing
from scheduler.api.hami_config.chart import CHART
from scheduler.api.hami_config.sections import Nvidia
from scheduler.api.pods import requests
from scheduler.errors import BadInput, Mistake

WHOLE_CARD_PERCENT = 100
FULL_CORES = 100
# A whole card in the unit in which cards are compared.
WHOLE_MILLI = 1000
MEMORY_MAX_MIB = 2**31 - 1
_PERCENT = "percent of a card as a plain integer, 0..100"
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})


class ContainerKind(IntEnum):
    """How long a container holds its cards."""

    INIT = 0
    SIDECAR = 1
    APP = 2


class ContainerAsk(NamedTuple):
    """One container's request: ``cards`` cards, and on each ``mem_mib`` (or ``mem_percent``) and ``cores``.

    ``mem_percent`` counts only where ``mem_mib`` is 0. ``core_percent``: the cores are this percentage of those of each card
    that is chosen, and not ``cores``, which is then for devices that are only counted. All zero: the container asks no GPU.
    """

    kind: ContainerKind
    cards: int = 0
    mem_mib: int = 0
    mem_percent: int = 0
    cores: int = 0
    core_percent: int = 0


FindParts = Callable[[str], tuple[tuple[int, int], ...] | None]


class GpuAsk(NamedTuple):
    """What a pod asks of one family: a slot per container (init first) and which cards it accepts.

    ``family`` is the resource by which it asks. ``names`` are the names of the containers, if several ask cards:
    messages must say which container is meant. ``by_card`` says whether its devices may be chosen one by one,
    ``joint`` whether they must be on one NUMA node with those of the first family that the pod asks. ``of_pod`` is what the
    driver needs of the pod for its answer. ``any_idle``: of idle cards those of every mode will do, whatever ``vgpu_mode``.
    ``scorer`` is what HAMi's node policies add for its devices, as ``schema.choice_scores.NO_SCORE``. ``find_parts`` says for a model which part of a card each container gets (MiB, cores), where that depends on the model;
    None if cards of the model have no such part.
    """

    family: str
    containers: tuple[ContainerAsk, ...]
    use_types: tuple[str, ...] = ()
    nouse_types: tuple[str, ...] = ()
    use_uuids: tuple[str, ...] = ()
    nouse_uuids: tuple[str, ...] = ()
    vgpu_mode: str = ""
    numa_bind: bool = False
    names: tuple[str, ...] = ()
    by_card: bool = False
    joint: bool = False
    of_pod: tuple[str, ...] = ()
    any_idle: bool = False
    scorer: int = 0
    sharing: Sharing = Sharing()
    find_parts: FindParts | None = None

    @property
    def accepted(self) -> Hashable:
        """Equal for pods that accept the same cards and prefer the same, whatever their containers ask of each."""
        return (
            self.use_types,
            self.nouse_types,
            self.use_uuids,
            self.nouse_uuids,
            self.vgpu_mode,
            self.numa_bind,
            self.scorer,
            self.find_parts,
        )


class CardWishes(NamedTuple):
    """Which cards a pod wants, as far as that can be checked on a node that reports only a number of GPUs.

    Attributes:
        use_types, nouse_types: as in GpuAsk.
        is_by_card: it wants certain cards, cards of one NUMA node, or cards of a mode: only reported cards can show this.
    """

    use_types: tuple[str, ...] = ()
    nouse_types: tuple[str, ...] = ()
    is_by_card: bool = False

    @property
    def is_by_type(self) -> bool:
        """Whether it wants certain types."""
        return bool(self.use_types or self.nouse_types)

    def accept(self, product: str) -> bool:
        """Whether GPUs of a product will do; types have spaces, which the product in a label cannot have."""
        name = product.upper()
        wanted = any(one.replace(" ", "-") in name for one in self.use_types)
        refused = any(one.replace(" ", "-") in name for one in self.nouse_types)
        return (wanted or not self.use_types) and not refused


def read_wishes(ask: GpuAsk | None) -> CardWishes | None:
    """Read the wishes of a pod for certain NVIDIA cards; None for none."""
    if ask is None or ask.family != names.GPU:
        return None
    by_card = bool(ask.use_uuids or ask.nouse_uuids or ask.vgpu_mode or ask.numa_bind)
    if not (by_card or ask.use_types or ask.nouse_types):
        return None
    return CardWishes(ask.use_types, ask.nouse_types, by_card)


class CardTypes(Protocol):
    """Which types of cards a pod accepts: parts of their names in capitals."""

    @property
    def use_types(self) -> tuple[str, ...]: ...  # noqa: D102 - as in GpuAsk
    @property
    def nouse_types(self) -> tuple[str, ...]: ...  # noqa: D102


def read_ask(pod: wire.Pod, nvidia: Nvidia = CHART.nvidia) -> GpuAsk | None:
    """Read what the pod asks of NVIDIA's cards, whole or in shares; None when it asks none.

    ``nvidia``: the resources by which it asks, and what holds for what it leaves out.

    Raises:
        BadInput: a figure is one that HAMi's device plugin could not serve.
    """
    slots = [
        _read_container(kind, container, field, nvidia)
        for kind, container, field in list_containers(pod)
    ]
    if not any(slot.cards for slot in slots):
        return None
    annotations = pod.metadata.annotations or {}
    is_several = sum(bool(slot.cards) for slot in slots) > 1
    called = tuple(container.name for _, container, _ in list_containers(pod)) if is_several else ()
    return GpuAsk(
        family=nvidia.cards,
        containers=tuple(slots),
        use_types=split_list(annotations.get(names.USE_TYPE, ""), upper=True),
        nouse_types=split_list(annotations.get(names.NOUSE_TYPE, ""), upper=True),
        use_uuids=split_list(annotations.get(names.USE_UUID, "")),
        nouse_uuids=split_list(annotations.get(names.NOUSE_UUID, "")),
        vgpu_mode=annotations.get(names.VGPU_MODE, ""),
        numa_bind=_read_bool(annotations.get(names.NUMA_BIND, "")),
        names=called,
        by_card=True,
    )


def read_asks(pod: wire.Pod, nvidia: Nvidia = CHART.nvidia) -> tuple[GpuAsk, ...]:
    """Read what the pod asks of NVIDIA's cards, as ``read_ask``."""
    ask = read_ask(pod, nvidia)
    return () if ask is None else (ask,)


def read_whole_ask(pod: wire.Pod, resource: str) -> GpuAsk | None:
    """Read what the pod asks of devices that are allocated whole only; None when it asks none.

    Raises:
        BadInput: a request is not a quantity.
    """
    every = (*(pod.spec.init_containers or ()), *pod.spec.containers)
    if all(_find_quantity(container, resource) is None for container in every):
        return None
    slots = []
    for kind, container, field in list_containers(pod):
        raw = _find_quantity(container, resource)
        count = 0 if raw is None else requests.read_amount(resource, raw, field)
        percent, cores = (WHOLE_CARD_PERCENT, FULL_CORES) if count else (0, 0)
        slots.append(ContainerAsk(kind, count, 0, percent, cores))
    return GpuAsk(resource, tuple(slots)) if any(slot.cards for slot in slots) else None


def find_most(pod: wire.Pod, resource: str) -> tuple[ContainerAsk, ...]:
    """Find the most that a pod with a malformed request may hold: its cards, which it asks by a resource, as whole ones.

    HAMi lowers or ignores some figures that are refused here, so such pods may run on its nodes.
    """
    slots: list[ContainerAsk] = []
    for kind, container, field in list_containers(pod):
        try:
            count = read_integer(container, resource, field) or 0
        except BadInput:
            count = 0
        slots.append(ContainerAsk(kind, count, 0, WHOLE_CARD_PERCENT, FULL_CORES))
    return tuple(slots) if any(slot.cards for slot in slots) else ()


def read_most(pod: wire.Pod, resource: str) -> tuple[GpuAsk, ...]:
    """Read as requests what ``find_most`` finds; none if it finds none."""
    most = find_most(pod, resource)
    return (GpuAsk(resource, most, by_card=True),) if most else ()


def sum_up(ask: GpuAsk) -> ContainerAsk:
    """Sum up what the pod holds while it runs, as one container: all its cards, each with the most that any asks."""
    staying = [s for s in ask.containers if s.cards and s.kind != ContainerKind.INIT] or [
        s for s in ask.containers if s.cards
    ]
    if len(staying) == 1 and staying[0].kind == ContainerKind.APP:
        return staying[0]
    return ContainerAsk(
        ContainerKind.APP,
        sum(s.cards for s in staying),
        max(s.mem_mib for s in staying),
        max(s.mem_percent for s in staying),
        max(s.cores for s in staying),
        max(s.core_percent for s in staying),
    )


def asks_whole(ask: GpuAsk | None) -> bool:
    """Whether every container that asks devices asks whole ones, in whatever words."""
    whole = (0, WHOLE_CARD_PERCENT, FULL_CORES)
    slots = ask.containers if ask is not None else ()
    return all((one.mem_mib, one.mem_percent, one.cores) == whole for one in slots if one.cards)


def count_picks(ask: GpuAsk | None) -> int:
    """Count the cards that must be chosen for a pod one by one, for all its containers; 0 for devices that are counted."""
    if ask is None or not ask.by_card:
        return 0
    return sum(slot.cards for slot in ask.containers)


def find_claim_excess(ask: GpuAsk | None) -> Mistake | None:
    """Find out why a pod asks more cards than a claim may name; None when it does not.

    A claim that was written must be read back, or its cards would be allocated a second time.
    """
    asked = count_picks(ask)
    if ask is None or not asked:
        return None
    if len(ask.containers) > limits.CLAIM_CONTAINERS:
        most = limits.CLAIM_CONTAINERS
        return Mistake("spec.containers", f"has more than {most} entries, the maximum")
    if asked > limits.CLAIM_CARDS:
        return Mistake(
            f"spec.containers[].resources.limits[{ask.family}]",
            f"requests more than {limits.CLAIM_CARDS} in all containers, the maximum",
        )
    return None


# Totals by size on nodes that keep them, under names that no resource has.
SIZES = tuple(f"pods of GPU size {i}" for i in range(5))


def find_size(ask: GpuAsk | None) -> int:
    """Find the size class of the GPUs that a pod asks: 0 a share, 1 one, 2 two, 3 three or four, 4 more; -1 none."""
    if ask is None:
        return -1
    asked = sum_up(ask)
    if asked.cards == 1:
        return 1 if WHOLE_CARD_PERCENT in (asked.mem_percent, asked.cores) else 0
    return 2 if asked.cards == 2 else 3 if asked.cards <= 4 else 4


def list_containers(pod: wire.Pod) -> Iterator[tuple[ContainerKind, wire.Container, str]]:
    """List every container, init containers first, and the field of its requests."""
    for section, containers in (
        ("initContainers", pod.spec.init_containers or ()),
        ("containers", pod.spec.containers),
    ):
        for i, container in enumerate(containers):
            kind = ContainerKind.APP
            if section == "initContainers":
                kind = (
                    ContainerKind.SIDECAR
                    if container.restart_policy == "Always"
                    else ContainerKind.INIT
                )
            yield kind, container, f"spec.{section}[{i}].resources.limits"


def _read_container(
    kind: ContainerKind, container: wire.Container, field: str, nvidia: Nvidia
) -> ContainerAsk:
    def read(resource: str, wanted: str) -> int | None:
        return read_integer(container, resource, field, wanted) if resource else None

    count = read(nvidia.cards, "the number of cards as a plain integer")
    mem = read(nvidia.memory, _describe_memory(nvidia.factor))
    percent = read(nvidia.memory_percent, _PERCENT)
    cores = read(nvidia.cores, _PERCENT)
    if not count:
        figures = (nvidia.memory, mem), (nvidia.memory_percent, percent), (nvidia.cores, cores)
        asked = [name for name, figure in figures if figure]
        # HAMi's webhook adds all cores to a request for 0 cards, too.
        is_added = (count, mem, percent, cores) == (0, None, None, FULL_CORES)
        if asked and not is_added:
            raise BadInput(
                f"{field}[{asked[0]}]",
                f"requested without {nvidia.cards}: the kubelet calls the device plugin for {nvidia.cards} "
                f"only, so add {nvidia.cards}: 1",
            )
        return ContainerAsk(kind)
    factor = max(1, nvidia.factor)
    if mem is not None and mem > MEMORY_MAX_MIB // factor:
        raise BadInput(
            f"{field}[{nvidia.memory}]",
            f"{mem} is more than {MEMORY_MAX_MIB // factor}{'' if factor > 1 else ' MiB'}: "
            f"write {_describe_memory(factor)}",
        )
    if percent is not None and percent > WHOLE_CARD_PERCENT:
        raise BadInput(f"{field}[{nvidia.memory_percent}]", f"{percent} is not within 0..100")
    whole = percent == WHOLE_CARD_PERCENT or (percent is None and mem is None)
    if cores is None:
        # HAMi's webhook adds all cores where whole cards are asked, if there is a resource for them.
        cores = FULL_CORES if whole and nvidia.cores else nvidia.default_cores
    # HAMi lowers cores above a whole card, even for cards that are scaled up.
    cores = min(cores, FULL_CORES)
    if mem:
        return ContainerAsk(kind, count, mem * factor, 0, cores)
    if not percent and nvidia.default_mib:
        return ContainerAsk(kind, count, min(nvidia.default_mib, MEMORY_MAX_MIB), 0, cores)
    return ContainerAsk(kind, count, 0, percent or WHOLE_CARD_PERCENT, cores)


def _describe_memory(factor: int) -> str:
    if factor > 1:
        return f"units of {factor} MiB per card as a plain integer"
    return "MiB per card as a plain integer, e.g. 16384 for 16 GiB"


def _find_quantity(container: wire.Container, resource: str) -> str | int | float | None:
    resources = container.resources
    if resources is None:
        return None
    for section in (resources.limits, resources.requests):
        if section and resource in section:
            return section[resource]
    return None


def read_integer(
    container: wire.Container, resource: str, field: str, wanted: str = "a plain integer"
) -> int | None:
    """Read a whole number that a container requests of a resource, from its limits or else its requests; None for none.

    ``wanted``: what is allowed, in words.

    Raises:
        BadInput: it is no whole number.
    """
    raw = _find_quantity(container, resource)
    if raw is None:
        return None
    # The API server writes 3000 as "3k". HAMi voids a request that is no integer and then treats the pod
    # as asking nothing; here it is refused.
    try:
        thousandths = quantities.read_milli(raw)
    except quantities.BadQuantity:
        thousandths = 1
    if thousandths % 1000:
        raise BadInput(
            f"{field}[{resource}]",
            f'"{raw}" is not allowed: write {wanted}',
        )
    return thousandths // 1000


def split_list(text: str, *, upper: bool = False) -> tuple[str, ...]:
    """Split a list with commas, without blanks and empty parts; ``upper``: in capitals."""
    if not text:
        return ()
    parts = (part.strip() for part in text.split(","))
    return tuple(part.upper() if upper else part for part in parts if part)


def _read_bool(text: str) -> bool:
    return text in _TRUE
