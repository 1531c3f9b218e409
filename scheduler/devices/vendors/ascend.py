"""Huawei's Ascend: each chip is a kind of its own, with its own resources, annotations and templates.

A template is a part of a device that can be cut: a container that requests memory gets the smallest template that has it, or
the whole device. Where the pod wishes it (``huawei.com/vnpu-mode: hami-core``) and the node can do it, HAMi's library splits
devices instead: then containers get what they request, also of cores. Several devices come from one network, and those of
modules in pairs. HAMi's node policies add to a node's score which share of a container's devices is in one network.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from msgspec import structs

from scheduler.api import wire
from scheduler.api.cards import Card
from scheduler.api.hami_config.sections import Ascend, DeviceConfig
from scheduler.api.pods import gpus
from scheduler.api.pods.gpus import ContainerAsk, GpuAsk
from scheduler.api.reasons import CardRefusal
from scheduler.devices.vendors.vendor import Answer, Vendor, list_registered
from scheduler.errors import BadInput
from scheduler.schema import choice_scores
from scheduler.schema import columns as c

MODE, SOFT, _HARD = "huawei.com/vnpu-mode", "hami-core", "template"
_NODE_MODE = "hami-vnpu-core"
# Only chips of this family have networks.
_LINKED = "Ascend910"
_SOFT_CORES = 100
_NETWORK_MAX = 2**53


class _Told(msgspec.Struct, gc=False, frozen=True):
    """What the register says of a device besides HAMi's own fields."""

    id: str
    custominfo: Any = None

    @property
    def network(self) -> str:
        """The network that the device is in; empty for none."""
        told = self.custominfo if isinstance(self.custominfo, dict) else {}
        network = told.get("NetworkID")
        if isinstance(network, bool) or not isinstance(network, int | float):
            return ""
        return str(int(network)) if abs(network) < _NETWORK_MAX else ""


class _Use(msgspec.Struct, omit_defaults=True):
    """What the plugin reads of a device of a pod."""

    uuid: str = msgspec.field(name="UUID")
    temp: str = ""
    memory: int = 0
    core: int = 0


_told = msgspec.json.Decoder(list[_Told])


def list_kinds(config: DeviceConfig) -> tuple[Vendor, ...]:
    """List the kinds of devices with the resources that a configuration gives them."""
    return tuple(_make_kind(chip, config.has_soft_split) for chip in config.vnpus)


def _make_kind(chip: Ascend, has_soft_split: bool) -> Vendor:
    word, register = chip.word, f"hami.io/node-register-{chip.word}"
    is_linked = word.startswith(_LINKED)

    def read_node(node: wire.Node) -> tuple[str, ...]:
        notes = node.metadata.annotations or {}
        text = notes.get(register, "")
        is_soft = notes.get(_NODE_MODE) == "true" if _NODE_MODE in notes else has_soft_split
        return (text, SOFT if is_soft else _HARD) if text else ("", "")

    def list_cards(words: tuple[str, ...]) -> tuple[Card, ...]:
        text, mode = words[0].strip(), words[1]
        found = list_registered(text, register, is_unmeasured=False)
        networks = _read_networks(text) if is_linked else {}
        return tuple(
            structs.replace(
                card,
                mode=mode,
                cores=_SOFT_CORES if mode == SOFT else card.cores,
                group=networks.get(card.id, ""),
            )
            for card in found
        )

    return Vendor(
        word=word,
        cards=chip.cards,
        memory=chip.memory,
        cores=chip.cores,
        mib=max(1, chip.factor),
        default_cores=0,
        register=register,
        to_allocate=f"hami.io/{word}-devices-to-allocate",
        allocated=f"hami.io/{word}-devices-allocated",
        use_ids=(f"hami.io/use-{word}-uuid",),
        nouse_ids=(f"hami.io/no-use-{word}-uuid",),
        other_notes=(MODE,),
        read_node=read_node,
        list_cards=list_cards,
        complete_ask=partial(_complete_ask, chip),
        write_more=partial(_write_templates, chip),
        codes={CardRefusal.TYPE: "ModeNotFit"},
        chooser=c.PAIRS if chip.is_in_pairs else c.NETWORKS if is_linked else c.WALK,
        scorer=choice_scores.BY_NETWORKS if is_linked else choice_scores.NO_SCORE,
    )


def _read_networks(text: str) -> dict[str, str]:
    """Read the network of each device; none if a device says none."""
    found = {one.id: one.network for one in _told.decode(text)} if text.startswith("[") else {}
    return found if all(found.values()) else {}


def _complete_ask(chip: Ascend, ask: GpuAsk, pod: wire.Pod) -> GpuAsk:
    """Round memory up to templates, or note that the pod wishes the soft split.

    Raises:
        BadInput: a container requests what no template has.
    """
    if (pod.metadata.annotations or {}).get(MODE) == SOFT:
        return ask._replace(vgpu_mode=SOFT, of_pod=(SOFT,))
    fields = (field for _, _, field in gpus.list_containers(pod))
    rounded = (
        _round_up(chip, one, field) for one, field in zip(ask.containers, fields, strict=True)
    )
    return ask._replace(containers=tuple(rounded))


def _round_up(chip: Ascend, ask: ContainerAsk, field: str) -> ContainerAsk:
    if ask.cores:
        problem = f"only pods with the annotation {MODE}: {SOFT} may request it"
        raise BadInput(f"{field}[{chip.cores}]", problem)
    if chip.is_in_pairs and ask.cards > 1 and ask.cards % 2:
        raise BadInput(f"{field}[{chip.cards}]", f"{ask.cards} is neither 1 nor a multiple of 2")
    if not ask.mem_mib:
        return ask
    mib = find_part(chip, ask.mem_mib)[0]
    if not mib:
        problem = f"{ask.mem_mib} MiB are more than a device has: write 1..{chip.capacity_mib}"
        raise BadInput(f"{field}[{chip.memory}]", problem)
    if ask.cards > 1 and mib != chip.whole_mib:
        raise BadInput(
            f"{field}[{chip.memory}]", "is for a part of one device; several devices are whole"
        )
    return ask._replace(mem_mib=mib)


def find_part(chip: Ascend, mib: int) -> tuple[int, str]:
    """Find the part of a device that has so many MiB: its MiB and its template; no template for a whole one, 0 for none."""
    for template in chip.templates:
        if mib <= template.mib:
            return template.mib, template.name
    return (chip.whole_mib if mib <= chip.capacity_mib else 0), ""


def _write_templates(chip: Ascend, answer: Answer) -> dict[str, str]:
    """Write the parts that the plugin is to cut, in one list for all containers."""
    is_soft = SOFT in answer.of_pod
    uses = [
        _Use(use.uuid, "" if is_soft else find_part(chip, use.mem_mib)[1], use.mem_mib, use.cores)
        for uses in answer.slots
        for use in uses
    ]
    return {
        "predicate-time": str(answer.now),
        f"huawei.com/{chip.word}": msgspec.json.encode(uses).decode(),
    }
