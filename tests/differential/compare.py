"""What two answers to one pod have in common, and what not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.differential.answers import Answer


class Difference(NamedTuple):
    """One thing that is not the same.

    Attributes:
        what: feasible, message, nominated, victims, choice, or the plugin whose scores differ.
        theirs: what kube-scheduler says.
        ours: what Evenkeel says.
    """

    what: str
    theirs: object
    ours: object


def differences(theirs: Answer, ours: Answer) -> list[Difference]:
    """All that is not the same."""
    return [*_found(theirs, ours)]


def _found(theirs: Answer, ours: Answer) -> Iterator[Difference]:
    if theirs.feasible != ours.feasible:
        yield Difference("feasible", sorted(theirs.feasible), sorted(ours.feasible))
        return  # scores are relative to what is feasible
    for what in ("message", "nominated"):
        if getattr(theirs, what) != getattr(ours, what):
            yield Difference(what, getattr(theirs, what), getattr(ours, what))
    if theirs.victims != ours.victims:
        yield Difference("victims", sorted(theirs.victims), sorted(ours.victims))
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
