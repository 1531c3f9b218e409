"""Questions about what is in use, free and stranded. Columns are copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scheduler.api.cards import Identity, Place, list_uses
from scheduler.api.door.events import DemandRecalled
from scheduler.devices.contract import Shown
from scheduler.engine.questions.contract import Fact, Question, Readings, Steps
from scheduler.measure.cards import Cards
from scheduler.measure.figures import Figures
from scheduler.schema import columns as c
from scheduler.state.demand import DemandShape
from scheduler.state.pods import PodRecord


class Departures(Fact[DemandRecalled], frozen=True):
    """How fast pods leave, in the form that the next leader reads."""


class Totals(Question[Steps[None]], frozen=True):
    """Recount every total, a node at a time.

    Raises, while it is recounted:
        BrokenInvariant: a total is not the sum of its parts.
    """


class DeviceColumns(NamedTuple):
    """The devices at one moment. n nodes, F families, D rows of cards.

    Attributes:
        offered: [2, F, n] devices that are counted, in GPUs: capacity, requested.
        managed: [F, n] whether the devices are allocated one by one.
        figures: [2, F, 3, n] of these: capacity, allocated.
        runs: [2, F, n] the first row of cards, and how many there are.
        cards: [2, 3, D] of each card: capacity, allocated.
        words: [3, D] index, number of the UUID, number of the model.
        shown: [F] how they are shown in metrics that others have named.
        uuids, models: the words, by these numbers. Equal lists that are one object have not changed.
    """

    nodes: list[str]
    resources: tuple[str, ...]
    offered: c.Floats
    managed: c.Flags
    figures: c.Ints
    runs: c.Ints
    cards: c.Ints
    words: c.Ints
    shown: tuple[Shown, ...]
    uuids: Sequence[str]
    models: Sequence[str]


class Devices(Question[DeviceColumns], frozen=True):
    """The devices of all nodes, and how much of them is in use. About a millisecond for five thousand nodes."""


class HoldColumns(NamedTuple):
    """What pods hold on cards at one moment; one entry for each pod and card.

    Attributes:
        pods: all pods; those with a node have a row.
        rows: [h] the row of the entry's pod.
        holds: [h, 4] row of the card among those of ``DeviceColumns``, core percent, MiB and sharers.
    """

    pods: Sequence[PodRecord]
    rows: c.Ints
    holds: c.Ints


class Holds(Question[HoldColumns], frozen=True):
    """What every pod holds on cards. About two milliseconds for forty thousand pods."""


class CutInstance(NamedTuple):
    """A part of a card that a pod has, and that the plugin has made; ``card`` is the row among those of ``DeviceColumns``."""

    card: int
    place: Place
    identity: Identity


class PartColumns(NamedTuple):
    """What pods hold of parts of cards at one moment; one entry for each pod and part.

    Attributes:
        pods: all pods; those with a node have a row.
        rows: [h] the row of the entry's pod.
        cards: [h] the row of the card among those of ``DeviceColumns``.
        uuids: by row of a card.
        places: by row of a card, where it can be cut.
    """

    pods: Sequence[PodRecord]
    rows: c.Ints
    cards: c.Ints
    uuids: Mapping[int, str]
    places: Mapping[int, Sequence[Place]]

    def list_instances(self) -> list[CutInstance]:
        """List the parts that pods have, by card and place. O(pods): the thread that writes metrics calls it."""
        held: dict[int, list[int]] = {}
        for row, d in zip(self.rows.tolist(), self.cards.tolist(), strict=True):
            held.setdefault(row, []).append(d)
        # Cards of one model have the same places.
        there: dict[tuple[int, Place], bool] = {}
        found = []
        for pod in self.pods if held else ():
            for use in list_uses(pod.claim) if pod.row in held else ():
                d = next((d for d in held[pod.row] if self.uuids[d] == use.uuid), -1)
                if use.identity is None or use.place is None or d < 0:
                    continue
                kind = id(self.places[d]), use.place
                if kind not in there:
                    there[kind] = any(one.is_at(use.place) for one in self.places[d])
                if there[kind]:
                    found.append(CutInstance(d, use.place, use.identity))
        return sorted(found)


class Instances(Question[PartColumns | None], frozen=True):
    """What pods hold of parts of cards; None where no card can be cut. About two milliseconds for twenty thousand pods."""


class StrandedFigures(NamedTuple):
    """What nodes have in use, free and stranded, and the GPUs of each namespace that has any."""

    figures: Figures
    gpus: Mapping[str, float]


class Stranded(Question[Steps[StrandedFigures]], frozen=True):
    """What is stranded, judged by the typical pods as ``audit`` judges it; a typical pod at a time."""


class Fragments(Question[Readings[float]], frozen=True):
    """How much of the idle GPU, in milli-GPU, no typical pod of a demand can use; of the nodes there are when asked."""

    demand: Mapping[DemandShape, float]


class NodeColumns(NamedTuple):
    """n nodes and R resources.

    Attributes:
        rows: [n] a number for each node that stays the same.
        n_rows: above all these numbers.
        offered, requested: [R, n] in base units.
        cards: the devices of these nodes, by their place in ``rows``.
        models: the words for the models of cards.
    """

    rows: c.Ints
    n_rows: int
    offered: c.Ints
    requested: c.Ints
    cards: Cards
    models: Sequence[str]


class ChangedNodes(Question[Readings[NodeColumns]], frozen=True):
    """What some resources and the devices are on nodes that changed since the reading before; first of all nodes."""

    resources: tuple[str, ...]


class NodeUse(NamedTuple):
    """What is in use on a node.

    Attributes:
        cores: of each card of its pool, in percent of its compute.
    """

    cpu_milli: int
    memory_bytes: int
    cores: tuple[int, ...]


class UseByNode(Question[Mapping[str, NodeUse]], frozen=True):
    """What is in use on every node, by name."""


class OccupiedNodes(Question[int], frozen=True):
    """How many nodes have any pod."""
