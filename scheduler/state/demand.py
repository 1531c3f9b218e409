"""The demand: a slowly forgetting histogram of what pods request, and how fast pods leave.

Every pod that is seen for the first time counts, whichever scheduler places it, so a start finds the demand again
in the pods that are there. Shapes are much coarser than templates: a thousand jobs with a name of their own in
their spec have one shape if they ask the same and may go to the same nodes.

Pods with devices and pods without are counted apart: one mean of how fast both leave would be true for neither,
and if one sort were many, the other would be forgotten.

A pod that its spec binds to a node by name, such as a DaemonSet's, does not count: it comes to its node wherever
other pods go.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from scheduler.api import limits, names
from scheduler.api.door.events import DemandRecalled
from scheduler.api.pods import gpus
from scheduler.api.pods.templates import PodTemplate
from scheduler.api.pods.tolerations import TolerationKey
from scheduler.api.selectors import NodeTerm
from scheduler.devices.table import DEFAULT_DEVICES, Devices
from scheduler.state.structures.tally import Tally

# The resources for which a shape has a field.
_TOLD = frozenset({names.CPU, names.MEMORY})
Whereabouts = tuple[
    tuple[tuple[str, str], ...],
    tuple[NodeTerm, ...] | None,
    tuple[TolerationKey, ...],
    tuple[str, ...],
    tuple[str, ...],
]


class DemandShape(NamedTuple):
    """What a pod asks, and what it demands of a node, as far as placement is planned for it.

    Attributes:
        cpu, memory: milli-CPU and bytes.
        cards: 0 for pods without devices; then only ``cpu``, ``memory`` and ``others`` are set.
        mib, percent, cores: on each card; ``percent`` of its memory counts where ``mib`` is 0.
        core_percent: the percentage of each card's cores, where it is not ``cores``.
        family: the resource by which the cards are asked, empty where none are.
        others: (resource, amount) of all other resources that a pod asks, sorted, in base units; without devices.
    """

    cpu: int
    memory: int = 0
    cards: int = 0
    mib: int = 0
    percent: int = 0
    cores: int = 0
    selector: tuple[tuple[str, str], ...] = ()
    required: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[TolerationKey, ...] = ()
    use_types: tuple[str, ...] = ()
    nouse_types: tuple[str, ...] = ()
    family: str = ""
    others: tuple[tuple[str, int], ...] = ()
    core_percent: int = 0

    @property
    def node_names(self) -> None:
        """The demand does not remember which nodes a pod names: nodes come and go."""

    @property
    def features(self) -> tuple[str, ...]:
        """The demand does not remember which features of a kubelet a pod needs."""
        return ()

    @property
    def families(self) -> tuple[str, ...]:
        """The demand does not remember who allocates the devices: another scheduler's pods use those of its nodes alike."""
        return ()

    @property
    def card_wishes(self) -> None:
        """The demand does not remember which unreported cards a pod wants: a node may report them tomorrow."""

    def convert_to_milli(self, cores: int, mib: int) -> tuple[int, int]:
        """Return the thousandths of cores and memory that the pod is charged on a card with so many cores and MiB."""
        core = self.cores * gpus.WHOLE_MILLI // cores if cores else 0
        if self.core_percent:
            core = self.core_percent * gpus.WHOLE_MILLI // gpus.WHOLE_CARD_PERCENT
        if not mib:
            # Of these cards only their number is known.
            asked = gpus.WHOLE_CARD_PERCENT if self.mib else self.percent
            return core, asked * gpus.WHOLE_MILLI // gpus.WHOLE_CARD_PERCENT
        charged = self.mib or mib * self.percent // gpus.WHOLE_CARD_PERCENT
        return core, charged * gpus.WHOLE_MILLI // mib


def is_bound_by_name(template: PodTemplate) -> bool:
    """Whether the spec names the nodes that the pod may go to, as a DaemonSet's does."""
    return template.node_names is not None


def read_shape(template: PodTemplate, devices: Devices = DEFAULT_DEVICES) -> DemandShape:
    """Read the shape of a template; ``devices`` knows which resources request devices."""
    asked = dict(template.requests.amounts)
    cpu, memory = asked.get(names.CPU, 0), asked.get(names.MEMORY, 0)
    if template.gpu is None:
        return DemandShape(cpu, memory, others=_list_others(template, devices))
    ask = gpus.sum_up(template.gpu)
    return DemandShape(
        cpu,
        memory,
        ask.cards,
        ask.mem_mib,
        0 if ask.mem_mib else ask.mem_percent,
        ask.cores,
        *_read_whereabouts(template),
        template.gpu.family,
        _list_others(template, devices),
        ask.core_percent,
    )


def _read_whereabouts(template: PodTemplate) -> Whereabouts:
    """Read where a pod may go; nothing if the pod says very much about it, because shapes outlive their pods."""
    if template.gpu is None or template.words > limits.LIGHT_WORDS:
        return (), None, (), (), ()
    return (
        template.selector,
        template.required,
        template.tolerations,
        template.gpu.use_types,
        template.gpu.nouse_types,
    )


def _list_others(template: PodTemplate, devices: Devices) -> tuple[tuple[str, int], ...]:
    """List what a pod asks beside CPU, memory and devices; nothing if it asks very much, as above."""
    if template.words > limits.LIGHT_WORDS:
        return ()
    return tuple(
        (name, amount)
        for name, amount in template.requests.amounts
        if name not in _TOLD and not devices.is_of_devices(name)
    )


class Demand:
    """The histograms. They have one writer, like the cluster.

    Attributes:
        devices, plain: the histogram of pods with devices, and that of pods without.
    """

    def __init__(self, known: Devices = DEFAULT_DEVICES) -> None:
        """``known`` knows which resources request devices."""
        self._known = known
        self.devices: Tally[DemandShape] = Tally()
        self.plain: Tally[DemandShape] = Tally()
        self._seen: Counter[str] = Counter()
        self._shapes: WeakKeyDictionary[PodTemplate, DemandShape] = WeakKeyDictionary()

    def count_seen(self, family: str) -> int:
        """Count the pods seen so far that asked devices of a family."""
        return self._seen[family]

    def note_arrival(self, template: PodTemplate, *, listed: bool = False) -> None:
        """Note that a pod was seen for the first time; ``listed``: it came before the watch began."""
        if is_bound_by_name(template):
            return
        shape = self._shapes.get(template)
        if shape is None:
            shape = self._shapes[template] = read_shape(template, self._known)
        if template.gpu is not None:
            self._seen[shape.family] += 1
        self._tally(template).note_arrival(shape, listed=listed)

    def note_departure(self, template: PodTemplate) -> None:
        """Note that a pod left its node."""
        if not is_bound_by_name(template):
            self._tally(template).note_departure()

    def recall(self, told: DemandRecalled) -> None:
        """Take over what an earlier leader learnt of departures; it counts until enough departures were watched here."""
        self.devices.recall(told.departures, told.horizon)
        if told.plain_horizon:
            self.plain.recall(told.plain_departures, told.plain_horizon)

    def list_known(self) -> dict[str, Any]:
        """Return the whole demand as plain values for ``restore``."""
        return {
            "seen": dict(self._seen),
            "devices": self.devices.list_known(),
            "plain": self.plain.list_known(),
        }

    def restore(self, known: dict[str, Any]) -> None:
        """Replace the demand by one that ``list_known`` returned."""
        self._seen = Counter(known["seen"])
        self.devices.restore(known["devices"], _read_plain_shape)
        self.plain.restore(known["plain"], _read_plain_shape)

    def list_counts(self) -> dict[DemandShape, float]:
        """Return the number of pods of each shape, with and without devices; a pod seen just now counts 1."""
        return self.devices.list_counts() | self.plain.list_counts()

    def _tally(self, template: PodTemplate) -> Tally[DemandShape]:
        return self.plain if template.gpu is None else self.devices


def _read_plain_shape(kept: Any) -> DemandShape:
    """Read a shape from its plain value, which may have been JSON."""
    return msgspec.convert(kept, DemandShape)
