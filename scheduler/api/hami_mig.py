"""HAMi's MIG: what can be cut out of a card, and which instances pods have.

The device plugin reports the profiles of each card with the places at which the card can have an instance. The scheduler
reserves a place, and the plugin makes the instance when the kubelet asks for it.

Source: HAMi v2.10 (Apache-2.0), ``pkg/device/nvidia/mig_*.go``.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from scheduler.api import limits, names
from scheduler.api.cards import NO_TEMPLATE, SLOTS_MAX, CardUse, Identity, Part, Place, Slots
from scheduler.errors import BadInput

# Of these profiles HAMi takes the last place first, so that those of other profiles stay together.
_FROM_THE_END = ("1g.", "3g.")
_FIGURE_MAX = 2**31 - 1
# The place of an instance of which nobody knows the place; no card has it.
UNKNOWN = Place("", 0, 0)
# The most bytes of an instance's UUID, which is a label of a metric; UUIDs are shorter.
_UUID_MAX = 100
# No card has more, and what follows from them is computed for each size.
_PARTS_MAX, _SIZES_MAX = 64, 16


class Placement(msgspec.Struct, gc=False, frozen=True):
    """The slots of an instance."""

    start: int = 0
    size: int = 0


class Profile(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """A profile as a card's register has it."""

    name: str
    memory_mb: int = msgspec.field(name="memoryMB", default=0)
    core: int = 0
    slice_count: int = 0
    placements: tuple[Placement, ...] | None = None


class Allocation(msgspec.Struct, gc=False, frozen=True, rename="camel", omit_defaults=True):
    """An instance that a pod has or is to get.

    ``device_index`` is its place in the list of what its container has. The plugin adds the identity, all of it at once.
    """

    container_index: int
    device_index: int
    gpu_uuid: str = msgspec.field(name="gpuUUID")
    profile: str
    placement: Placement
    mig_uuid: str | None = msgspec.field(name="migUUID", default=None)
    gpu_instance_id: int | None = msgspec.field(name="gpuInstanceID", default=None)
    compute_instance_id: int | None = msgspec.field(name="computeInstanceID", default=None)

    def read_identity(self) -> Identity | None:
        """Read under which names the instance is known; None while the plugin has not made it."""
        numbers = self.gpu_instance_id, self.compute_instance_id
        if not self.mig_uuid or numbers[0] is None or numbers[1] is None:
            return None
        return Identity(limits.shorten(self.mig_uuid, _UUID_MAX), numbers[0], numbers[1])


_allocations = msgspec.json.Decoder(list[Allocation])


def list_parts(profiles: Iterable[Profile], field: str) -> tuple[Part, ...]:
    """List the parts of a card in the order in which HAMi tries them: the smallest profile first.

    Raises:
        BadInput: a figure that no card has.
    """
    parts: list[Part] = []
    for one in sorted(profiles, key=lambda one: (one.memory_mb, one.slice_count)):
        places = sorted(
            one.placements or (),
            key=lambda at: at.start,
            reverse=one.name.startswith(_FROM_THE_END),
        )
        for at in places:
            is_possible = at.start >= 0 and at.size > 0 and at.start + at.size <= SLOTS_MAX
            has_figures = (
                0 < one.memory_mb <= _FIGURE_MAX
                and 0 <= one.core <= 100
                and 0 <= one.slice_count <= SLOTS_MAX
            )
            if not is_possible or not has_figures:
                text = f'MIG profile "{limits.shorten(one.name, 80)}" has a figure that no card has'
                raise BadInput(field, text)
            part = Part(
                one.name, one.memory_mb, one.core, at.start, at.size, max(1, one.slice_count)
            )
            parts.append(part)
    if len(parts) > _PARTS_MAX or len({part.mib for part in parts}) > _SIZES_MAX:
        raise BadInput(
            field,
            f"has more than {_PARTS_MAX} places of MIG instances, or more than {_SIZES_MAX} sizes, on a card",
        )
    return tuple(parts)


def list_profiles(parts: Iterable[Part]) -> tuple[Profile, ...]:
    """List the profiles of these parts, as a register has them."""
    found: dict[str, list[Part]] = {}
    for part in parts:
        found.setdefault(part.profile, []).append(part)
    return tuple(
        Profile(
            name,
            memory_mb=some[0].mib,
            core=some[0].cores,
            slice_count=some[0].slices,
            placements=tuple(Placement(part.start, part.size) for part in some),
        )
        for name, some in found.items()
    )


def encode_allocations(slots: Slots) -> str:
    """Encode the instances of ``hami.io/vgpu-mig-allocations``; empty for none."""
    found = [
        {
            "containerIndex": i,
            "deviceIndex": k,
            "gpuUUID": use.uuid,
            "profile": use.place.profile,
            "placement": {"start": use.place.start, "size": use.place.size},
        }
        for i, slot in enumerate(slots)
        for k, use in enumerate(slot)
        if use.place is not None and use.place.template == NO_TEMPLATE
    ]
    return msgspec.json.encode(found).decode() if found else ""


def are_reserved(slots: Slots, text: str) -> bool:
    """Whether ``hami.io/vgpu-mig-allocations`` has the places of these instances, and no others."""
    bare = tuple(tuple(use._replace(place=None, identity=None) for use in slot) for slot in slots)
    try:
        found = add_places(bare, text)
    except BadInput:
        return False
    return [[use.place for use in slot] for slot in found] == [
        [use.place for use in slot] for slot in slots
    ]


def hide_places(slots: Slots) -> Slots:
    """Say of what a pod holds that it is at unknown places."""
    return tuple(tuple(use._replace(place=UNKNOWN) for use in slot) for slot in slots)


def add_places(slots: Slots, text: str) -> Slots:
    """Add to what a pod holds the places that ``hami.io/vgpu-mig-allocations`` tells.

    Raises:
        BadInput: the text cannot be read.
    """
    field = f"metadata.annotations[{names.HAMI_MIG_ALLOCATIONS}]"
    try:
        found = _allocations.decode(text) if text else []
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadInput(
            field, f"not a JSON list of allocations as HAMi writes it: {error}"
        ) from error
    if len(found) > limits.CLAIM_CARDS:
        raise BadInput(field, f"has more than {limits.CLAIM_CARDS} entries, the maximum")
    by_place: dict[tuple[int, int], Allocation] = {}
    for one in found:
        at = one.placement
        if at.start < 0 or at.size <= 0 or at.start + at.size > SLOTS_MAX:
            raise BadInput(field, "has a placement that no card has")
        key = one.container_index, one.device_index
        if key in by_place:
            raise BadInput(field, f"names device {key[1]} of container {key[0]} twice")
        by_place[key] = one

    def add(i: int, k: int, use: CardUse) -> CardUse:
        one = by_place.get((i, k))
        if one is None or one.gpu_uuid != use.uuid:
            return use
        place = Place(one.profile, one.placement.start, one.placement.size)
        return use._replace(place=place, identity=one.read_identity())

    return tuple(
        tuple(add(i, k, use) for k, use in enumerate(slot)) for i, slot in enumerate(slots)
    )
