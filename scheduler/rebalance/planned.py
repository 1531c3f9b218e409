"""A plan as the status of a policy has it: what it comes to, and its moves, in lines that people read."""

from __future__ import annotations

from typing import Any

from scheduler.api.limits import shorten
from scheduler.plan import words
from scheduler.plan.making import PlanAnswer

Json = dict[str, Any]
# The most moves that are written.
_MOVES_MAX = 20
# The most bytes of a line: a move may let a group in that has any number of pods, and an object has a largest size.
_LINE_MAX = 1024


def write_planned(made: PlanAnswer) -> Json:
    """Write a plan for a status."""
    moves = [move for bundle in made.printed["bundles"] for move in bundle["moves"]]
    freed = [one["what"] for move in moves for one in move["frees"]]
    return {
        "moves": len(moves),
        "freesCards": sum(what != "node" for what in freed),
        "freesNodes": freed.count("node"),
        "letsIn": sum(len(move["letsIn"]) for move in moves),
        "movablePods": made.printed["movable"],
        "steps": [_describe_move(move) for move in moves[:_MOVES_MAX]],
    }


def _describe_move(move: Json) -> str:
    """Describe a move and what comes of it in one line."""
    freed = [f"frees {text}" for text in words.list_freed(move)]
    let_in = (f"lets in {text}" for text in words.list_let_in(move))
    return shorten("; ".join((words.name_move(move), *freed, *let_in)), _LINE_MAX)
