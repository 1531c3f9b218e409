"""What pods ask: a histogram of shapes that forgets slowly, and how fast pods leave.

Every pod that is seen for the first time counts, whoever schedules it, so a start finds the demand again
in the pods that are there. Shapes are much coarser than templates: of a thousand jobs with a name of their
own in their spec all that counts is what they ask and where they may go.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from scheduler.api import limits, names
from scheduler.api.pods import gpus
from scheduler.api.pods.templates import PodTemplate, TolerationKey
from scheduler.api.selectors import NodeTerm

# A pod counts half after so many others that ask GPUs (or, for the others, so many of any kind).
HALF_LIFE = 20_000
# Departures are averaged over about so many arrivals, and begin as if so many had come and none left.
_HORIZON, _PRIOR = 1000, 20
# A cluster has hundreds of shapes; what asks a figure of its own for every pod must not grow for ever.
_SHAPES_MAX = 4096
_UNIT_MAX = 1e100
Whereabouts = tuple[
    tuple[tuple[str, str], ...],
    tuple[NodeTerm, ...] | None,
    tuple[TolerationKey, ...],
    tuple[str, ...],
    tuple[str, ...],
]


class DemandShape(NamedTuple):
    """What a pod asks and what it demands of a node, as far as placement is planned by it.

    Attributes:
        cpu, memory: milli-CPU and bytes.
        cards: 0 for pods without GPU, and then only ``cpu`` is told.
        mib, percent, cores: on each card; ``percent`` of its memory counts where ``mib`` is 0.
        family: the resource by which the cards are asked, empty where none are.
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

    @property
    def node_names(self) -> None:
        """Of which nodes a pod is by name is not remembered: these come and go."""

    @property
    def features(self) -> tuple[str, ...]:
        """Nor what it needs of a kubelet."""
        return ()

    def milli(self, cores: int, mib: int) -> tuple[int, int]:
        """Milli of the cores and of the memory that the pod is charged on a card with so many of each."""
        core = self.cores * gpus.WHOLE_MILLI // cores if cores else 0
        if not mib:
            # Cards known as whole ones only.
            asked = gpus.WHOLE_CARD_PERCENT if self.mib else self.percent
            return core, asked * gpus.WHOLE_MILLI // gpus.WHOLE_CARD_PERCENT
        charged = self.mib or mib * self.percent // gpus.WHOLE_CARD_PERCENT
        return core, charged * gpus.WHOLE_MILLI // mib


def shape_of(template: PodTemplate) -> DemandShape:
    """The shape of a template."""
    asked = dict(template.requests.amounts)
    cpu = asked.get(names.CPU, 0)
    if template.gpu is None:
        return DemandShape(cpu)
    ask = gpus.total(template.gpu)
    return DemandShape(
        cpu,
        asked.get(names.MEMORY, 0),
        ask.cards,
        ask.mem_mib,
        0 if ask.mem_mib else ask.mem_percent,
        ask.cores,
        *_whereabouts(template),
        template.gpu.family,
    )


def _whereabouts(template: PodTemplate) -> Whereabouts:
    """Where a pod may go. Shapes outlive their pods, so of one that says very much nothing is remembered."""
    if template.gpu is None or template.words > limits.LIGHT_WORDS:
        return (), None, (), (), ()
    return (
        template.selector,
        template.required,
        template.tolerations,
        template.gpu.use_types,
        template.gpu.nouse_types,
    )


class Demand:
    """The histogram. One writer, like the cluster.

    Attributes:
        departures: pods that left their node, per arrival, over about ``horizon`` arrivals; of pods with devices.
        horizon: grows with the arrivals up to 1,000.
    """

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self.departures = 0.0
        self._left = self._watched = 0
        self.horizon = _PRIOR
        self._counts: dict[DemandShape, float] = {}
        self._shapes: WeakKeyDictionary[PodTemplate, DemandShape] = WeakKeyDictionary()
        # Instead of shrinking all counts, what is new counts more and more.
        self._unit = 1.0

    @property
    def seen(self) -> int:
        """Pods that asked devices, ever."""
        return self._seen.total()

    def seen_of(self, family: str) -> int:
        """Pods that asked devices of a family, ever."""
        return self._seen[family]

    def arrived(self, template: PodTemplate, *, listed: bool = False) -> None:
        """A pod was seen for the first time; ``listed``: it came before anybody watched."""
        shape = self._shapes.get(template)
        if shape is None:
            shape = self._shapes[template] = shape_of(template)
        if shape not in self._counts and len(self._counts) >= _SHAPES_MAX:
            self._drop_rarest()
        if shape.cards:
            self._seen[shape.family] += 1
            self._age()
            if not listed:
                # At first over the few that came: a small cluster is full after as many.
                mean = self.departures + (self._left - self.departures) / self.horizon
                self.horizon = min(_HORIZON, self.horizon + 1)
                # A thousand pods deleted at once must not stand for those to come for ever.
                self.departures = min(1.0, mean)
                self._left = 0
                self._watched += 1
        self._counts[shape] = self._counts.get(shape, 0.0) + self._unit

    def left(self, template: PodTemplate) -> None:
        """A pod left the node that it was on."""
        if template.gpu is not None:
            self._left += 1

    def recall(self, departures: float, horizon: int) -> None:
        """What another has learnt of departures over so many arrivals, until enough were watched."""
        if self._watched < _HORIZON:
            self.departures = min(1.0, departures)
            self.horizon = max(_PRIOR, min(_HORIZON, horizon))

    def known(self) -> dict[str, Any]:
        """All that is known, as plain values for ``restore``."""
        return {
            "seen": dict(self._seen),
            "departures": self.departures,
            "left": self._left,
            "watched": self._watched,
            "horizon": self.horizon,
            "unit": self._unit,
            "counts": list(self._counts.items()),
        }

    def restore(self, known: dict[str, Any]) -> None:
        """Know what another has known, and nothing else."""
        self._seen, self.departures = Counter(known["seen"]), known["departures"]
        self._left, self._watched = known["left"], known["watched"]
        self.horizon, self._unit = known["horizon"], known["unit"]
        self._counts = dict(msgspec.convert(known["counts"], list[tuple[DemandShape, float]]))

    def counts(self) -> dict[DemandShape, float]:
        """Pods of each shape; one seen just now counts 1."""
        return {shape: count / self._unit for shape, count in self._counts.items()}

    def _age(self) -> None:
        if self._unit > _UNIT_MAX:
            self._counts = self.counts()
            self._unit = 1.0
        self._unit *= 2.0 ** (1 / HALF_LIFE)

    def _drop_rarest(self) -> None:
        kept = sorted(self._counts.items(), key=lambda item: -item[1])[: _SHAPES_MAX // 2]
        self._counts = dict(kept)
