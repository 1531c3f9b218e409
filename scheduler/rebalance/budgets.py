"""How many more pods a policy lets move: it remembers the moves of the last hour in its status.

A move is written there before its pod is evicted, so neither a restart nor another leader moves more than is allowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from scheduler.api import times
from scheduler.api.rebalancing.policy import MOVES_MAX, Rebalancing
from scheduler.api.wire import Owner

HOUR = 3600


class Outcome(StrEnum):
    """What has become of a move."""

    BEGUN = "Begun"
    AS_PLANNED = "AsPlanned"
    ELSEWHERE = "Elsewhere"
    # The pod was evicted, and no successor was ready in time.
    UNFINISHED = "Unfinished"
    # The pod is where it was: its successor was not ready in time, or not where it should be, and went again.
    TAKEN_BACK = "TakenBack"
    # The pod is where it was, and nothing was begun.
    REFUSED = "Refused"


class PastMove(NamedTuple):
    """A move as the status of a policy has it.

    Attributes:
        at: when it began, in seconds since 1970.
        namespace, name: of the pod that left.
        source, target: the node that it left, and the node of the successor; the planned one until the move has ended.
        message: what there is to say beside the outcome; empty for nothing.
        controller: kind and name of what made the pod; empty where an older version has written the move.
    """

    at: int
    namespace: str
    name: str
    source: str
    target: str
    outcome: Outcome
    message: str = ""
    controller: str = ""


def read_moves(status: Any) -> list[PastMove]:
    """Read the moves from a status; what somebody else has written there and is none is left out."""
    listed = status.get("moves") if isinstance(status, Mapping) else None
    found = map(_read_move, listed if isinstance(listed, Sequence) else ())
    return [one for one in found if one is not None]


def _read_move(raw: Any) -> PastMove | None:
    fields = ("at", "namespace", "name", "from", "to", "outcome")
    if not isinstance(raw, Mapping) or not all(isinstance(raw.get(key), str) for key in fields):
        return None
    at, namespace, name, source, target, outcome = (raw[key] for key in fields)
    begun = times.read_time(at)
    if begun is None or outcome not in list(Outcome):
        return None
    message, controller = str(raw.get("message", "")), str(raw.get("controller", ""))
    return PastMove(begun, namespace, name, source, target, Outcome(outcome), message, controller)


def write_moves(moves: Iterable[PastMove]) -> list[dict[str, str]]:
    """Write moves for a status."""
    return [
        {
            "at": times.write_time(one.at),
            "namespace": one.namespace,
            "name": one.name,
            "from": one.source,
            "to": one.target,
            "outcome": one.outcome,
            **({"message": one.message} if one.message else {}),
            **({"controller": one.controller} if one.controller else {}),
        }
        for one in moves
    ]


def keep_recent(moves: Iterable[PastMove], now: float) -> list[PastMove]:
    """Keep the moves of the last hour; of those that took nothing from the budget, only the last ones.

    A move that began later than now did so by a clock that was set back since, or somebody has written it: it counts from
    now on, since nobody can tell when it was.
    """
    dated = (one._replace(at=min(one.at, int(now))) for one in moves)
    recent = [one for one in dated if one.at > now - HOUR]
    n_refused = len(recent) - sum(_is_counted(one) for one in recent)
    for one in list(recent):
        if n_refused <= MOVES_MAX // 10:
            break
        if not _is_counted(one):
            recent.remove(one)
            n_refused -= 1
    return recent


def count_left(policy: Rebalancing, moves: Iterable[PastMove]) -> int:
    """Count how many more pods the policy lets move, of the moves of the last hour."""
    return policy.per_hour - sum(map(_is_counted, moves))


def count_by_namespace(moves: Iterable[PastMove]) -> Counter[str]:
    """Count the moves of the last hour by namespace."""
    return Counter(one.namespace for one in moves if _is_counted(one))


def list_missed(moves: Iterable[PastMove]) -> set[tuple[str, str]]:
    """List the controllers, as (namespace, kind and name), of which a move of the last hour has not ended as planned."""
    return {
        (one.namespace, one.controller)
        for one in moves
        if one.controller and one.outcome != Outcome.AS_PLANNED
    }


def name_controller(owner: Owner) -> str:
    """Name what made a pod, for a status."""
    return f"{owner.kind} {owner.name}"


def find_next_left(policy: Rebalancing, moves: Iterable[PastMove]) -> float:
    """Find when the policy lets another pod move, in seconds since 1970, if it lets none move now."""
    counted = sorted(one.at for one in moves if _is_counted(one))
    return float(counted[-policy.per_hour] + HOUR)


def _is_counted(move: PastMove) -> bool:
    return move.outcome != Outcome.REFUSED
