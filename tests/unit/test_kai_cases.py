"""Clusters with KAI's queues: who is placed, who goes for whom, who waits. Each case is one rule of KAI's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from tests.unit.kai_worlds import (
    BUILD,
    FREE,
    INFERENCE,
    Job,
    Queue,
    decide,
    make_node,
)

Json = dict[str, Any]


class Case(NamedTuple):
    """A cluster, and what is decided: ``room`` are those that wait for others to go."""

    nodes: Mapping[str, int | Json]
    queues: Mapping[str, Queue]
    jobs: Mapping[str, Job]
    placed: frozenset[str] | set[str] = frozenset()
    gone: frozenset[str] | set[str] = frozenset()
    room: frozenset[str] | set[str] = frozenset()


def running(queue: str, n: int, node: str = "n1", **more: Any) -> dict[str, Job]:
    """Jobs of one GPU that run, the oldest first."""
    return {f"{queue}{i}": Job(queue, on=[node], age=100 - i, **more) for i in range(n)}


TWO = {"a": Queue(2), "b": Queue(2)}
TREE = {
    "east": Queue(2),
    "west": Queue(2),
    "a": Queue(1, parent="east"),
    "b": Queue(1, parent="east"),
    "c": Queue(2, parent="west"),
}

ALLOCATE = {
    "what fits is placed": Case({"n1": 2}, TWO, {"x": Job("a"), "y": Job("b")}, placed={"x", "y"}),
    "queues take turns": Case(
        {"n1": 2},
        {"a": Queue(0), "b": Queue(0)},
        {"x1": Job("a"), "x2": Job("a"), "y1": Job("b", age=1)},
        placed={"x1", "y1"},
    ),
    "a queue within its quota comes before an older job of one beyond it": Case(
        {"n1": 2},
        {"a": Queue(1), "b": Queue(1)},
        {"a0": Job("a", on=["n1"]), "x": Job("a", age=99), "y": Job("b", age=1)},
        placed={"y"},
        # One card is left for two, and x would be over the share of its queue.
    ),
    "weights divide what is over all quotas": Case(
        {"n1": 4},
        {"a": Queue(0, weight=3), "b": Queue(0, weight=1)},
        {**{f"x{i}": Job("a") for i in range(4)}, **{f"y{i}": Job("b") for i in range(4)}},
        placed={"x0", "x1", "x2", "y0"},
    ),
    "a queue of higher priority comes first beyond the quotas": Case(
        {"n1": 2},
        {"a": Queue(0), "b": Queue(0, priority=200)},
        {"x": Job("a"), "y1": Job("b"), "y2": Job("b")},
        placed={"y1", "y2"},
    ),
    "in a queue priority comes before age": Case(
        {"n1": 1}, TWO, {"old": Job("a", age=99), "high": Job("a", priority=75)}, placed={"high"}
    ),
    "in a queue of one priority the oldest is first": Case(
        {"n1": 1}, TWO, {"young": Job("a", age=1), "old": Job("a", age=9)}, placed={"old"}
    ),
    "a limit holds": Case(
        {"n1": 4}, {"a": Queue(1, limit=2)}, {f"x{i}": Job("a") for i in range(3)}, placed={"x0", "x1"}
    ),
    "without a limit nothing is allowed": Case({"n1": 4}, {"a": Queue(4, limit=0)}, {"x": Job("a")}),
    "the limit of the queue above holds too": Case(
        {"n1": 4},
        {"top": Queue(4, limit=1), "a": Queue(2, parent="top"), "b": Queue(2, parent="top")},
        {"x": Job("a"), "y": Job("b", age=1)},
        placed={"x"},
    ),
    "a limit of CPU holds": Case(
        {"n1": 0},
        {"a": Queue(cpu=(FREE, 1500))},
        {"x": Job("a", gpus=0), "y": Job("a", gpus=0, age=1)},
        placed={"x"},
    ),
    "what wants nothing of a resource is not held by it": Case(
        {"n1": 0}, {"a": Queue(0, limit=0)}, {"x": Job("a", gpus=0)}, placed={"x"}
    ),
    "what cannot be preempted stays within the quota": Case(
        {"n1": 4},
        {"a": Queue(1)},
        {"x": Job("a", priority=BUILD), "y": Job("a", priority=BUILD, age=1), "z": Job("a", age=1)},
        placed={"x", "z"},
    ),
    "what others hold of the quota does not count against it": Case(
        {"n1": 4},
        {"a": Queue(1)},
        {**running("a", 2), "x": Job("a", priority=BUILD)},
        placed={"x"},
    ),
    "the quota of the queue above holds for what cannot be preempted": Case(
        {"n1": 4},
        {"top": Queue(1), "a": Queue(4, parent="top")},
        {"x": Job("a", gpus=2, stays=True), "y": Job("a", stays=True)},
        placed={"y"},
    ),
    "a label says that a pod of low priority stays": Case(
        {"n1": 4}, {"a": Queue(0)}, {"x": Job("a", stays=True), "y": Job("a", priority=BUILD, stays=False)}, placed={"y"}
    ),
    "a group has all of its pods at once or none": Case(
        {"n1": 3}, {"a": Queue(4)}, {"x": Job("a", n=4), "y": Job("a", age=1)}, placed={"y"}
    ),
    "a group waits if its minimum is over the limit": Case(
        {"n1": 4}, {"a": Queue(2, limit=2)}, {"x": Job("a", n=3), "y": Job("a", age=1)}, placed={"y"}
    ),
    "extra pods come one by one, as far as the limit goes": Case(
        {"n1": 4}, {"a": Queue(2, limit=2)}, {"x": Job("a", n=4, least=1)}, placed={"x-0", "x-1"}
    ),
    "extra pods take turns with other queues": Case(
        {"n1": 2},
        {"a": Queue(1), "b": Queue(1)},
        {"x": Job("a", n=2, least=1), "y": Job("b", age=1)},
        placed={"x-0", "y"},
    ),
    "extra pods come after what is below its minimum": Case(
        {"n1": 2},
        {"a": Queue(2)},
        {"x": Job("a", n=2, least=1), "y": Job("a", age=1)},
        placed={"x-0", "y"},
    ),
    "no pod is in a queue that does not exist": Case({"n1": 1}, TWO, {"x": Job("c")}),
    "no pod is in a queue with queues within": Case(
        {"n1": 1}, {"a": Queue(1), "b": Queue(1, parent="a")}, {"x": Job("a")}
    ),
    "no pod is in a queue without its parent": Case({"n1": 1}, {"a": Queue(1, parent="z")}, {"x": Job("a")}),
    "pods without a queue are placed as ever": Case({"n1": 1}, TWO, {"x": Job("")}, placed={"x"}),
    "pods without a queue go to the default queue if there is one": Case(
        {"n1": 1}, {"default-queue": Queue(0, limit=0)}, {"x": Job("")}
    ),
}  # fmt: skip

RECLAIM = {
    "a queue gets its quota back": Case(
        {"n1": 4}, TWO, {**running("a", 4), "x": Job("b")}, gone={"a3"}, room={"x"}
    ),
    "each pod gets its own, until the shares are even": Case(
        {"n1": 4},
        TWO,
        {**running("a", 4), **{f"x{i}": Job("b", age=9 - i) for i in range(3)}},
        gone={"a2", "a3"},
        room={"x0", "x1"},
    ),
    "nobody takes from a queue within its share": Case(
        {"n1": 4}, {"a": Queue(4), "b": Queue(0)}, {**running("a", 4), "x": Job("b")}
    ),
    "beyond the quotas the shares decide": Case(
        {"n1": 4},
        {"a": Queue(0, weight=1), "b": Queue(0, weight=1)},
        {**running("a", 4), "x": Job("b", gpus=2)},
        gone={"a2", "a3"},
        room={"x"},
    ),
    "a queue over its share takes nothing": Case(
        {"n1": 4},
        {"a": Queue(2), "b": Queue(1, weight=0)},
        {**running("a", 3), "b0": Job("b", on=["n1"]), "x": Job("b")},
    ),
    "what cannot be preempted does not go": Case(
        {"n1": 2},
        {"a": Queue(2), "b": Queue(1)},
        {**running("a", 2, priority=BUILD), "x": Job("b")},
    ),
    "the lowest priority goes first": Case(
        {"n1": 4},
        TWO,
        {**running("a", 3), "low": Job("a", on=["n1"], priority=10, age=999), "x": Job("b")},
        gone={"low"},
        room={"x"},
    ),
    "who takes need not have a higher priority": Case(
        {"n1": 2},
        {"a": Queue(1), "b": Queue(1)},
        {**running("a", 2, priority=75), "x": Job("b", priority=1)},
        gone={"a1"},
        room={"x"},
    ),
    "the queue that is fullest loses first": Case(
        {"n1": 6},
        {"a": Queue(1, weight=0), "b": Queue(2, weight=0), "c": Queue(2, weight=0)},
        {**running("a", 3), **running("b", 3), "x": Job("c")},
        gone={"a2"},
        room={"x"},
    ),
    "only enough go": Case(
        {"n1": 4, "n2": 4},
        {"a": Queue(4), "b": Queue(4)},
        {**running("a", 4), **{f"z{i}": Job("a", on=["n2"], age=50 - i) for i in range(4)}, "x": Job("b", gpus=3)},
        gone={"z1", "z2", "z3"},
        room={"x"},
    ),
    "a group goes as a whole": Case(
        {"n1": 4}, TWO, {"g": Job("a", n=4, on=["n1"] * 4), "x": Job("b")},
        gone={"g-0", "g-1", "g-2", "g-3"}, room={"x"},
    ),
    "a group loses its extra pods first": Case(
        {"n1": 4}, TWO, {"g": Job("a", n=4, least=2, on=["n1"] * 4), "x": Job("b", gpus=2)},
        gone={"g-2", "g-3"}, room={"x"},
    ),
    "several pods take an extra pod of one group each": Case(
        {"n1": 4},
        TWO,
        {"g": Job("a", n=4, least=1, on=["n1"] * 4), **{f"x{i}": Job("b", age=9 - i) for i in range(3)}},
        gone={"g-2", "g-3"},
        room={"x0", "x1"},
    ),
    "when a group has no extra pods left, the others lose theirs": Case(
        {"n1": 6},
        {"a": Queue(2), "b": Queue(4)},
        {
            "g": Job("a", n=3, least=2, on=["n1"] * 3, age=20),
            "h": Job("a", n=3, least=2, on=["n1"] * 3),
            **{f"x{i}": Job("b", age=9 - i) for i in range(2)},
        },
        gone={"g-2", "h-2"},
        room={"x0", "x1"},
    ),
    "a group takes as much as it needs": Case(
        {"n1": 2, "n2": 2},
        TWO,
        {**running("a", 2), **{f"z{i}": Job("a", on=["n2"], age=50 - i) for i in range(2)}, "x": Job("b", n=2)},
        gone={"z0", "z1"},
        room={"x-0", "x-1"},
    ),
    "extra pods take what is theirs, too": Case(
        {"n1": 3},
        {"a": Queue(1), "b": Queue(2)},
        {**running("a", 3), "x": Job("b", n=3, least=1)},
        gone={"a2"},
        room={"x-0"},
        # The second pod has its turn when the first one is there.
    ),
    "between branches their shares decide": Case(
        {"n1": 4}, TREE, {**running("a", 2), **running("b", 2), "x": Job("c")}, gone={"b1"}, room={"x"}
    ),
    "a queue takes from one beside it before its branch is full": Case(
        {"n1": 4}, TREE, {**running("a", 2), **running("c", 2), "x": Job("b")}, gone={"a1"}, room={"x"}
    ),
    "what cannot be preempted takes no more than the quota": Case(
        {"n1": 4},
        {"a": Queue(1), "b": Queue(1)},
        {**running("a", 4), "x": Job("b", priority=BUILD), "y": Job("b", priority=BUILD, age=1)},
        gone={"a3"},
        room={"x"},
    ),
    "who has not run for long is protected": Case(
        {"n1": 2},
        {"a": Queue(1, reclaim="5m"), "b": Queue(1)},
        {**running("a", 2, ran=2), "x": Job("b")},
    ),
    "who has run for long enough is not": Case(
        {"n1": 2},
        {"a": Queue(1, reclaim="5m"), "b": Queue(1)},
        {**running("a", 2, ran=6), "x": Job("b")},
        gone={"a1"},
        room={"x"},
    ),
    "extra pods are never protected": Case(
        {"n1": 4},
        {"a": Queue(2, reclaim="5m"), "b": Queue(2)},
        {"g": Job("a", n=4, least=3, on=["n1"] * 4, ran=1), "x": Job("b")},
        gone={"g-3"},
        room={"x"},
    ),
    "the queue where the ways part protects": Case(
        {"n1": 4},
        {**TREE, "west": Queue(2, reclaim="0s"), "east": Queue(2, reclaim="1h"), "a": Queue(1, parent="east", reclaim="1s")},
        {**running("a", 4, ran=30), "x": Job("c")},
    ),
    "a queue beside it has rules of its own": Case(
        {"n1": 2},
        {**TREE, "east": Queue(2, reclaim="1h"), "a": Queue(1, parent="east", reclaim="1s")},
        {**running("a", 2, ran=30), "x": Job("b")},
        gone={"a1"},
        room={"x"},
    ),
    "no loop: whose turn would come first again does not go": Case(
        {"n1": 4},
        {"a": Queue(2, weight=2), "b": Queue(2, weight=2)},
        {
            "a0": Job("a", gpus=2, on=["n1"], age=99),
            "a1": Job("a", on=["n1"], age=98),
            "b0": Job("b", on=["n1"], age=97),
            "big": Job("b", gpus=3, age=9),
            "small": Job("b", age=8),
        },
    ),
    "memory is taken, too": Case(
        {"n1": make_node("n1", 0, memory="4G")},
        {"a": Queue(memory=(2000, FREE)), "b": Queue(memory=(2000, FREE))},
        {**running("a", 4, gpus=0, memory="1G"), "x": Job("b", gpus=0, memory="2G")},
        gone={"a2", "a3"},
        room={"x"},
    ),
    "who may not take others' place does not": Case(
        {"n1": 2, "n2": 1},
        {"a": Queue(1), "b": Queue(1)},
        {**running("a", 2), "x": Job("b")},
        placed={"x"},
    ),
}  # fmt: skip

PREEMPT = {
    "a higher priority goes first in its queue": Case(
        {"n1": 2}, {"a": Queue(2)}, {**running("a", 2), "x": Job("a", priority=75)}, gone={"a1"}, room={"x"}
    ),
    "an equal priority takes nobody's place": Case(
        {"n1": 2}, {"a": Queue(2)}, {**running("a", 2), "x": Job("a")}
    ),
    "a higher priority takes nothing from other queues": Case(
        {"n1": 2}, {"a": Queue(2), "b": Queue(0, weight=0)}, {**running("a", 2), "x": Job("b", priority=99)}
    ),
    "what cannot be preempted does not go for its own queue either": Case(
        {"n1": 1}, {"a": Queue(1)}, {"a0": Job("a", on=["n1"], stays=True), "x": Job("a", priority=99)}
    ),
    "what cannot be preempted preempts within its quota": Case(
        {"n1": 2},
        {"a": Queue(1)},
        {**running("a", 2), "x": Job("a", priority=BUILD), "y": Job("a", priority=BUILD, age=1)},
        gone={"a1"},
        room={"x"},
    ),
    "a pod at the limit takes the place of one of its own queue": Case(
        {"n1": 4}, {"a": Queue(2, limit=2)}, {**running("a", 2), "x": Job("a", priority=75)}, gone={"a1"}, room={"x"}
    ),
    "the lowest priority goes": Case(
        {"n1": 3},
        {"a": Queue(3)},
        {**running("a", 2), "low": Job("a", on=["n1"], priority=10, age=999), "x": Job("a", priority=75)},
        gone={"low"},
        room={"x"},
    ),
    "a group preempts for all of its pods": Case(
        {"n1": 3}, {"a": Queue(3)}, {**running("a", 3), "x": Job("a", n=2, priority=INFERENCE)},
        gone={"a1", "a2"}, room={"x-0", "x-1"},
    ),
    "nobody goes if that is not enough": Case(
        {"n1": 3},
        {"a": Queue(4)},
        {**running("a", 2), "stays": Job("a", on=["n1"], stays=True), "x": Job("a", n=3, priority=75)},
    ),
    "an elastic group loses an extra pod": Case(
        {"n1": 3}, {"a": Queue(3)}, {"g": Job("a", n=3, least=1, on=["n1"] * 3), "x": Job("a", priority=75)},
        gone={"g-2"}, room={"x"},
    ),
    "who has not run for long is protected": Case(
        {"n1": 2}, {"a": Queue(2, preempt="5m")}, {**running("a", 2, ran=2), "x": Job("a", priority=75)}
    ),
    "a queue above may say for how long": Case(
        {"n1": 1},
        {"top": Queue(1, preempt="5m"), "a": Queue(1, parent="top")},
        {"a0": Job("a", on=["n1"], ran=2), "x": Job("a", priority=75)},
    ),
    "the own queue may say that nobody is protected": Case(
        {"n1": 1},
        {"top": Queue(1, preempt="5m"), "a": Queue(1, parent="top", preempt="0s")},
        {"a0": Job("a", on=["n1"], ran=2), "x": Job("a", priority=75)},
        gone={"a0"},
        room={"x"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{action}: {name}")
        for action, cases in (("allocate", ALLOCATE), ("reclaim", RECLAIM), ("preempt", PREEMPT))
        for name, case in cases.items()
    ],
)
def test_a_case_is_decided_as_kai_decides_it(case: Case) -> None:
    found = decide(case.nodes, case.queues, case.jobs)
    assert (set(found.placed), found.gone, set(found.room)) == (case.placed, case.gone, case.room)
