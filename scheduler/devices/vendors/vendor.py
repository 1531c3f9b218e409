"""What is particular to a vendor's devices, as HAMi's scheduler and the vendor's plugin agree on it.

Source: HAMi v2.10 (Apache-2.0), ``pkg/device``; the cases in ``tests/data/hami/vendors`` were compared with its functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler.api import hami, quantities, wire
from scheduler.api.cards import Card, CardUse, Slots
from scheduler.api.pods.gpus import ContainerAsk, ContainerKind, GpuAsk
from scheduler.api.reasons import CardRefusal
from scheduler.devices.contract import AS_ALLOCATED, HAMI_LOCK, Lock, Shown
from scheduler.schema import choice_scores
from scheduler.schema import columns as c

# No node has so many devices, or units of them.
_OFFERED_MAX = 100_000
# The cores of a device of which only the number of sharers counts.
_CORES = 100

# From a node to the texts that report its devices; all empty if it reports none.
ReadNode = Callable[[wire.Node], tuple[str, ...]]
# From these texts to the devices. Raises ``BadInput`` if they cannot be read.
ListCards = Callable[[tuple[str, ...]], tuple[Card, ...]]
# Reads what one container requests, from the field of its requests. Raises ``BadInput`` for what cannot be served.
ReadContainer = Callable[[ContainerKind, wire.Container, str], ContainerAsk]
# Completes what the containers of a pod request by what else the pod says. Raises ``BadInput``.
CompleteAsk = Callable[[GpuAsk, wire.Pod], GpuAsk]
# To and from what stands in the pod's annotation; of what is read, no more counts than the container requests.
WriteUse = Callable[[CardUse], CardUse]
ReadUse = Callable[[CardUse, ContainerAsk], CardUse]


class Answer(NamedTuple):
    """What was decided for a pod.

    Attributes:
        node: where it goes.
        slots: the devices of each container.
        now: the time in seconds since 1970.
        of_pod: what ``complete_ask`` has read on the pod.
    """

    node: str
    slots: Slots
    now: int
    of_pod: tuple[str, ...]


# What the plugin reads on pods besides the text of HAMi.
WriteMore = Callable[[Answer], dict[str, str]]


def write_nothing(_answer: Answer) -> dict[str, str]:
    """Write nothing more."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """One kind of a vendor's devices.

    Attributes:
        word: HAMi's name of the kind, in texts on pods.
        cards, memory, cores: the resources that count devices, and that say how much of each device is requested; empty
            where there is none.
        register: the node's annotation in which the plugin reports the devices; empty if ``read_node`` finds them elsewhere.
        allocated: the pod's annotation that names its devices, for good.
        to_allocate: the annotation that the plugin reads and empties; empty if it reads none.
        use_ids, nouse_ids: annotations of pods that name devices.
        use_types, nouse_types: annotations of pods that name models; empty where there are none.
        other_notes: further annotations of pods that are read.
        mib: the MiB of one unit of ``memory``.
        cores_figure: the figure of a card that is the number of its cores, as ``schema.columns.CORES``.
        are_totals: memory and cores are of all devices of a container; else of each.
        adds_up: pods on a card request no more memory and cores together than the card has, in plain numbers.
        default_cores: the cores of a container that says nothing of cores.
        is_unmeasured: devices are shared by a number of containers, and by nothing else.
        is_whole: each device goes to one container.
        is_of_cores: cores are a percentage of those of each card, which are not 100.
        names_models: the pod's annotation has the models of the devices, not the vendor's word.
        needs_models: what else is written on the pod depends on the models of the devices.
        count_most: counts the devices that a container may hold whose request cannot be read, if it is not ``cards``.
        read_container, complete_ask: how requests are read, if not by the fields above alone.
        write_use, read_use: how what a container holds of a device stands in the pod's annotation, if not as it is.
        fit_size: finds the size of a part of the device that has so many MiB: its MiB and its cores.
        read_node, list_cards: how the devices are reported, if not in ``register``.
        write_more: what else is written on the pod.
        lock: the lock under which the plugin serves pods; None for a plugin that has none.
        chooser: the number of the kernel that chooses among the devices.
        shown: how the devices are shown in metrics under HAMi's names.
        codes: the names of reasons why a device is refused, where they are not those of NVIDIA's cards.
        scorer: what HAMi's node policies add to the score of a node, as ``schema.choice_scores.NO_SCORE``.
    """

    word: str
    cards: str
    memory: str = ""
    cores: str = ""
    register: str = ""
    allocated: str
    to_allocate: str = ""
    use_ids: tuple[str, ...] = ()
    nouse_ids: tuple[str, ...] = ()
    use_types: str = ""
    nouse_types: str = ""
    other_notes: tuple[str, ...] = ()
    mib: int = 1
    cores_figure: int = c.CORES
    are_totals: bool = False
    adds_up: bool = True
    default_cores: int = 100
    is_unmeasured: bool = False
    is_whole: bool = False
    is_of_cores: bool = False
    names_models: bool = False
    needs_models: bool = False
    count_most: Callable[[wire.Container, str], int] | None = None
    read_container: ReadContainer | None = None
    complete_ask: CompleteAsk | None = None
    write_use: WriteUse | None = None
    read_use: ReadUse | None = None
    fit_size: Callable[[int], tuple[int, int]] | None = None
    read_node: ReadNode | None = None
    list_cards: ListCards | None = None
    write_more: WriteMore = write_nothing
    lock: Lock | None = HAMI_LOCK
    chooser: int = c.WALK
    shown: Shown = AS_ALLOCATED
    codes: Mapping[CardRefusal, str] = field(default_factory=dict)
    scorer: int = choice_scores.NO_SCORE

    @property
    def notes(self) -> frozenset[str]:
        """The annotations of a pod that say which devices it accepts, and how."""
        named = (*self.use_ids, *self.nouse_ids, self.use_types, self.nouse_types)
        every = (*named, *self.other_notes)
        return frozenset(one for one in every if one)


def read_register(node: wire.Node, key: str) -> tuple[str, ...]:
    """Read the annotation in which a plugin reports its devices."""
    return ((node.metadata.annotations or {}).get(key, ""),)


def read_offered(node: wire.Node, resource: str) -> int:
    """Read how much of a resource a node offers; 0 where it offers none, or says what is no amount of devices."""
    try:
        offered = quantities.read_value((node.status.allocatable or {}).get(resource, 0))
    except quantities.BadQuantity:
        return 0
    return offered if offered <= _OFFERED_MAX else 0


def read_totals(node: wire.Node, cores: str, memory: str) -> tuple[str, ...]:
    """Read the name of a node and how much of two resources it offers, for devices that are derived from both."""
    figures = read_offered(node, cores), read_offered(node, memory)
    return (node.metadata.name, *map(str, figures)) if figures[0] else ("", "", "")


def find_last_indices(slots: Slots) -> str:
    """Find the indices of the devices of the last container that has any; their ids end in them."""
    last = next((uses for uses in reversed(slots) if uses), ())
    return ",".join(use.uuid.rpartition("-")[2] for use in last)


def list_registered(text: str, key: str, *, is_unmeasured: bool) -> tuple[Card, ...]:
    """List the devices of a register, as JSON or as text.

    Raises:
        BadInput: the register cannot be read.
    """
    return tuple(
        Card(
            id=card.id,
            index=card.index,
            sharers=card.count,
            # Of these devices only the number of sharers counts: each takes one part of them.
            mib=card.count if is_unmeasured else card.devmem,
            # As HAMi does: devices without cores would score as if they were idle.
            cores=_CORES if is_unmeasured else card.devcore,
            model=card.type,
            mode=card.mode,
            numa=card.numa,
            healthy=card.health,
        )
        for card in (hami.decode_register(text, key) if text else ())
    )
