"""Enflame's GCU: whole cards, which a node reports by their number alone, and partitions.

A node has a list of profiles, which are the sizes of partitions that its cards can be cut into. A container requests a size, or
memory and cores, and gets one partition: that of the size, or the smallest one that has as much. The plugin learns of one card
of a pod only, so all partitions of a pod are on one card.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any, NamedTuple

import msgspec

from scheduler.api import wire
from scheduler.api.cards import Card
from scheduler.api.hami_config.sections import DeviceConfig
from scheduler.api.hami_config.sections import Enflame as Section
from scheduler.api.pods import gpus
from scheduler.api.pods.gpus import ContainerAsk, ContainerKind, GpuAsk
from scheduler.api.reasons import CardRefusal
from scheduler.devices.contract import Shown
from scheduler.devices.vendors.vendor import Answer, Vendor, read_offered, read_register
from scheduler.errors import BadInput
from scheduler.schema import columns as c

_WHOLE, _PARTS = "GCU", "Enflame"
# HAMi counts the memory of a whole card in percent.
_MIB, _CORES = 100, 100
_REGISTER = "enflame.com/gcu-drs-capacity"
# What stands in the register of a node whose register is gone.
_EMPTY = "[]"
_GIB = 1024
_FIGURE_MAX = 2**31 - 1
_NANOSECONDS = 10**9
# Texts that separate parts of a model.
_SEPARATORS = frozenset(" =,:;")


class Profile(NamedTuple):
    """A size of partitions."""

    name: str
    id: str
    size: int
    gib: int


class CardModel(NamedTuple):
    """What a card can be cut into.

    Attributes:
        minor: the number of its device file.
        most: the size of a partition that is the whole card.
        profiles: the smallest first.
    """

    minor: str
    most: int
    profiles: tuple[Profile, ...]


class _Wish(NamedTuple):
    """What a container requests: a size, or else memory and cores; all 0 for a container without a partition."""

    size: int = 0
    memory: int = 0
    cores: int = 0


class _Device(msgspec.Struct, gc=False, frozen=True):
    index: str = ""
    minor: str = ""
    capacity: int | float | str = 0


class _Told(msgspec.Struct, gc=False, frozen=True):
    devices: list[_Device] = []
    profiles: dict[str, str] = {}


_told = msgspec.json.Decoder(_Told)


def list_kinds(config: DeviceConfig) -> tuple[Vendor, ...]:
    """List the kinds of devices with the resources that a configuration gives them."""
    section = config.enflame

    def read_number(node: wire.Node) -> tuple[str, ...]:
        n = read_offered(node, section.cards)
        return (node.metadata.name, str(n)) if n else ("", "")

    def read_parts(node: wire.Node) -> tuple[str, ...]:
        (text,) = read_register(node, _REGISTER)
        return (text, node.metadata.name) if text else ("", "")

    whole = Vendor(
        word=_WHOLE,
        cards=section.cards,
        is_whole=True,
        to_allocate="hami.io/enflame-gcu-devices-to-allocate",
        allocated="hami.io/enflame-gcu-devices-allocated",
        read_node=read_number,
        list_cards=_list_whole,
        lock=None,
    )
    parts = Vendor(
        word=_PARTS,
        cards=section.size,
        memory=section.memory,
        cores=section.cores,
        register=_REGISTER,
        allocated="hami.io/enflame-vgpu-devices-allocated",
        use_ids=("enflame.com/use-gpuuuid",),
        nouse_ids=("enflame.com/nouse-gpuuuid",),
        needs_models=True,
        read_node=read_parts,
        list_cards=_list_parted,
        count_most=partial(_count_most, section),
        read_container=partial(_read_container, section),
        complete_ask=partial(_complete_ask, section),
        write_more=_write_profiles,
        lock=None,
        chooser=c.TOGETHER,
        shown=Shown(_PARTS, cores=_CORES),
        codes={CardRefusal.TYPE: "ModeNotFit"},
    )
    return whole, parts


def _list_whole(words: tuple[str, ...]) -> tuple[Card, ...]:
    name, number = words
    return tuple(
        Card(id=f"{name}-GCU-{i}", index=i, sharers=1, mib=_MIB, cores=_CORES, model=_WHOLE)
        for i in range(int(number))
    )


def _list_parted(words: tuple[str, ...]) -> tuple[Card, ...]:
    """List the cards of the register.

    Raises:
        BadInput: the register cannot be read.
    """
    text, name = words
    field = f"metadata.annotations[{_REGISTER}]"
    if text == _EMPTY:
        return ()
    try:
        told = _told.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadInput(field, f"not what Enflame's plugin writes: {error}") from error
    profiles = tuple(sorted(map(_read_profile, told.profiles.items()), key=lambda one: one.size))
    most = max((one.size for one in profiles), default=0)
    if most <= 0:
        raise BadInput(field, "has no profile with a size, such as 1g.8gb")
    if not told.devices:
        raise BadInput(field, "has no device")
    gib = max(one.gib for one in profiles) or most
    cards = []
    for i, device in enumerate(told.devices):
        index = _read_figure(device.index, i)
        minor, capacity = device.minor.strip() or str(index), _read_capacity(device.capacity)
        model = write_model(CardModel(minor, most, profiles))
        if not 0 < capacity <= _FIGURE_MAX or max(index, gib * _GIB) > _FIGURE_MAX:
            raise BadInput(field, f"device {i}: capacity, index or memory is no such figure")
        if read_model(model) != CardModel(minor, most, profiles):
            raise BadInput(field, f"device {i}: names may not be empty or have any of = , : ;")
        cards.append(
            Card(
                id=f"{name}-enflame-drs-{index}",
                index=index,
                sharers=capacity,
                mib=gib * _GIB,
                # The cores of a partition are rounded up: with 100 a card of six parts would hold five of the smallest.
                cores=most * math.ceil(_CORES / most),
                model=model,
            )
        )
    if len({one.index for one in cards}) != len(cards):
        raise BadInput(field, "a card is listed twice; every index must be unique")
    return tuple(sorted(cards, key=lambda one: one.index))


def _read_capacity(told: float | str) -> int:
    if isinstance(told, str):
        return _read_figure(told.strip(), 0)
    return int(told) if abs(told) <= _FIGURE_MAX else 0


def _read_figure(text: str, otherwise: int) -> int:
    """Read a figure in decimal digits; another one for what is no figure of devices."""
    is_figure = text.isascii() and text.isdecimal() and len(text) <= len(str(_FIGURE_MAX))
    return int(text) if is_figure else otherwise


def _read_profile(told: tuple[str, str]) -> Profile:
    """Read a profile such as ``3g.24gb``: its size and its GiB, 0 for what cannot be read."""
    name, profile_id = told
    size, _, memory = name.strip().lower().partition(".")

    n = _read_figure(size.removesuffix("g"), 0)
    gib = _read_figure(memory.removesuffix("gb"), 0) if n else 0
    return Profile(name.strip(), profile_id, n, gib)


def write_model(model: CardModel) -> str:
    """Write down what a card can be cut into."""
    profiles = (f"{one.name}={one.id}" for one in model.profiles)
    return " ".join((f"{_PARTS} {model.minor} {model.most}", *profiles))


@lru_cache(maxsize=256)
def read_model(text: str) -> CardModel | None:
    """Read what ``write_model`` has written; None for another text."""
    word, *parts = text.split(" ")
    if word != _PARTS or len(parts) < 2 or not parts[1].isdecimal():
        return None
    told = [part.split("=") for part in parts[2:]]
    if not all(
        len(one) == 2 and all(one) and not _SEPARATORS & set(one[0] + one[1]) for one in told
    ):
        return None
    return CardModel(parts[0], int(parts[1]), tuple(_read_profile((one, two)) for one, two in told))


def _read_wish(section: Section, container: wire.Container, field: str) -> _Wish:
    size, memory, cores = (
        gpus.read_integer(container, one, field) or 0
        for one in (section.size, section.memory, section.cores)
    )
    if size:
        return _Wish(size=size)
    if cores > _CORES:
        raise BadInput(f"{field}[{section.cores}]", f"{cores} is not within 1..{_CORES}")
    if memory > _FIGURE_MAX:
        raise BadInput(f"{field}[{section.memory}]", f"{memory} is not within 1..{_FIGURE_MAX}")
    return _Wish(0, memory, cores)


def _read_container(
    section: Section, kind: ContainerKind, container: wire.Container, field: str
) -> ContainerAsk:
    """Read a request for one partition; how large it is depends on the card."""
    wish = _read_wish(section, container, field)
    if not any(wish):
        return ContainerAsk(kind)
    percent = max(1, wish.cores)
    return ContainerAsk(kind, 1, 0, percent, percent, percent)


def _count_most(section: Section, container: wire.Container, _field: str) -> int:
    found = container.resources or wire.Resources()
    named = {*(found.limits or ()), *(found.requests or ())}
    return 0 if named.isdisjoint({section.size, section.memory, section.cores}) else 1


def _complete_ask(section: Section, ask: GpuAsk, pod: wire.Pod) -> GpuAsk:
    found = [
        (one.name, _read_wish(section, one, field)) for _, one, field in gpus.list_containers(pod)
    ]
    return ask._replace(
        find_parts=partial(_find_parts, tuple(wish for _, wish in found)),
        of_pod=tuple(name for name, _ in found),
    )


def _find_parts(wishes: tuple[_Wish, ...], text: str) -> tuple[tuple[int, int], ...] | None:
    """Find the MiB and the cores of the partition that each container gets on a card of a model."""
    model = read_model(text)
    found = [_find_profile(model, wish) if any(wish) else None for wish in wishes]
    if model is None or any(
        any(wish) and one is None for wish, one in zip(wishes, found, strict=True)
    ):
        return None
    return tuple((0, 0) if one is None else measure(model, one) for one in found)


def measure(model: CardModel, profile: Profile) -> tuple[int, int]:
    """Return the MiB and the percent of the cores of a partition, rounded up."""
    return profile.gib * _GIB, math.ceil(profile.size * _CORES / model.most)


def _find_profile(model: CardModel | None, wish: _Wish) -> Profile | None:
    usable = [one for one in model.profiles if one.gib > 0] if model is not None else []
    if model is None or not usable:
        return None
    if wish.size:
        return next((one for one in usable if one.size == wish.size), None)
    # HAMi takes a figure for MiB that is more than twice the GiB of the largest profile.
    gib = math.ceil(wish.memory / _GIB) if wish.memory > 2 * usable[-1].gib else wish.memory
    return next(
        (one for one in usable if one.gib >= gib and measure(model, one)[1] >= wish.cores), None
    )


def _write_profiles(answer: Answer) -> dict[str, str]:
    """Write the card of the first container that has one, and the profile of each container."""
    told: dict[str, dict[str, Any]] = {}
    first: dict[str, str] = {}
    for name, uses in zip(answer.of_pod, answer.slots, strict=False):
        model = read_model(uses[0].model) if uses else None
        if model is None:
            continue
        part = uses[0].mem_mib, uses[0].cores
        profile = next((one for one in model.profiles if measure(model, one) == part), None)
        if profile is None:
            continue
        told[name] = {
            "allocated": False,
            "request": profile.size,
            "profileID": profile.id,
            "profileName": profile.name,
        }
        index = uses[0].uuid.rpartition("-")[2]
        first = first or {
            "enflame.com/gcu-assigned-index": index,
            "enflame.com/gcu-assigned-id": index,
            "enflame.com/gcu-assigned-minor": model.minor,
            "enflame.com/gcu-request-size": str(profile.size),
        }
    return {
        "enflame.com/gcu-assigned": "false",
        "enflame.com/gcu-assigned-time": str(answer.now * _NANOSECONDS),
        **first,
        "assigned-containers": msgspec.json.encode(dict(sorted(told.items()))).decode(),
    }
