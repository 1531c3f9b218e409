"""Cards, and what pods hold on them, as lines with the names that HAMi's scheduler writes.

The figures are those of the moment of the scrape; HAMi's are up to 15 s old. As in HAMi, what a pod holds on a card is
one figure for all its containers, and ``container_index`` is always 0: init containers and the others hold the same
memory one after the other, so the figures of single containers would add up to more than is allocated.
"""

from __future__ import annotations

import platform
import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from prometheus_client import Metric

from scheduler.api.metrics_settings import HamiMetrics, MetricsConfig
from scheduler.engine.questions.measures import (
    CutInstance,
    DeviceColumns,
    HoldColumns,
    PartColumns,
)
from scheduler.engine.questions.space_quotas import LimitState, SpaceQuotaState
from scheduler.kube.report.metrics import hami_catalogue as catalogue
from scheduler.kube.report.metrics import text
from scheduler.kube.report.metrics.families import Family
from scheduler.measure.cards import list_run_rows
from scheduler.schema import columns as c
from scheduler.state.pods import PodRecord

_BYTES_A_MIB = 1 << 20
# Of the two names of a figure.
_CURRENT = 0
_WHOLE = 100
# HAMi counts the compute of these cards in compute units, and writes it in percent under the present names.
_COUNTED_IN_UNITS = "AMD"
# As Go names them.
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_END = f'zone="{catalogue.ZONE}"}}'
# Which label has what of a card; what stands before the UUID is the same for many cards.
_CORES, _MEMORY, _POSITION, _TYPE = "cores", "memory", "position", "type"
_WORDS = {
    "device_cores": _CORES, "device_memory_limit": _MEMORY, "device_index": _POSITION, "device_type": _TYPE,
    "devicecores": _CORES, "devicememorylimit": _MEMORY, "deviceidx": _POSITION, "devicetype": _TYPE,
}  # fmt: skip


class _Card(NamedTuple):
    """The words of a card that go into labels."""

    cores: int
    memory: int
    position: int
    type: str


class _Cards(NamedTuple):
    """What is written of d cards, beside how much of them is allocated.

    Attributes:
        made_from: the input of the rest.
        rows: [d] the places of the cards.
        total: [3, d] their capacity.
        kinds: the distinct words of cards.
        kind: [d] the words of each card, by their place in ``kinds``.
        uuids, nodes: [d] of each card, ready for a label.
        in_units: [d] whether the compute counts in units.
        has_memory: [d] whether the MiB are memory.
    """

    made_from: tuple[object, ...]
    rows: c.Ints
    total: c.Ints
    kinds: list[_Card]
    kind: c.Ints
    uuids: list[str]
    nodes: list[str]
    in_units: c.Flags
    has_memory: c.Flags

    def convert_to_percent(self, cores: c.Ints, cards: c.Ints | slice) -> c.Ints:
        """Convert an amount of compute of some cards to what the present names have of it."""
        total = self.total[c.CORES, cards]
        percent = -(-cores * _WHOLE // np.maximum(total, 1))
        found: c.Ints = np.where(self.in_units[cards] & (total > 0), percent, cores)
        return found


class HamiLines:
    """Makes the text, in any thread."""

    def __init__(self, config: MetricsConfig) -> None:
        has_current = config.hami in {HamiMetrics.CURRENT, HamiMetrics.BOTH}
        has_legacy = config.hami in {HamiMetrics.LEGACY, HamiMetrics.BOTH}
        # Which of both names are written.
        self._names = tuple(i for i, is_wanted in enumerate((has_current, has_legacy)) if is_wanted)
        self.is_asked = bool(self._names)
        self.has_pods = self.is_asked and config.hami_per_pod
        self._cards: _Cards | None = None
        # Labels of cards by the names that are written.
        self._ends: dict[int, list[str]] = {}
        self._lock = threading.Lock()

    def collect(self, version: str) -> Iterator[Metric]:
        """Yield what every replica has; ``version`` is that of Evenkeel."""
        if self.is_asked:
            machine = platform.machine()
            of = f"{platform.system().lower()}/{_MACHINES.get(machine, machine)}"
            # Empty: what only HAMi's own build has.
            yield catalogue.BUILD.make_metric([(("", "", "", of, "", version), 1)])

    def collect_quotas(self, states: Sequence[SpaceQuotaState]) -> Iterator[Metric]:
        """Yield what is used of quotas. Of several limits of one resource in a namespace the tightest one is shown."""
        found: dict[tuple[str, str], LimitState] = {}
        for state in states:
            for one in state.limits:
                key = state.quota.namespace, one.resource
                other = found.get(key)
                if other is None or one.hard - one.used < other.hard - other.used:
                    found[key] = one
        zone = catalogue.ZONE
        lines = [(space, name, one) for (space, name), one in sorted(found.items())]
        used = (
            [((str(one.hard), space, name, zone), one.used) for space, name, one in lines],
            [((str(one.hard), name, space, zone), one.used) for space, name, one in lines],
        )
        for name in self._names:
            yield catalogue.QUOTA_USED[name].make_metric(used[name])
        if _CURRENT in self._names:
            limits = [((space, name, zone), one.hard) for space, name, one in lines]
            yield catalogue.QUOTA_LIMIT.make_metric(limits)

    def write_parts(
        self,
        copies: DeviceColumns,
        holds: HoldColumns | None,
        parts: PartColumns | None = None,
    ) -> Iterator[bytes]:
        """Yield all lines, one metric at a time."""
        with self._lock:
            cards = self._get_cards(copies)
            ends = self._ends
        used = copies.cards[1][:, cards.rows]
        instances = parts.list_instances() if parts is not None else ()
        used[c.MIB] *= cards.has_memory
        for name in self._names:
            yield from _write_cards(name, cards, ends[name], used)
            labels = _label_instances(name, cards, instances)
            yield text.write_gauge(
                catalogue.MIG_INSTANCE[name], labels, np.ones(len(labels), np.int64)
            )
        if holds is not None:
            yield from self._write_pods(cards, holds)

    def _write_pods(self, cards: _Cards, holds: HoldColumns) -> Iterator[bytes]:
        places = np.full(max(cards.rows.max(initial=-1), holds.holds[:, 0].max(initial=-1)) + 1, -1)
        places[cards.rows] = np.arange(cards.rows.size)
        card = places[holds.holds[:, 0]]
        known = np.flatnonzero(card >= 0)
        card, (_, cores, mib, _) = card[known], holds.holds[known].T
        by_row = {pod.row: pod for pod in holds.pods if pod.row >= 0}
        pods = [by_row[row] for row in holds.rows[known].tolist()]
        figures = (cards.convert_to_percent(cores, card), cores)
        mib = mib * cards.has_memory[card]
        for name in self._names:
            write = _label_old_holds if name else _label_holds
            labels = write(cards, pods, card.tolist())
            yield text.write_gauge(catalogue.POD_MEMORY[name], labels, mib * _BYTES_A_MIB)
            yield text.write_gauge(catalogue.POD_CORES[name], labels, figures[name])

    def _get_cards(self, copies: DeviceColumns) -> _Cards:
        runs = copies.runs
        rows = list_run_rows(runs[0].ravel(), runs[1].ravel())
        words, total = copies.words[:, rows], copies.cards[0][:, rows]
        # Numbers mean the same as long as the list to which they refer is the same.
        names = (copies.nodes, id(copies.uuids), id(copies.models), copies.shown)
        made_from = (names, runs.tobytes(), words.tobytes(), total.tobytes())
        if self._cards is None or self._cards.made_from != made_from:
            self._cards = _read_cards(made_from, copies, rows)
            self._ends = {name: _end_labels(name, self._cards) for name in self._names}
        return self._cards


def _read_cards(made_from: tuple[object, ...], copies: DeviceColumns, rows: c.Ints) -> _Cards:
    (index, uuid, model), total = copies.words[:, rows], copies.cards[0][:, rows]
    n_cards = copies.runs[1]
    owner = np.repeat(np.tile(np.arange(len(copies.nodes)), len(n_cards)), n_cards.ravel())
    family = np.repeat(np.arange(len(n_cards)), n_cards.sum(axis=1))
    has_memory = np.array([one.has_memory for one in copies.shown], bool)[family]
    cores = np.array([one.cores for one in copies.shown], np.int64)[family]
    total[c.MIB] *= has_memory
    total[c.CORES] = np.where(cores > 0, cores, total[c.CORES])
    # The types of families come after the models.
    has_type = np.array([bool(one.type) for one in copies.shown], bool)[family]
    model = np.where(has_type, len(copies.models) + family, model)
    names = [*copies.models, *(one.type for one in copies.shown)]
    kinds, kind = np.unique(
        [total[c.CORES], total[c.MIB], index, model], axis=1, return_inverse=True
    )
    types = [text.escape_label(one) for one in names]
    in_units = np.array([one.upper().startswith(_COUNTED_IN_UNITS) for one in names], bool)
    nodes = [text.escape_label(one) for one in copies.nodes]
    return _Cards(
        made_from,
        rows,
        total,
        [_Card(cores, mib, at, types[which]) for cores, mib, at, which in kinds.T.tolist()],
        kind.ravel(),
        [text.escape_label(copies.uuids[one]) for one in uuid.tolist()],
        [nodes[one] for one in owner.tolist()],
        in_units[model],
        has_memory,
    )


def _end_labels(name: int, cards: _Cards) -> list[str]:
    """Return for each card the labels from its UUID on, under the present names (0) or the old ones (1)."""
    uuid, node = ("deviceuuid", "nodeid") if name else ("device_uuid", "node")
    pairs = zip(cards.uuids, cards.nodes, strict=True)
    return [f'{uuid}="{its_uuid}",{node}="{its_node}",{_END}' for its_uuid, its_node in pairs]


def _begin_labels(family: Family, cards: _Cards) -> list[str]:
    """Return for each of the kinds the labels that stand before the UUID of a card."""
    words = [(label, _WORDS[label]) for label in family.labels if label in _WORDS]
    return [
        "{" + "".join(f'{label}="{getattr(kind, word)}",' for label, word in words)
        for kind in cards.kinds
    ]


def _write_cards(name: int, cards: _Cards, ends: list[str], used: c.Ints) -> Iterator[bytes]:
    """Yield the lines of cards under the present names (0) or the old ones (1)."""
    limit, cores = cards.total[c.CORES], used[c.CORES]
    if not name:
        limit = np.where(cards.in_units & (limit > 0), _WHOLE, limit)
        cores = cards.convert_to_percent(cores, slice(None))
    total, kind = cards.total[c.MIB], cards.kind.tolist()
    allocated = used[c.MIB] * _BYTES_A_MIB
    for both, figures in (
        (catalogue.MEMORY_LIMIT, total * _BYTES_A_MIB),
        (catalogue.CORE_LIMIT, limit),
        (catalogue.MEMORY_ALLOCATED, allocated),
        (catalogue.SHARED, used[c.SLOTS]),
        (catalogue.CORE_ALLOCATED, cores),
        (catalogue.OVERVIEW, allocated),
    ):
        begins = _begin_labels(both[name], cards)
        yield text.write_gauge_in_parts(both[name], begins, kind, ends, figures)
    has = np.flatnonzero(total > 0)
    family = catalogue.MEMORY_RATIO[name]
    begins, kind, ratio = (
        _begin_labels(family, cards),
        cards.kind[has],
        used[c.MIB, has] / total[has],
    )
    ends = [ends[i] for i in has.tolist()]
    yield text.write_gauge_in_parts(family, begins, kind.tolist(), ends, ratio)


def _label_instances(name: int, cards: _Cards, instances: Sequence[CutInstance]) -> list[str]:
    """Return the labels of instances, under the present names (0) or the old ones (1)."""
    places = {d: i for i, d in enumerate(cards.rows.tolist())} if instances else {}
    labels = []
    for one in instances:
        at = places.get(one.card)
        if at is None:
            continue
        index, uuid, node = cards.kinds[cards.kind[at]].position, cards.uuids[at], cards.nodes[at]
        profile, known = text.escape_label(one.place.profile), one.identity
        if name:
            labels.append(
                f'{{deviceidx="{index}",deviceuuid="{uuid}",migname="{profile}-{known.gpu_instance}",nodeid="{node}",{_END}'
            )
            continue
        labels.append(
            f'{{compute_instance_id="{known.compute_instance}",device_index="{index}",device_uuid="{uuid}",'
            f'gpu_instance_id="{known.gpu_instance}",mig_uuid="{text.escape_label(known.uuid)}",node="{node}",'
            f'placement_size="{one.place.size}",placement_start="{one.place.start}",profile="{profile}",{_END}'
        )
    return labels


def _label_holds(cards: _Cards, pods: Sequence[PodRecord], card: Sequence[int]) -> list[str]:
    return [
        f'{{container_index="0",device_uuid="{cards.uuids[d]}",namespace="{pod.namespace}",node="{cards.nodes[d]}",pod="{pod.name}",{_END}'
        for pod, d in zip(pods, card, strict=True)
    ]


def _label_old_holds(cards: _Cards, pods: Sequence[PodRecord], card: Sequence[int]) -> list[str]:
    return [
        f'{{containeridx="0",deviceuuid="{cards.uuids[d]}",nodename="{cards.nodes[d]}",podname="{pod.name}",podnamespace="{pod.namespace}",{_END}'
        for pod, d in zip(pods, card, strict=True)
    ]
