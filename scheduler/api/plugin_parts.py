"""How NVIDIA's device plugin offers parts of GPUs, and how its feature discovery describes them in a node's labels.

The plugin offers each GPU several times (time-slicing or MPS), or it offers the MIG instances that an administrator has made. In
both cases a resource of the node counts the parts; the plugin picks the part that a container gets.

Source: NVIDIA's k8s-device-plugin (2026-08): ``internal/lm`` for the labels, ``api/config/v1`` for the names of resources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import NamedTuple

from scheduler.api import names

SHARED = ".shared"
# The resources that count nothing but parts; ``*`` stands for any end.
RESOURCES = (names.GPU + SHARED, "nvidia.com/mig-*")
_INSTANCE = re.compile(r"nvidia\.com/mig-([1-9][0-9]?)g\.[1-9][0-9]{0,3}gb(?:\.[-.a-z0-9]*)?")
# The end of the product label of nodes that share cards under the usual name.
_SHARED_PRODUCT = "-SHARED"
# Compute slices of a GPU in MIG mode; models that are not named here have seven.
_SLICES, _SLICES_OF = 7, {"A30": 4, "RTX-PRO-6000": 4}
_DIGITS_MAX = 9
_COUNT, _REPLICAS, _PRODUCT, _MEMORY, _SLICES_KEY, _STRATEGY = (
    ".count",
    ".replicas",
    ".product",
    ".memory",
    ".slices.gi",
    ".sharing-strategy",
)


class Way(StrEnum):
    """How a GPU is shared."""

    WHOLE = ""
    MIG = "mig"
    MPS = "mps"
    TIME_SLICING = "time-slicing"


WAYS = tuple(Way)


class Part(NamedTuple):
    """What one device is that a resource of a node counts.

    Attributes:
        gpus: as how much of a GPU it counts, at most 1; 0 where that is not known.
        mib: its memory; 0 where that is not known, and for a whole GPU.
        way: how the GPU is shared.
    """

    gpus: float
    mib: int
    way: Way


WHOLE = Part(1.0, 0, Way.WHOLE)
UNKNOWN = Part(0.0, 0, Way.TIME_SLICING)


def is_part(resource: str) -> bool:
    """Whether a resource counts nothing but parts of GPUs."""
    return any(fnmatchcase(resource, mark) for mark in RESOURCES)


def read_part(resource: str, labels: Mapping[str, str], offered: int) -> Part:
    """Read what one device of a resource is on a node.

    Args:
        resource: ``nvidia.com/gpu``, or one that ``RESOURCES`` names.
        labels: of the node.
        offered: how many devices the node offers.
    """
    base = resource.removesuffix(SHARED)
    replicas = _read_replicas(base, labels, offered, is_renamed=resource != base)
    if replicas == 0 and resource != base:
        return UNKNOWN
    replicas = max(1, replicas)
    slices = _read_slices(base, labels)
    if slices == 0 and replicas == 1:
        return WHOLE
    mib = _read_number(labels, base + _MEMORY) // replicas
    if slices:
        # Replicas of an instance share what the instance has.
        return Part(slices / _find_slices(labels, base) / replicas, mib, Way.MIG)
    is_mps = labels.get(base + _STRATEGY) == Way.MPS
    return Part(1 / replicas, mib, Way.MPS if is_mps else Way.TIME_SLICING)


def read_memory_part(resource: str, labels: Mapping[str, str], part: Part) -> float:
    """Read as how much of the memory of a GPU a part of it counts on a node; 0 where that is not known.

    Replicas are equal in both. Instances are not: a GPU has eight slices of memory and at most seven of compute.
    """
    if part.way != Way.MIG:
        return part.gpus
    is_alone = resource.removesuffix(SHARED) == names.GPU
    # Where the instances have the name of GPUs, their memory has the label of that of GPUs.
    gpu = 0 if is_alone else _read_number(labels, names.GPU + _MEMORY)
    return min(1.0, part.mib / gpu) if gpu else 0.0


def list_marks(resource: str, labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """List those labels of a node by which it differs from nodes with other parts of the same name.

    MIG instances need none: their name has their size.
    """
    if _INSTANCE.fullmatch(resource):
        return ()
    base = resource.removesuffix(SHARED)
    keys = (base + end for end in (_REPLICAS, _MEMORY, _STRATEGY, _SLICES_KEY))
    return tuple((key, labels[key]) for key in keys if key in labels)


def _read_replicas(base: str, labels: Mapping[str, str], offered: int, *, is_renamed: bool) -> int:
    """Read how often each GPU or instance is offered; 0 where nothing says it.

    A label says it, or the number of GPUs does where they are shared: under a name of its own, or by the end of the product.
    """
    told, cards = (_read_number(labels, base + key) for key in (_REPLICAS, _COUNT))
    is_shared = is_renamed or labels.get(base + _PRODUCT, "").endswith(_SHARED_PRODUCT)
    if told == 0 and cards > 0 and is_shared:
        return -(-offered // cards)
    return told


def _read_slices(base: str, labels: Mapping[str, str]) -> int:
    """Read how many compute slices an instance has; 0 for a GPU that is not cut."""
    if found := _INSTANCE.fullmatch(base):
        return int(found[1])
    # All GPUs of the node are cut into instances of one size, which have the name of whole GPUs.
    return _read_number(labels, base + _SLICES_KEY)


def _find_slices(labels: Mapping[str, str], base: str) -> int:
    product = labels.get(base + _PRODUCT) or labels.get(names.GPU_PRODUCT, "")
    known = (n for model, n in _SLICES_OF.items() if model in product)
    return max(next(known, _SLICES), _read_slices(base, labels))


def _read_number(labels: Mapping[str, str], key: str) -> int:
    text = labels.get(key, "")
    is_number = text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX
    return int(text) if is_number else 0
