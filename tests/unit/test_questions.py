"""What shells ask of the engine: a closed family, answered with data."""

import ast
import dataclasses
import importlib
import itertools
import pkgutil
import random
import typing
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import scheduler
from scheduler.api import names
from scheduler.api.door import events
from scheduler.api.door.decisions import Bind
from scheduler.api.groups.definitions import GroupKey
from scheduler.config import Config
from scheduler.devices.contract import CardDriver
from scheduler.engine import questions
from scheduler.engine.allowance import Unlimited
from scheduler.engine.answers.table import ANSWERS
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.engine.questions.auditing import (
    DevicesOn,
    EmptyNodes,
    FiguresBy,
    GroupOfPods,
    JudgedNodes,
    ReturnOf,
    SharesOf,
    TypicalPods,
    UncountedOffer,
    WrongLabels,
)  # fmt: skip
from scheduler.engine.questions.claims import CountedClaims, KnownResourceClaim
from scheduler.engine.questions.contract import Fact, Foresight, Lookup, Question
from scheduler.engine.questions.kai_queues import AllInKaiQueues, UsageOfKaiQueues, WhoGivesWay
from scheduler.engine.questions.measures import (
    ChangedNodes,
    Departures,
    Devices,
    Fragments,
    Holds,
    Instances,
    OccupiedNodes,
    Stranded,
    Totals,
    UseByNode,
)  # fmt: skip
from scheduler.engine.questions.nodes import (
    CardDrivers,
    DriverNotices,
    KnownNode,
    KnownNodes,
    NodeCounts,
    OfferedParts,
    SharedGpus,
)
from scheduler.engine.questions.pods import (
    BindObjection,
    GovernedPods,
    HowPlaced,
    KnownPod,
    KnownPods,
    MissingKeys,
    NamedPod,
    NominatedNode,
    PlacedNote,
    PodVersion,
    ToldCardsMistake,
    WhoGoverns,
)  # fmt: skip
from scheduler.engine.questions.queues import (
    ChecksToPass,
    IsObjectInUse,
    KnownQueue,
    KnownQueues,
    KnownWorkloads,
    PodsOfWorkload,
    QueuePath,
    StatusesOfKaiQueues,
    StatusesOfQueues,
    WaitersOf,
    WhyNoQuota,
)  # fmt: skip
from scheduler.engine.questions.simulating import (
    CardIndices,
    HeldCards,
    MistakesOfGroups,
    MistakesOfWaiting,
    NextDecision,
    PodsByGroup,
    SuitedNodes,
)  # fmt: skip
from scheduler.engine.questions.space_quotas import SpaceQuotaExcess, SpaceQuotaStates
from scheduler.engine.questions.volumes import KnownClaim, KnownVolume, MovedDrivers
from scheduler.engine.questions.waiting import (
    AllGroups,
    IsParked,
    LastingPlace,
    ObjectsOf,
    Queue,
    QueueCounts,
    TriedInVain,
    WaitOf,
    WaitsByNamespace,
    WhatWaits,
)  # fmt: skip
from scheduler.state.demand import DemandShape
from tests import make
from tests.model.engine_stories import Story

ROOT = Path(scheduler.__file__).parent
SHELLS = ("audit", "cli", "demo", "explain", "kube", "queues", "replay", "simulate")
# What shells may name of the state: records that never change, and their parts.
RECORDS = {"Claim", "ClaimKey", "DemandShape", "Life", "NodeFacts", "PodRecord", "TaintKey", "Volume",
           "read_claim", "read_shape"}  # fmt: skip


def all_questions() -> set[type[Question[Any]]]:
    found = set()
    for module in pkgutil.iter_modules(questions.__path__):
        names = vars(importlib.import_module(f"{questions.__name__}.{module.name}"))
        found |= {
            one
            for one in names.values()
            if isinstance(one, type)
            and issubclass(one, Question)
            and one not in {Question, Lookup, Fact, Foresight}
        }
    return found


def answer_of(question: type[Question[Any]]) -> Any:
    (base,) = question.__orig_bases__  # type: ignore[attr-defined]
    (answer,) = typing.get_args(base)
    return answer


def classes_in(answer: Any, seen: set[Any]) -> Iterator[type]:
    """All classes that an answer is made of."""
    for part in (typing.get_origin(answer) or answer, *typing.get_args(answer)):
        if part is not answer and typing.get_args(part):
            yield from classes_in(part, seen)
        elif isinstance(part, type) and part not in seen:
            seen.add(part)
            yield part
            if part.__module__.startswith("scheduler."):
                for inner in typing.get_type_hints(part).values():
                    yield from classes_in(inner, seen)


def is_frozen(one: type) -> bool:
    if one is CardDriver:
        # A driver is made once, and has nothing but what it was made with.
        return True
    if dataclasses.is_dataclass(one):
        return bool(one.__dataclass_params__.frozen)  # type: ignore[attr-defined]
    if issubclass(one, msgspec.Struct):
        return one.__struct_config__.frozen
    return issubclass(one, tuple | Enum)


def test_every_question_is_answered_and_nothing_else_is() -> None:
    assert all_questions() == set(ANSWERS)


@pytest.mark.parametrize("question", sorted(ANSWERS, key=str), ids=lambda one: one.__name__)
def test_an_answer_is_what_its_question_says(question: type[Question[Any]]) -> None:
    """mypy believes the question; nothing else compares it with who answers."""
    hints = typing.get_type_hints(ANSWERS[question])
    answer = hints.pop("return")
    assert answer == answer_of(question)
    assert list(hints.values())[1] is question


@pytest.mark.parametrize("question", sorted(ANSWERS, key=str), ids=lambda one: one.__name__)
def test_no_answer_hands_out_the_state(question: type[Question[Any]]) -> None:
    ours = (
        one
        for one in classes_in(answer_of(question), set())
        if one.__module__.startswith("scheduler.")
    )
    assert [one for one in ours if not is_frozen(one)] == []


def list_state_imports(tree: ast.AST) -> Iterator[str]:
    """What a module imports of the state: names of its modules, or modules of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("scheduler.state."):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.startswith("scheduler.state"))


def test_shells_name_records_of_the_state_and_nothing_else() -> None:
    named = {
        name
        for shell in SHELLS
        for path in (ROOT / shell).rglob("*.py")
        for name in list_state_imports(ast.parse(path.read_text(encoding="utf-8")))
    }
    # ``reading`` reads one volume, ``facts`` one node, ``read_claim`` one ResourceClaim.
    assert named == RECORDS | {"reading", "facts"}


def lived() -> Engine:
    """An engine with two nodes, a pod on one of them and one that waits."""
    engine = Engine(Config(), pace=PROMPT, is_shared=False)
    seen: list[events.Object] = [
        make.hami_node(name="a", cards=2),
        make.hami_node(name="b", cards=2),
        make.pod(name="there", uid="there", node="a", cpu=1),
        make.pod(name="waits", uid="waits", gpu=1),
    ]
    for one in seen:
        engine.handle(events.Seen(one), 0.0)
    return engine


def test_columns_of_an_answer_stay_as_they_were() -> None:
    engine = lived()
    changes = engine.ask(ChangedNodes(("cpu", "memory")))
    devices, nodes = engine.ask(Devices()), next(changes)
    holds = engine.ask(Holds())
    before = engine.ask(NextDecision(0.0))
    assert before is not None
    columns = [one for answer in (devices, holds, nodes, nodes.cards, before) for one in answer]
    arrays = [one for one in columns if isinstance(one, np.ndarray)]
    assert len(arrays) > 20
    copies, use = [one.copy() for one in arrays], engine.ask(UseByNode())
    assert [bind.uid for bind in engine.decide(0.0, Unlimited()).binds] == ["waits"]
    assert all(np.array_equal(one, copy) for one, copy in zip(arrays, copies, strict=True))
    # What is asked anew is what is there by now, of nodes that changed.
    assert engine.ask(UseByNode()) != use
    assert next(changes).rows.size == 1
    assert next(changes).rows.size == 0


def list_questions(engine: Engine, rng: random.Random) -> list[Question[Any]]:
    """Every question that changes no decision, about things that are known or unknown."""
    pods, nodes = engine.ask(KnownPods()), [*engine.ask(KnownNodes()), "nowhere"]
    uids, node = [*pods, "nobody"], rng.choice(nodes)
    uid, pod = rng.choice(uids), make.pod(name="asks", cpu=1)
    demand = {DemandShape(1000, cards=1, family=names.GPU): 1.0}
    typical = engine.ask(TypicalPods(()))
    found: list[Question[Any]] = [
        TypicalPods(()), FiguresBy(typical), JudgedNodes(), EmptyNodes(()), SharesOf(nodes[:-1]), DevicesOn(nodes[:-1]),
        GroupOfPods(),
        Departures(), Totals(), Devices(), Holds(), Instances(), Stranded(), Fragments(demand), ChangedNodes(("cpu", "memory")), UseByNode(),
        OccupiedNodes(), KnownNode(node), KnownNodes(), NodeCounts(), CardDrivers(), SharedGpus("nvidia.com/gpu"), OfferedParts(node), SpaceQuotaStates(), SpaceQuotaExcess(pod), KnownPod(uid), KnownPods(), PodVersion(uid),
        MissingKeys("Pod", uids[::2], names.SCHEDULER), NominatedNode(uid), GovernedPods(), MistakesOfWaiting(), MistakesOfGroups(), PodsByGroup(),
        SuitedNodes(pod), KnownClaim(("default", "none")), KnownResourceClaim(("default", "none")), CountedClaims(), KnownVolume("none"), MovedDrivers(node),
        KnownQueues(), KnownWorkloads(), PodsOfWorkload("default/none"), KnownQueue("none"), WhyNoQuota("default/none"), WaitersOf("none", 9), QueuePath("a/b"), ChecksToPass("q", frozenset()), IsObjectInUse("ClusterQueue", "q"), StatusesOfQueues(), StatusesOfKaiQueues(), AllInKaiQueues(), UsageOfKaiQueues(), WhoGivesWay("default/none", 9, by_common=True),
        IsParked(uid), WaitOf(uid), TriedInVain(uids), Queue(), QueueCounts(), WaitsByNamespace(),
        WhatWaits(), AllGroups(), ObjectsOf(GroupKey("PodGroup.scheduling.k8s.io", "default", "gang")),
    ]  # fmt: skip
    if uid in pods:
        found.append(LastingPlace(uid))
    if node in nodes[:-1]:
        found += [
            DriverNotices(node),
            UncountedOffer(node),
            WrongLabels(node, [*demand]),
            CardIndices(node, "hami"),
        ]
    if uid in pods:
        found += [NamedPod(uid), ToldCardsMistake(uid), WhoGoverns(uid), HeldCards(uid)]
        if pods[uid].node:
            found += [HowPlaced(uid), PlacedNote(uid, ""), ReturnOf(uid)]
            found.append(BindObjection(Bind(uid, pods[uid].node, pods[uid].claim)))
    return found


def hear_answer(answer: Any) -> None:
    """Read an answer that comes in steps, or that can be read again and again, as often as is enough for either."""
    if isinstance(answer, Iterator):
        for _ in itertools.islice(answer, 50):
            pass


@pytest.mark.parametrize("seed", range(5))
def test_questions_change_no_decision(seed: int) -> None:
    """Of two engines with the same life one is asked everything: their logs, with all decisions, are the same."""
    left_alone, asked = Story(seed), Story(seed)
    rng, put = random.Random(seed), set()
    for _ in range(60):
        left_alone.happen()
        asked.happen()
        for question in list_questions(asked.engine, rng):
            hear_answer(asked.engine.ask(question))
            put.add(type(question))
    assert asked.files == left_alone.files
    assert put == {one for one in ANSWERS if not issubclass(one, Foresight)}


def test_the_operator_puts_no_question_that_changes_decisions() -> None:
    ahead = {one.__name__ for one in ANSWERS if issubclass(one, Foresight)}
    assert ahead == {
        "BestNodesFor",
        "ExplainGroup",
        "ExplainNode",
        "ExplainPod",
        "NextDecision",
        "OutlookOf",
        "UnusedClaimDevices",
        "PlanOfMoves",
    }
    for path in (ROOT / "kube").rglob("*.py"):
        named = {
            one.id
            for one in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(one, ast.Name)
        }
        assert not named & ahead, path


def test_what_is_not_known_has_no_record() -> None:
    engine = lived()
    assert engine.ask(KnownPod("nobody")) is None
    assert engine.ask(KnownNode("nowhere")) is None
    pod, node = engine.ask(KnownPod("there")), engine.ask(KnownNode("a"))
    assert pod is not None
    assert node is not None
    assert (pod.node, node.name) == ("a", "a")
