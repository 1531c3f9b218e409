"""Writes a plan of moves for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.defrag.contract import LetIn, Move, Plan, Seat, Totals
from scheduler.plan.owners import Owners
from scheduler.state.pods import PodRecord

Json = dict[str, Any]


def write_plan(
    plan: Plan, pods: Mapping[str, PodRecord], owners: Owners, only_for: str | None
) -> Json:
    """Write a plan; ``only_for`` is the waiting pod that it is for."""
    return {
        "for": only_for,
        "bundles": [
            {"moves": [_write_move(move, pods, owners) for move in bundle]}
            for bundle in plan.bundles
        ],
        "totals": {
            "moves": sum(map(len, plan.bundles)),
            "before": _write_totals(plan.before),
            "after": _write_totals(plan.after),
        },
        "movable": plan.movable,
        "stays": [{"reason": reason, "pods": n} for reason, n in plan.stays],
        "tried": plan.tried,
        "complete": not plan.is_cut,
    }


def _write_totals(totals: Totals) -> Json:
    return {
        "wholeCards": totals.cards,
        "idleNodes": totals.nodes,
        "waitingPods": totals.waiting,
    }


def _write_move(move: Move, pods: Mapping[str, PodRecord], owners: Owners) -> Json:
    owner = owners.makers[move.uid]
    return {
        "pod": _write_name(move.uid, pods),
        "owner": {"kind": owner.kind, "name": owner.name},
        "onlyPod": move.uid in owners.only,
        "runSeconds": int(move.run_seconds),
        "from": _write_seat(move.left),
        "to": _write_seat(move.came),
        "frees": [
            {
                "what": str(one.what),
                "node": one.node,
                "card": None
                if one.position < 0
                else {"index": one.position, "id": one.uuid, "model": one.model},
            }
            for one in move.freed
        ],
        "letsIn": [_write_let_in(one, pods) for one in move.lets_in],
    }


def _write_let_in(found: LetIn, pods: Mapping[str, PodRecord]) -> Json:
    return {
        "pod": _write_name(found.uid, pods),
        "group": found.group or None,
        "to": _write_seat(found.seat),
    }


def _write_name(uid: str, pods: Mapping[str, PodRecord]) -> Json:
    return {"namespace": pods[uid].namespace, "name": pods[uid].name, "uid": uid}


def _write_seat(seat: Seat) -> Json:
    return {
        "node": seat.node,
        "cards": [
            {
                "index": one.position,
                "id": one.uuid,
                "model": one.model,
                "cores": one.cores,
                "memoryMiB": one.mib,
            }
            for one in seat.cards
        ],
    }
