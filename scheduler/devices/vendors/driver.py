"""The driver of devices that a vendor's plugin reports and HAMi's scheduler allocates; ``Vendor`` says how they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import structs

from scheduler.api import hami, names, wire
from scheduler.api.cards import Card, CardUse, Slots
from scheduler.api.pods.gpus import GpuAsk
from scheduler.api.reasons import CARD_CODES, CardRefusal
from scheduler.devices.contract import NodeReading, PodMarks, Texts, Words
from scheduler.devices.vendors.requests import read_most, read_request
from scheduler.devices.vendors.vendor import Answer, Vendor, list_registered, read_register
from scheduler.errors import BadInput
from scheduler.schema import columns as c

_DONE = frozenset({names.BIND_SUCCESS, names.BIND_FAILED})


class VendorCards:
    """The driver of one kind of a vendor's devices."""

    def __init__(self, vendor: Vendor) -> None:
        self._vendor = vendor
        self.name = f"HAMi {vendor.word}"
        self.resources = (vendor.cards,)
        self.claim_field = f"metadata.annotations[{vendor.allocated}]"
        self.notice = (
            "HAMi's device configuration is not read; requests are read with the defaults of HAMi's chart",
            f"resources {', '.join(filter(None, (vendor.cards, vendor.memory, vendor.cores)))}",
        )
        self.inner_resources = frozenset(filter(None, (vendor.memory, vendor.cores)))
        named = (vendor.memory, (c.MIB, vendor.mib)), (vendor.cores, (vendor.cores_figure, 1))
        self.parts: Mapping[str, tuple[int, int]] = {name: part for name, part in named if name}
        # Without a register, devices are derived from what the plugin itself offers.
        is_published = vendor.register and vendor.adds_up
        self.published = self.inner_resources if is_published else frozenset[str]()
        self.notes = vendor.notes
        self.chooser, self.lock = vendor.chooser, vendor.lock
        self.names_models = vendor.names_models or vendor.needs_models
        self.shown = vendor.shown
        self.codes: Mapping[CardRefusal, str] = {**CARD_CODES, **vendor.codes}
        self.none_told = f"node(s) had no {vendor.word} device registered with HAMi"
        self.not_told = f"node(s) wait for the plugin of {vendor.word} to register their devices"

    def read_requests(self, pod: wire.Pod) -> tuple[GpuAsk, ...]:
        """Read how many devices a pod requests, and how much of each."""
        ask = read_request(pod, self._vendor)
        return () if ask is None else (ask,)

    def read_most(self, pod: wire.Pod) -> tuple[GpuAsk, ...]:
        """Read the devices of a pod with a malformed request, as whole ones."""
        ask = read_most(pod, self._vendor)
        return () if ask is None else (ask,)

    def read_node(self, node: wire.Node) -> Words:
        """Read the register or what the vendor reads in its place, and the closed devices."""
        vendor, notes = self._vendor, node.metadata.annotations or {}
        if vendor.read_node is not None:
            words = vendor.read_node(node)
        else:
            words = read_register(node, vendor.register)
        return *words, notes.get(names.HAMI_CORDON, "")

    def is_told(self, words: Words) -> bool:
        """Whether the node reports devices."""
        return any(words[:-1])

    def is_signed(self, words: Words) -> bool:
        """Whether the plugin has written on the node."""
        return self.is_told(words)

    def serves(self, seen: NodeReading) -> bool:
        """Whether the node reports devices, or has reported some."""
        return self.is_told(seen.words) or seen.was_signed

    def list_cards(self, words: Words) -> tuple[Card, ...]:
        """List the devices."""
        vendor = self._vendor
        if not self.is_told(words):
            return ()
        if vendor.list_cards is not None:
            return vendor.list_cards(words[:-1])
        return list_registered(words[0], vendor.register, is_unmeasured=vendor.is_unmeasured)

    def list_closed(self, words: Words) -> frozenset[str]:
        """List the ids in the annotation by which people close devices."""
        return frozenset(part.strip() for part in (words[-1] if words else "").split(","))

    def read_claim(self, pod: wire.Pod, asking: Sequence[bool]) -> Slots:
        """Read the annotation that a scheduler has written."""
        key = self._vendor.allocated
        text = (pod.metadata.annotations or {}).get(key, "")
        slots = hami.place_slots(
            hami.decode_devices(text, key, has_models=self._vendor.names_models), asking
        )
        if self._vendor.is_unmeasured:
            return tuple(tuple(CardUse(use.uuid, 1, 0) for use in uses) for uses in slots)
        return slots if self._vendor.read_use is None else self._read_uses(pod, slots)

    def _read_uses(self, pod: wire.Pod, slots: Slots) -> Slots:
        read = self._vendor.read_use
        try:
            ask = read_request(pod, self._vendor)
        except BadInput:
            # The pod holds what its claim says, whatever is wrong with its request by now.
            ask = read_most(pod, self._vendor)
        if read is None or ask is None:
            return slots
        return tuple(
            tuple(read(use, one) for use in uses)
            for uses, one in zip(slots, ask.containers, strict=False)
        )

    def find_whole(self, device: str) -> str:
        """Return the id itself: no claim names parts of devices."""
        return device

    def write_answer(
        self, node: str, slots: Slots, now: int, of_pod: tuple[str, ...] = ()
    ) -> PodMarks:
        """Write the annotations that the plugin reads, and the label by which HAMi's scheduler finds a node's pods."""
        text, vendor = self._encode(slots), self._vendor
        answer = {
            **hami.make_common_annotations(node, now),
            vendor.allocated: text,
            **vendor.write_more(Answer(node, slots, now, of_pod)),
        }
        if vendor.to_allocate:
            answer[vendor.to_allocate] = text
        labels = {names.HAMI_NODE: node} if len(node) <= names.LABEL_VALUE_MAX else {}
        return PodMarks(answer, labels)

    def _encode(self, slots: Slots) -> str:
        if self._vendor.is_unmeasured:
            slots = tuple(tuple(CardUse(use.uuid, 0, 0) for use in uses) for uses in slots)
        elif (write := self._vendor.write_use) is not None:
            slots = tuple(tuple(map(write, uses)) for uses in slots)
        if self._vendor.needs_models:
            slots = tuple(tuple(use._replace(model="") for use in uses) for uses in slots)
        return hami.encode_devices(slots, self._vendor.word)

    def is_answered(self, annotations: Texts, slots: Slots) -> bool:
        """Whether the annotation names the same devices."""
        return annotations.get(self._vendor.allocated) == self._encode(slots)

    def is_served(self, annotations: Texts) -> bool:
        """Whether the bind phase is success or failed."""
        return annotations.get(names.HAMI_BIND_PHASE) in _DONE

    def is_locked(self, annotations: Texts) -> bool:
        """Whether the node's lock is held."""
        return self.lock is not None and self.lock.key in annotations

    def sign_node(self, node: wire.Node) -> wire.Node:
        """Return the node with an empty register; what is reported by a number leaves no mark."""
        key, meta = self._vendor.register, node.metadata
        if not key:
            return node
        notes = {**(meta.annotations or {}), key: "[]"}
        return structs.replace(node, metadata=structs.replace(meta, annotations=notes))

    def open_node(self, node: wire.Node) -> wire.Node:
        """Remove the annotation by which people close devices from the node."""
        meta = node.metadata
        notes = {
            key: one for key, one in (meta.annotations or {}).items() if key != names.HAMI_CORDON
        }
        return structs.replace(node, metadata=structs.replace(meta, annotations=notes))
