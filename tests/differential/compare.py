"""What two answers to one pod have in common, and what not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tests.differential.answers import Answer

Json = dict[str, Any]
# Of an attempt, and of the search for pods that could go.
_ERRORS = re.compile(r"error: |.* preemption: \[?running ")


class Difference(NamedTuple):
    """One thing that is not the same.

    Attributes:
        what: error, feasible, message, nominated, victims, allocation, choice, or the plugin whose scores differ.
        theirs: what kube-scheduler says.
        ours: what Evenkeel says.
    """

    what: str
    theirs: object
    ours: object


class Known(NamedTuple):
    """A difference that stays.

    Attributes:
        title: what is different and why, in a line.
        holds: whether a difference in a case of these objects, the pod last, is of this kind.
    """

    title: str
    holds: Callable[[Difference, Sequence[Json]], bool]


def differences(theirs: Answer, ours: Answer) -> list[Difference]:
    """All that is not the same."""
    return [*_found(theirs, ours)]


def _found(theirs: Answer, ours: Answer) -> Iterator[Difference]:
    if theirs.is_gated:
        if f" nodes are available: {theirs.message}." not in ours.message:
            yield Difference("message", theirs.message, ours.message)
    elif _ERRORS.match(theirs.message) and theirs.message != ours.message:
        yield Difference("error", theirs.message, ours.message or sorted(ours.feasible))
    else:
        yield from _list_all(theirs, ours)


def _list_all(theirs: Answer, ours: Answer) -> Iterator[Difference]:
    if theirs.feasible != ours.feasible:
        yield Difference("feasible", sorted(theirs.feasible), sorted(ours.feasible))
        return  # scores are relative to what is feasible
    for what in ("message", "nominated"):
        if getattr(theirs, what) != getattr(ours, what):
            yield Difference(what, getattr(theirs, what), getattr(ours, what))
    if theirs.victims != ours.victims:
        yield Difference("victims", sorted(theirs.victims), sorted(ours.victims))
    if theirs.allocations != ours.allocations:
        yield Difference("allocation", theirs.allocations, ours.allocations)
    for plugin in sorted(_plugins(theirs) | _plugins(ours)):
        points = [_of(one, plugin, theirs.scores) for one in (theirs, ours)]
        if points[0] != points[1]:
            yield Difference(plugin, *points)
    # Of the best they take any, and we the first by name.
    best = {node for node in ours.feasible if ours.total(node) == _most(ours)}
    for whose, answer in (("kube-scheduler's choice", theirs), ("choice", ours)):
        if answer.node is not None and answer.node not in best:
            yield Difference(whose, answer.node, sorted(best))


def _most(answer: Answer) -> int:
    return max(map(answer.total, answer.feasible), default=0)


def _plugins(answer: Answer) -> set[str]:
    return {plugin for scores in answer.scores.values() for plugin in scores}


def _of(answer: Answer, plugin: str, nodes: object) -> dict[str, int]:
    return {
        node: answer.scores[node][plugin]
        for node in sorted(nodes)  # type: ignore[call-overload]
        if answer.scores[node].get(plugin)
    }
