"""HAMi's NVIDIA cards: HAMi's device plugin reports each card, and cards are allocated whole or in shares.

On a node of HAMi's, ``nvidia.com/gpu`` counts shares, so no whole GPU may be allocated there. This also holds while the
device plugin has reported the shares to the kubelet but has not written its register of cards yet. A node is HAMi's if
the plugin has written on it, now or earlier under the same uid. Before that, the node counts as HAMi's if it has GPUs and
the label of the nodes that the plugin runs on, or if it has more GPUs than a machine can have and the plugin has written
on other nodes. Only users with rights on nodes can write any of these. Texts of pods do not count, because anyone who may
create pods can write them. If the register is missing at the start, the label must be right: otherwise cards of running
pods would be allocated again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import structs

from scheduler.api import hami, hami_links, hami_mig, hami_templates, names, plugin_parts, wire
from scheduler.api.cards import Card, Part, Slots
from scheduler.api.hami_config.maps import DeviceSettings
from scheduler.api.hami_config.nodes import find_settings
from scheduler.api.pods import gpus
from scheduler.api.reasons import CARD_CODES, CardRefusal
from scheduler.devices.contract import (
    AS_ALLOCATED,
    HAMI_LOCK,
    Lock,
    NodeReading,
    PartialClaim,
    PodMarks,
    Texts,
    Words,
)
from scheduler.errors import BadInput
from scheduler.schema import columns as c

# The most GPUs that a machine has.
_MACHINE_MAX = 16
# Places in the words of a node; the third word is empty unless the plugin has written on the node.
_REGISTER, _CORDON, _SIGNED, _LINKS = 0, 1, 2, 3
# What stands before the index of a card in the list of closed cards, where others have their UUID.
_BY_INDEX = "#"
_CHART = DeviceSettings()
_DONE = frozenset({names.BIND_SUCCESS, names.BIND_FAILED})


class HamiCards:
    """The driver; ``label`` is key=value, or a key, of the nodes that the plugin runs on, empty for none.

    Cards that the plugin is configured to leave out get no pods, even if it has registered them until now.
    """

    name = "HAMi"
    claim_field = f"metadata.annotations[{names.HAMI_ALLOCATED}]"
    notice = (
        "HAMi's device configuration is not read; requests are read with HAMi's defaults",
        "gpumem in MiB (memoryFactor 1), default memory and cores 0, resources nvidia.com/*",
    )
    # They are among the annotations that every pod is read by.
    notes: frozenset[str] = frozenset()
    chooser = c.WALK
    lock: Lock | None = HAMI_LOCK
    names_models = False
    shown = AS_ALLOCATED
    codes: Mapping[CardRefusal, str] = CARD_CODES
    none_told = "node(s) had no card registered with HAMi"
    not_told = "node(s) wait for HAMi's device plugin to register their cards"

    def __init__(self, label: str, settings: DeviceSettings = _CHART) -> None:
        nvidia = settings.config.nvidia
        parts = nvidia.memory, nvidia.memory_percent, nvidia.cores, nvidia.priority
        self.resources = tuple(filter(None, (nvidia.cards,)))
        self.inner_resources = frozenset(filter(None, parts)) if self.resources else frozenset()
        named = (nvidia.memory, (c.MIB, max(1, nvidia.factor))), (nvidia.cores, (c.CORES, 1))
        self.parts: Mapping[str, tuple[int, int]] = {
            name: part for name, part in named if name in self.inner_resources
        }
        self.published = self.inner_resources
        self._label, self._nvidia = label.partition("="), nvidia
        # By words that the models have: what cards are cut into whose plugin does not report it.
        self._templates = [
            (one.models, hami_templates.list_parts(one.geometries)) for one in nvidia.geometries
        ]
        self._hidden = {one.node: _list_hidden(settings, one.node) for one in settings.overrides}

    def read_requests(self, pod: wire.Pod) -> tuple[gpus.GpuAsk, ...]:
        """Read how many cards a pod requests, and how much of the memory and cores of each."""
        return gpus.read_asks(pod, self._nvidia)

    def read_most(self, pod: wire.Pod) -> tuple[gpus.GpuAsk, ...]:
        """Read the cards of a pod with a malformed request, as whole ones."""
        return gpus.read_most(pod, self._nvidia.cards)

    def read_node(self, node: wire.Node) -> Words:
        """Read the register, the closed cards, whether the plugin has written, and the links between cards."""
        notes = node.metadata.annotations or {}
        register = notes.get(names.HAMI_REGISTER, "")
        # HAMi's scheduler requests the handshake on every node, so only the plugin's answer counts.
        reported = notes.get(names.HAMI_HANDSHAKE, "").startswith(names.HANDSHAKE_REPORTED)
        is_signed = bool(register) or names.HAMI_SCORE in notes or reported
        closed = notes.get(names.HAMI_CORDON, "")
        if hidden := self._hidden.get(node.metadata.name):
            closed = ",".join((closed, *hidden))
        return register, closed, "signed" if is_signed else "", notes.get(names.HAMI_SCORE, "")

    def is_told(self, words: Words) -> bool:
        """Whether there is a register."""
        return bool(words and words[_REGISTER])

    def is_signed(self, words: Words) -> bool:
        """Whether the plugin has written on the node."""
        return bool(words and words[_SIGNED])

    def serves(self, seen: NodeReading) -> bool:
        """Whether a node is HAMi's or counts as HAMi's: see the docstring of the module."""
        if seen.was_signed or not seen.offered:
            return seen.was_signed
        key, wants_value, value = self._label
        label = seen.labels.get(key)
        if label is not None and (not wants_value or label == value):
            return True
        # NVIDIA's own plugin offers many devices as well, and its labels say that they are parts.
        part = plugin_parts.read_part(names.GPU, seen.labels, seen.offered)
        return seen.offered > _MACHINE_MAX and seen.any_signed and part == plugin_parts.WHOLE

    def list_cards(self, words: Words) -> tuple[Card, ...]:
        """List the cards of the register."""
        links = hami_links.decode_links(words[_LINKS]) if self.is_told(words) else {}
        return tuple(
            Card(
                id=card.id,
                index=card.index,
                sharers=card.count,
                mib=card.devmem,
                cores=card.devcore,
                model=card.type,
                mode=card.mode,
                numa=card.numa,
                healthy=card.health,
                is_carved=card.mode == "mig",
                parts=self._list_parts(card),
                links=links.get(card.id, ()),
            )
            for card in (hami.decode_register(words[_REGISTER]) if self.is_told(words) else ())
        )

    def _list_parts(self, card: hami.Card) -> tuple[Part, ...]:
        """List the instances that can be cut out of a card.

        From 2.10 on the plugin registers no card in the mode ``mig`` without the profiles that it can have. Up to 2.9 it
        never reports any, and the first table of templates counts that has the card's model.
        """
        if card.mode != "mig":
            return ()
        if card.mig_profiles:
            return hami_mig.list_parts(
                card.mig_profiles, f"metadata.annotations[{names.HAMI_REGISTER}]"
            )
        tables = (parts for models, parts in self._templates if _has_word(card.type, models))
        return next(tables, ())

    def list_closed(self, words: Words) -> frozenset[str]:
        """List the UUIDs in the annotation by which people close cards, and those of cards that are left out."""
        text = words[_CORDON] if words else ""
        closed = frozenset(part.strip() for part in text.split(","))
        if _BY_INDEX not in text:
            return closed
        try:
            cards = self.list_cards(words)
        except BadInput:
            # The node is left out.
            return closed
        return closed | {card.id for card in cards if f"{_BY_INDEX}{card.index}" in closed}

    def read_claim(self, pod: wire.Pod, asking: Sequence[bool]) -> Slots:
        """Read the annotation that a scheduler has written."""
        text = (pod.metadata.annotations or {}).get(names.HAMI_ALLOCATED, "")
        slots = hami.place_slots(hami.decode_devices(text), asking)
        places = (pod.metadata.annotations or {}).get(names.HAMI_MIG_ALLOCATIONS, "")
        try:
            found = hami_templates.read_instances(slots)
            return hami_mig.add_places(found, places) if places else found
        except BadInput as error:
            raise PartialClaim(error, hami_templates.hide_instances(slots)) from error

    def find_whole(self, device: str) -> str:
        """Find the UUID of the card: up to HAMi 2.9, parts of a card in MIG mode are named like ``UUID[0-1]``."""
        return hami_templates.find_card(device)

    def write_answer(
        self, node: str, slots: Slots, now: int, _of_pod: tuple[str, ...] = ()
    ) -> PodMarks:
        """Write the annotations that the plugin reads, and the label by which HAMi's scheduler finds a node's pods."""
        is_short = len(node) <= names.LABEL_VALUE_MAX
        labels = {names.HAMI_NODE: node} if is_short else {}
        answer = hami.make_bind_annotations(node, hami_templates.name_instances(slots), now)
        if places := hami_mig.encode_allocations(slots):
            answer[names.HAMI_MIG_ALLOCATIONS] = places
        return PodMarks(answer, labels)

    def is_answered(self, annotations: Texts, slots: Slots) -> bool:
        """Whether the annotations name the same cards, and the same places on them."""
        named = hami_templates.name_instances(slots)
        if annotations.get(names.HAMI_ALLOCATED) != hami.encode_devices(named):
            return False
        return hami_mig.are_reserved(named, annotations.get(names.HAMI_MIG_ALLOCATIONS, ""))

    def is_served(self, annotations: Texts) -> bool:
        """Whether the bind phase is success or failed."""
        return annotations.get(names.HAMI_BIND_PHASE) in _DONE

    def is_locked(self, annotations: Texts) -> bool:
        """Whether the node's lock is held."""
        return names.HAMI_LOCK in annotations

    def sign_node(self, node: wire.Node) -> wire.Node:
        """Add the plugin's answer of the handshake to the node."""
        meta = node.metadata
        notes = {**(meta.annotations or {}), names.HAMI_HANDSHAKE: names.HANDSHAKE_REPORTED}
        return structs.replace(node, metadata=structs.replace(meta, annotations=notes))

    def open_node(self, node: wire.Node) -> wire.Node:
        """Remove the annotation by which people close cards from the node."""
        meta = node.metadata
        notes = {
            key: one for key, one in (meta.annotations or {}).items() if key != names.HAMI_CORDON
        }
        return structs.replace(node, metadata=structs.replace(meta, annotations=notes))


def _has_word(model: str, words: Sequence[str]) -> bool:
    return any(word in model for word in words)


def _list_hidden(settings: DeviceSettings, node: str) -> tuple[str, ...]:
    """List the cards of a node that the plugin leaves out, by UUID or by index."""
    found = find_settings(settings.config.nvidia, settings.overrides, node)
    return (*sorted(found.hidden_uuids), *(f"{_BY_INDEX}{i}" for i in sorted(found.hidden_indexes)))
