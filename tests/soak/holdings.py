"""What a node offers and what a pod holds of it, read from annotations as HAMi's plugins read them.

Nothing of the scheduler is imported, so that a mistake in how it reads or counts shows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

Json = dict[str, Any]

REGISTER = "hami.io/node-nvidia-register"
NVIDIA = "hami.io/vgpu-devices-allocated"
MIG = "hami.io/vgpu-mig-allocations"
BIND_PHASE = "hami.io/bind-phase"
NEURON = "hami.io/aws-neuron-devices-allocated"
# A register that nobody can read.
GARBLED = "[{"
LOCKS = ("hami.io/mutex.lock", "cambricon.com/dsmlu.lock")


class Device(NamedTuple):
    """What may be given of a device at most; ``places`` are those of the profiles of a card in MIG mode."""

    sharers: int
    mib: int
    cores: int
    healthy: bool = True
    mode: str = ""
    places: frozenset[tuple[str, int, int]] = frozenset()


class Use(NamedTuple):
    """What one container has of one device."""

    key: str
    device: str
    mib: int
    cores: int
    container: int
    is_init: bool


class Place(NamedTuple):
    """The place of an instance on a card."""

    device: str
    profile: str
    start: int
    size: int


def read_register(node: Json) -> dict[str, Device]:
    """The cards that NVIDIA's plugin has registered: as JSON, or as text of seven or nine fields; none that nobody can read."""
    text = ((node["metadata"].get("annotations") or {}).get(REGISTER) or "").strip()
    if text == GARBLED:
        return {}
    if text.startswith("["):
        return {one["id"]: _read_card(one) for one in json.loads(text)}
    found = {}
    for record in filter(None, text.split(":")):
        id_, count, mib, cores, _, _, health, *rest = record.split(",")
        mode = rest[1] if rest else "hami-core"
        found[id_] = Device(int(count), int(mib), int(cores), health == "true", mode)
    return found


def _read_card(one: Json) -> Device:
    places = frozenset(
        (profile["name"], place["start"], place["size"])
        for profile in one.get("migProfiles", ())
        for place in profile["placements"]
    )
    return Device(
        one.get("count", 0),
        one.get("devmem", 0),
        one.get("devcore", 0),
        one.get("health", False),
        one.get("mode", ""),
        places,
    )


def read_uses(pod: Json) -> Iterator[Use]:
    """What a pod holds of every vendor; init containers come first."""
    n_init = len(pod["spec"].get("initContainers") or ())
    for key, text in (pod["metadata"].get("annotations") or {}).items():
        if not _is_of_devices(key):
            continue
        for container, slot in enumerate(text.split(";")[:-1]):
            for record in filter(None, slot.split(":")):
                device, _, mib, cores, *_ = record.split(",")
                yield Use(key, device, int(mib), int(cores), container, container < n_init)


def _is_of_devices(key: str) -> bool:
    return key.startswith("hami.io/") and key.endswith(("-devices-allocated", "/kunlun-allocated"))


def read_places(pod: Json) -> list[Place]:
    """The places on cards in MIG mode that are reserved for a pod."""
    text = (pod["metadata"].get("annotations") or {}).get(MIG) or "[]"
    return [
        Place(one["gpuUUID"], one["profile"], one["placement"]["start"], one["placement"]["size"])
        for one in json.loads(text)
    ]


def is_over(pod: Json) -> bool:
    """Whether a pod has ended and holds nothing any more."""
    return (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}


def list_locks(node: Json) -> dict[str, str]:
    """The locks on a node, by their annotations."""
    notes = node["metadata"].get("annotations") or {}
    return {key: notes[key] for key in LOCKS if notes.get(key)}
