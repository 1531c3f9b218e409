"""The answer for each pod, as plain values for ``-o json``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from scheduler.api import wire
from scheduler.api.claims.amounts import write_quantity
from scheduler.api.claims.answers import Allotment
from scheduler.api.claims.extended import make_name
from scheduler.api.door.decisions import Bind, Evict, Hold
from scheduler.devices import answers
from scheduler.engine.engine import Engine
from scheduler.engine.questions.claims import KnownResourceClaim
from scheduler.engine.questions.nodes import CardDrivers
from scheduler.engine.questions.pods import NamedPod, NominatedNode
from scheduler.engine.questions.simulating import BeforeDecision, CardIndices, HeldCards
from scheduler.engine.questions.waiting import Unplaced, WhatWaits
from scheduler.schema import columns as c
from scheduler.simulate.groups import Groups
from scheduler.simulate.reading.kinds import ObjectKey
from scheduler.simulate.situation import Situation
from scheduler.state.pods import PodRecord
from scheduler.telling import groups, sayings

Json = dict[str, Any]


class Rows:
    """A row for each pod that was waiting, in the order of the decisions."""

    def __init__(self, situation: Situation, engine: Engine, of_groups: Groups, now: int) -> None:
        """Rows of pods that the engine knows; ``now`` is written into annotations."""
        self._situation, self._engine, self._now = situation, engine, now
        self._groups = of_groups
        self._rows: dict[str, Json] = {}
        self._indices: dict[tuple[str, str], Mapping[str, int]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def list_all(self, held: Mapping[str, str]) -> list[Json]:
        """List the rows, with those of pods for which nothing was decided; ``held`` says why those without quota wait."""
        waiting = [
            row
            for one in self._engine.ask(WhatWaits())
            for row in self._make_waiting_rows(one, held)
            if row["uid"] not in self._rows or one.result is not None
        ]
        for row in waiting:
            if (made := self._rows.get(row["uid"])) is not None:
                made |= {key: row[key] for key in ("message", "unschedulable", "nominated")}
        unread = [
            self._make_plain_row(one.namespace, one.name, one.uid, str(one.problem))
            for one in self._situation.inventory.unread
        ]
        rest = sorted((row for row in waiting if row["uid"] not in self._rows), key=_find_name)
        return [*self._rows.values(), *rest, *unread]

    def _make_waiting_rows(self, waiting: Unplaced, held: Mapping[str, str]) -> Iterator[Json]:
        """Make rows for pods that wait, and were not decided about one by one."""
        for pod in waiting.pods:
            if waiting.held or waiting.result is None:
                yield self._make_row(pod, held.get(pod.uid) or waiting.held)
                continue
            exact = next((one for one in waiting.result.members if one.uid == pod.uid), None)
            if exact is not None:
                yield self._make_row(pod, sayings.say_why(exact).message) | {
                    "nominated": self._engine.ask(NominatedNode(pod.uid)) or None,
                    "unschedulable": sayings.write_sentence(exact),
                }
                continue
            said = groups.say_group(waiting.result, waiting.hold)
            yield self._make_row(pod, said.message) | {
                "nominated": self._engine.ask(NominatedNode(pod.uid)) or None,
                "unschedulable": groups.count_fitting(waiting.result),
            }

    def add_hold(self, hold: Hold) -> None:
        """Add a pod that stays pending."""
        row = self._make_row(self._engine.ask(NamedPod(hold.uid)), sayings.say_why(hold).message)
        row["nominated"] = self._engine.ask(NominatedNode(hold.uid)) or None
        before = self._rows.get(hold.uid)
        if before is not None and row["nominated"] and before["nominated"] == row["nominated"]:
            # It waits on for those that leave.
            row["victims"] = before["victims"]
        self._rows[hold.uid] = row | {"unschedulable": sayings.write_sentence(hold)}

    def add_evict(self, evict: Evict) -> None:
        """Add the victims of a pod that stays pending and is nominated to their node."""
        if not evict.makes_room_for:
            return
        uid = evict.makes_room_for
        if uid not in self._rows:
            # It was held, as its queue had no room for it, and makes room in its queue now.
            self._rows[uid] = self._make_row(self._engine.ask(NamedPod(uid)), "")
        row = self._rows[uid]
        row["nominated"] = evict.node
        # A group makes room on several nodes, and pods of a victim's group may be on others.
        row["victims"] += [
            {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid, "node": pod.node}
            for pod in map(self._engine.ask, map(NamedPod, evict.victims))
        ]

    def add_bind(self, bind: Bind) -> None:
        """Add a pod that is bound to a node."""
        pod = self._engine.ask(NamedPod(bind.uid))
        row = self._make_row(pod, f"Successfully assigned {pod.key} to {bind.node}")
        row["node"] = bind.node
        if bind.devices:
            drivers = self._engine.ask(CardDrivers())
            answer = answers.write_answers(drivers, bind.node, bind.devices, self._now)
            row["annotations"] = answer.annotations
            row["devices"] = [
                {
                    "id": use.uuid,
                    "index": self._find_indices(bind.node, grant.driver).get(use.uuid),
                    "memoryMiB": use.mem_mib,
                    "cores": use.cores,
                }
                for grant in bind.devices
                for slot in grant.slots
                for use in slot
            ]
        row["claims"] = [use for one in bind.allotted for use in self._list_uses(bind.uid, one)]
        self._rows[bind.uid] = row

    def _list_uses(self, uid: str, allotted: Allotment) -> Iterator[Json]:
        """List the devices of a claim of a pod: those that it gets now, or has already."""
        given, name = allotted.given, allotted.key[1]
        if allotted.made:
            name, _ = make_name(self._engine.ask(NamedPod(uid)).name, uid)
        if not allotted.is_new:
            claim = self._engine.ask(KnownResourceClaim(allotted.key))
            given = (claim and claim.given) or ()
        for one in given:
            yield {
                "claim": name,
                "request": one.request,
                "driver": one.device.driver,
                "pool": one.device.pool,
                "device": one.device.name,
                "consumed": {name: write_quantity(amount) for name, amount in one.consumed},
            }

    def forget(self, uids: Iterable[str]) -> None:
        """Forget what was decided of pods that have stopped since."""
        for uid in uids:
            self._rows.pop(uid, None)

    def explain(self, before: BeforeDecision) -> None:
        """Explain the decision for a pod, if there is one: a quota of its namespace may hold it."""
        if before.uid not in self._rows:
            return
        nodes, weights = before.verdicts
        cards = self._explain_cards(before)
        self._rows[before.uid] |= {"nodes": nodes, "weights": weights, "cards": cards}

    def _explain_cards(self, before: BeforeDecision) -> Json | None:
        """Explain how a pod's cards were ordered, and what each had before; None for a pod without cards."""
        held = self._engine.ask(HeldCards(before.uid))
        if not (held and before.cards_by):
            return None
        return {
            "by": before.cards_by,
            "before": [
                {
                    "id": card.uuid,
                    "index": card.position,
                    "free": _name_figures(card.total - before.used[:, card.row]),
                    "total": _name_figures(card.total),
                }
                for card in held
            ],
        }

    def _make_row(self, pod: PodRecord, message: str) -> Json:
        return self._make_plain_row(pod.namespace, pod.name, pod.uid, message)

    def _make_plain_row(self, namespace: str, name: str, uid: str, message: str) -> Json:
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
            "claims": [],
            "message": message,
            "unschedulable": None,
            "victims": [],
            "nominated": None,
            "group": self._groups.find_name(uid),
        }

    def _find_indices(self, node: str, driver: str) -> Mapping[str, int]:
        """Find the places of a node's cards by their UUIDs."""
        if (node, driver) not in self._indices:
            self._indices[node, driver] = self._engine.ask(CardIndices(node, driver))
        return self._indices[node, driver]


def _find_name(row: Json) -> tuple[str, str]:
    return row["namespace"], row["name"]


def _name_figures(of_card: c.Ints) -> dict[str, int]:
    cores, mib, sharers = of_card.tolist()
    return {"memoryMiB": mib, "cores": cores, "sharers": sharers}


def group_by_kind(workloads: Iterable[ObjectKey]) -> dict[str, list[str]]:
    """Group the names of workloads, with their namespaces, by kind."""
    found: dict[str, list[str]] = {}
    for one in sorted(workloads):
        found.setdefault(one.kind, []).append(f"{one.namespace}/{one.name}")
    return found


def list_removed(gone: Mapping[ObjectKey, Sequence[wire.Pod]]) -> list[Json]:
    """List the pods that go, with the workload that is to be smaller."""
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
