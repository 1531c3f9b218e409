"""The answer for each pod, as plain values for ``-o json``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from scheduler.api import wire
from scheduler.api.door.decisions import Bind, Evict, Hold
from scheduler.devices import table as devices
from scheduler.schema import columns as c
from scheduler.shapes.boards import Shape
from scheduler.simulate.reading.kinds import ObjectKey
from scheduler.simulate.situation import Situation
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from scheduler.telling import placements, sayings
from scheduler.telling.verdicts import Verdicts

Json = dict[str, Any]
_GATED = "Scheduling is blocked due to non-empty scheduling gates"


class StateBefore(NamedTuple):
    """The state that explains a decision, from before the decision.

    Attributes:
        verdicts: what every node said of the pod.
        shape: the pod's; None when something on the pod must be mended first.
        used: [3, D] what was in use of every card.
    """

    verdicts: Verdicts
    shape: Shape | None
    used: c.Ints


class Rows:
    """A row for each pod that was waiting, in the order of the decisions."""

    def __init__(self, situation: Situation, cluster: Cluster, now: int) -> None:
        """Rows of pods that the cluster knows; ``now`` is written into annotations."""
        self._situation, self._cluster, self._now = situation, cluster, now
        self._rows: dict[str, Json] = {}
        self._indices: dict[tuple[str, str], dict[str, int]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def all(self) -> list[Json]:
        """The rows, with those of pods that nothing was decided for."""
        gated = [p for p in self._cluster.pods.values() if p.ours and p.gated and not p.node]
        unread = [
            self._row(one.namespace, one.name, one.uid, str(one.problem))
            for one in self._situation.inventory.unread
        ]
        return [*self._rows.values(), *(self._make_row(pod, _GATED) for pod in gated), *unread]

    def add_hold(self, hold: Hold) -> None:
        """A pod stays pending."""
        row = self._make_row(self._cluster.pods[hold.uid], sayings.say_why(hold).message)
        row["nominated"] = self._cluster.nominations.node_of(hold.uid) or None
        self._rows[hold.uid] = row | {"unschedulable": sayings.write_sentence(hold)}

    def evicts(self, evict: Evict) -> None:
        """A pod that stays pending has others sent away, and is nominated to their node."""
        row, pods = self._rows[evict.makes_room_for], self._cluster.pods
        row["nominated"] = evict.node
        row["victims"] = [
            {"namespace": pods[uid].namespace, "name": pods[uid].name, "uid": uid}
            for uid in evict.victims
        ]

    def bound(self, bind: Bind) -> None:
        """A pod has a node."""
        pod = self._cluster.pods[bind.uid]
        row = self._make_row(pod, f"Successfully assigned {pod.key} to {bind.node}")
        row["node"] = bind.node
        if bind.slots:
            driver = devices.cards_of(bind.driver)
            row["annotations"] = driver.answer(bind.node, bind.slots, self._now).annotations
            indices = self._indices_on(bind.node, bind.driver)
            row["devices"] = [
                {
                    "id": use.uuid,
                    "index": indices.get(use.uuid),
                    "memoryMiB": use.mem_mib,
                    "cores": use.cores,
                }
                for slot in bind.slots
                for use in slot
            ]
        self._rows[bind.uid] = row

    def explain(self, uid: str, seen: StateBefore) -> None:
        """Why a pod that was decided for goes where it goes."""
        nodes, weights = seen.verdicts
        cards = self._why_cards(self._cluster.pods[uid], seen)
        self._rows[uid] |= {"nodes": nodes, "weights": weights, "cards": cards}

    def _why_cards(self, pod: PodRecord, seen: StateBefore) -> Json | None:
        """By what a pod's cards were ordered, and what each had before; None for a pod that was given none."""
        uuids = sorted({use.uuid for slot in pod.claim for use in slot})
        if not (pod.node and uuids) or seen.shape is None:
            return None
        cluster, row = self._cluster, self._cluster.nodes.row_of(pod.node)
        there = cluster.registers.cards_of(pod.uid, cluster.registers.pool_of(pod), row)
        columns = cluster.cards.columns
        return {
            "by": placements.cards_by(seen.shape),
            "before": [
                {
                    "id": cluster.cards.uuid_of(d),
                    "index": int(columns.position[d]),
                    "free": _figures(columns.total[:, d] - seen.used[:, d]),
                    "total": _figures(columns.total[:, d]),
                }
                for d in sorted(there[uuid] for uuid in uuids)
            ],
        }

    def _make_row(self, pod: PodRecord, message: str) -> Json:
        return self._row(pod.namespace, pod.name, pod.uid, message)

    def _row(self, namespace: str, name: str, uid: str, message: str) -> Json:
        owner = self._situation.making.owners.get(uid)
        return {
            "namespace": namespace,
            "name": name,
            "uid": uid,
            "owner": owner and {"kind": owner.kind, "name": owner.name},
            "displacedFrom": self._situation.displaced.get(uid),
            "node": None,
            "annotations": {},
            "devices": [],
            "message": message,
            "unschedulable": None,
            "victims": [],
            "nominated": None,
        }

    def _indices_on(self, node: str, driver: str) -> dict[str, int]:
        """The places of a node's cards by their UUIDs."""
        if (node, driver) not in self._indices:
            facts = self._cluster.facts_of(node)
            told = facts.devices if facts else ()
            families = self._cluster.registers.families
            self._indices[node, driver] = {
                card.id: card.index
                for family, one in zip(families, told, strict=False)
                if family.cards is not None and family.cards.name == driver
                for card in family.cards.cards(one.words)
            }
        return self._indices[node, driver]


def _figures(of_card: c.Ints) -> dict[str, int]:
    cores, mib, sharers = of_card.tolist()
    return {"memoryMiB": mib, "cores": cores, "sharers": sharers}


def by_kind(workloads: Iterable[ObjectKey]) -> dict[str, list[str]]:
    """The names of workloads, with their namespaces, by kind."""
    found: dict[str, list[str]] = {}
    for one in sorted(workloads):
        found.setdefault(one.kind, []).append(f"{one.namespace}/{one.name}")
    return found


def removed(gone: Mapping[ObjectKey, Sequence[wire.Pod]]) -> list[Json]:
    """The pods that go, by the workload that is to be smaller."""
    return [
        {
            "namespace": pod.metadata.namespace,
            "name": pod.metadata.name,
            "owner": {"kind": owner.kind, "name": owner.name},
            "node": pod.spec.node_name or None,
        }
        for owner, pods in gone.items()
        for pod in pods
    ]
