"""When a workload starts and what it waits for, as JSON and as a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler import printing
from scheduler.api.queues.amounts import write_amount
from scheduler.api.times import write_time
from scheduler.queues.forecast import End, Start

Json = dict[str, Any]
# The reason of a workload for which there is no place.
NO_PLACE = "TopologyPlacementFailed"
# No end of others changes anything about these.
_NEVER = frozenset({"NoMatchingFlavor", "ExceedsMaxQuota"})


def write_start(found: Start | None) -> Json:
    """Write when a workload starts: ``startsAt``, ``startsInSeconds`` and ``waitsFor``; nulls for one that does not wait."""
    if found is None:
        return {"startsAt": None, "startsInSeconds": None, "waitsFor": None}
    return {
        "startsAt": None if found.at is None else write_time(found.at),
        "startsInSeconds": found.seconds,
        "waitsFor": {
            "what": _find_what(found),
            "ends": [_write_end(one) for one in found.ends],
            "undeclared": [_write_key(one) for one in found.undeclared],
            "reason": found.reason,
            "endsTried": found.n_ends,
        },
    }


def _find_what(found: Start) -> str:
    if found.seconds is not None:
        return "ends" if found.ends else "turn"
    if found.reason in _NEVER:
        return "limit"
    if found.is_cut:
        return "more"
    if found.undeclared:
        return "undeclared"
    return "place" if found.reason == NO_PLACE else "limit"


def _write_end(one: End) -> Json:
    return _write_key(one.key) | {
        "at": write_time(one.at) if one.at else None,
        "uses": [
            {"flavor": flavor, "resource": resource, "amount": write_amount(resource, n)}
            for flavor, resource, n in one.uses
        ],
    }


def _write_key(key: str) -> Json:
    namespace, _, name = key.partition("/")
    return {"namespace": namespace, "name": name}


def say_start(answer: Json) -> str:
    """Say when a workload starts and what it waits for, in one sentence; empty for one that does not wait."""
    waits = answer["waitsFor"]
    return "" if waits is None else _SAY[waits["what"]](answer, waits)


def _say_turn(answer: Json, waits: Json) -> str:
    del waits
    if answer["state"] in {"preempts", "goes"}:
        return "as soon as those that give quota back for it have stopped"
    return "now: quota is given to it in its turn"


def _say_ends(answer: Json, waits: Json) -> str:
    said = printing.list_some([_say_end(one) for one in waits["ends"]])
    return f"{say_time(answer)}, if nobody else comes before it: it waits for {said}"


def _say_unknown(answer: Json, waits: Json) -> str:
    del answer
    them = printing.list_some([f"{one['namespace']}/{one['name']}" for one in waits["undeclared"]])
    return f"not known: no run time is declared for {them}"


def _say_more(answer: Json, waits: Json) -> str:
    del answer
    n_ends = printing.count_nouns(waits["endsTried"], "end")
    return f"not known: it does not start within the next {n_ends} of others"


def _say_no_place(answer: Json, waits: Json) -> str:
    del answer
    if not waits["endsTried"]:
        return (
            "not known: there is no place for all its pods at once, and no end of others is known"
        )
    n_ends = printing.count_nouns(waits["endsTried"], "end")
    return f"not known: after {n_ends} of others there is no place yet for all its pods at once"


def _say_limit(answer: Json, waits: Json) -> str:
    del answer
    why = f" ({waits['reason']})" if waits["reason"] else ""
    return f"not by itself: it has no quota even when all others have ended{why}"


_SAY: dict[str, Callable[[Json, Json], str]] = {
    "turn": _say_turn,
    "ends": _say_ends,
    "undeclared": _say_unknown,
    "more": _say_more,
    "place": _say_no_place,
    "limit": _say_limit,
}


def say_time(answer: Json) -> str:
    """Say when a workload starts, as a time or, where the objects have no times, from now on; a dash if it is not known."""
    if answer["startsAt"] is not None:
        return str(answer["startsAt"])
    seconds = answer["startsInSeconds"]
    return "-" if seconds is None else f"in {seconds:.0f} s"


def _say_end(one: Json) -> str:
    uses = ", ".join(f"{use['amount']} {use['resource']} ({use['flavor']})" for use in one["uses"])
    at = f" at {one['at']}" if one["at"] else ""
    return f"{uses or 'nothing'} of {one['namespace']}/{one['name']}, which ends{at}"
