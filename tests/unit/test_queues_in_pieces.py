"""Who gets quota is decided in pieces: what a few rounds of queues bring is carried out before the next ones."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from scheduler.api.door import events
from scheduler.api.door.decisions import Outcome
from scheduler.api.door.workload_decisions import Admit, Preempt, QuotaDecision
from scheduler.api.kinds import BY_KIND
from scheduler.api.queues import configuration
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.engine.recorded import Recorded
from scheduler.engine.rerun import rerun
from tests import make
from tests.model import queue_stories
from tests.model.queue_stories import QueueStory, allow_rounds
from tests.oracles.kueue import cases
from tests.unit.pausing import decide_one_step

NOW = 1_800_000_000.0
# Those of ``make_world``: the cohorts, and how many queues each has.
COHORTS = {"x": 3, "y": 2, "wide": 40}
N_WORKLOADS = 4
Json = dict[str, Any]


def one_round(engine: Engine) -> Outcome:
    return engine.decide(NOW, allow_rounds(1))


def one_step(engine: Engine) -> Outcome:
    """Each call pauses as soon as it may, so that the next one goes on from there."""
    outcome = decide_one_step(engine, NOW)
    while engine.is_deciding:
        assert not outcome.quotas
        outcome = decide_one_step(engine, NOW)
    return outcome


WAYS = {"one round a call": one_round, "one step a call": one_step}


def see(engine: Engine, body: Json) -> None:
    kind = next(one for one in BY_KIND[body["kind"]] if one.group in body["apiVersion"])
    found = msgspec.convert({**body, "kind": kind.name}, kind.shape)
    engine.handle(events.Seen(found), NOW)


def make_queue(name: str, cohort: str, cpu: int, **more: Any) -> Json:
    return {name: {"cohort": cohort, "quotas": [{"fast": {"cpu": cpu}}], **more}}


def make_engine(
    queues: Json, workloads: Json, write: Callable[[bytes], None] | None = None
) -> Engine:
    config = Config(queues=configuration.read_settings({"kueue": True}))
    engine = Recorded(config, "test", write or (lambda _: None))
    for body in cases.make_objects({"queues": queues, "workloads": workloads}):
        see(engine, body)
    return engine


def make_world(write: Callable[[bytes], None] | None = None) -> Engine:
    """Three trees; in each queue four wait, and there is quota for three of them."""
    queues: Json = {}
    workloads: Json = {}
    for cohort, n in COHORTS.items():
        for i in range(n):
            name = f"{cohort}-{i}"
            queues |= make_queue(name, cohort, 3)
            workloads |= {
                f"team/{name}-{k}": {"in": name, "asks": {"cpu": 1}, "created": k}
                for k in range(N_WORKLOADS)
            }
    return make_engine(queues, workloads, write)


def list_pieces(engine: Engine, decide: Callable[[Engine], Outcome]) -> Iterator[Outcome]:
    """Decide until nothing is due any more."""
    for _ in range(1000):
        if engine.find_due(NOW) > NOW:
            return
        yield decide(engine)
    raise AssertionError("this has no end")


def list_of_tree(quotas: list[QuotaDecision], cohort: str) -> list[QuotaDecision]:
    return [one for one in quotas if one.key.startswith(f"team/{cohort}-")]


def list_admitted(quotas: list[QuotaDecision]) -> list[str]:
    return [one.key for one in quotas if isinstance(one, Admit)]


@pytest.mark.parametrize("way", WAYS)
def test_the_first_rounds_are_carried_out_before_the_last_ones_are_decided(way: str) -> None:
    whole = list(make_world().decide(NOW, Unlimited()).quotas)
    pieces = [list(one.quotas) for one in list_pieces(make_world(), WAYS[way])]
    with_quota = [one for one in map(list_admitted, pieces) if one]
    assert len(with_quota) > 5
    # One round has at most the first one of each queue of a tree.
    assert max(map(len, with_quota)) <= COHORTS["wide"]
    together = [one for piece in pieces for one in piece]
    assert len(list_admitted(together)) == 3 * sum(COHORTS.values())
    for cohort in COHORTS:
        assert list_of_tree(together, cohort) == list_of_tree(whole, cohort)


@pytest.mark.parametrize("way", WAYS)
def test_each_tree_has_its_turn_though_another_one_has_much_to_decide(way: str) -> None:
    pieces = list_pieces(make_world(), WAYS[way])
    first = {
        next(iter(list_admitted(list(one.quotas)))).split("-")[0]
        for one in itertools.islice(pieces, 3)
    }
    assert first == {f"team/{cohort}" for cohort in COHORTS}


@pytest.mark.parametrize("way", WAYS)
def test_pods_without_queue_have_their_turn_between_the_rounds(way: str) -> None:
    engine = make_world()
    engine.handle(events.Seen(make.node(name="n", cpu=8)), NOW)
    engine.handle(events.Seen(make.pod(name="first", cpu=1)), NOW)
    pieces = list_pieces(engine, WAYS[way])
    outcome = next(pieces)
    assert [bind.uid for bind in outcome.binds] == ["default/first"]
    engine.handle(events.Seen(make.pod(name="later", cpu=1)), NOW)
    outcome = next(pieces)
    assert [bind.uid for bind in outcome.binds] == ["default/later"]
    assert list_admitted(list(outcome.quotas))
    assert sum(bool(list_admitted(list(one.quotas))) for one in pieces) > 3


@pytest.mark.parametrize("way", WAYS)
def test_a_log_gives_the_pieces_again(way: str) -> None:
    lines: list[bytes] = []
    engine = make_world(lines.append)
    for i, _ in enumerate(list_pieces(engine, WAYS[way])):
        if i < 5:
            key = f"team/late-{i}"
            see(engine, cases.make_workload(key, {"in": "wide-7", "asks": {"cpu": 1}, "uid": key}))
    report = rerun(lines)
    assert report.difference is None
    assert report.n_decided > 5


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(8))
def test_pieces_of_a_tree_are_the_same_decisions_as_at_once(way: str, seed: int) -> None:
    """With flavors, lending, strict queues and evictions, as long as nothing happens between the pieces."""

    def make_tree() -> Engine:
        rng = random.Random(seed)
        has = {"fast": {"cpu": "fast"}, "slow": {"cpu": "slow"}}
        workloads: Json = {}
        for i in range(40):
            queue = rng.choice(sorted(queue_stories.QUEUES))
            one: Json = {
                "in": queue,
                "asks": {"cpu": rng.choice([1, 2, 5])},
                "priority": rng.randrange(3),
                "created": i,
                "uid": f"u{i}",
            }
            if i < 5:
                flavor = "slow" if queue == "c" else "fast"
                one |= {"has": {"main": has[flavor]}, "priority": 0}
            workloads[f"team/w{i}"] = one
        fields = {
            "cohorts": queue_stories.COHORTS,
            "queues": queue_stories.QUEUES,
            "workloads": workloads,
        }
        engine = Engine(Config(queues=configuration.read_settings({"kueue": True})))
        for body in cases.make_objects(fields):
            see(engine, body)
        return engine

    whole = list(make_tree().decide(NOW, Unlimited()).quotas)
    pieces = [list(one.quotas) for one in list_pieces(make_tree(), WAYS[way])]
    assert [one for piece in pieces for one in piece] == whole
    assert sum(map(bool, pieces)) > 1
    assert any(isinstance(one, Admit | Preempt) for one in whole)


def test_whoever_stands_behind_is_tried_though_somebody_ends_all_the_time() -> None:
    """With each end those are tried again who stand before, and none of these fits."""
    n_before = 30
    queues = make_queue("line", "c", 10) | make_queue("beside", "c", 200)
    workloads: Json = {
        f"team/before-{i}": {"in": "line", "asks": {"cpu": 1000 + i}, "priority": 1, "uid": f"b{i}"}
        for i in range(n_before)
    }
    workloads["team/behind"] = {"in": "line", "asks": {"cpu": 1}, "uid": "behind"}
    workloads |= {
        f"team/runs-{i}": {
            "in": "beside",
            "asks": {"cpu": 1},
            "uid": f"r{i}",
            "has": {"main": {"cpu": "fast"}},
        }
        for i in range(150)
    }
    engine = make_engine(queues, workloads)
    admitted: list[str] = []
    for i in range(150):
        admitted += list_admitted(list(one_round(engine).quotas))
        engine.handle(events.Gone("Workload", f"team/runs-{i}"), NOW)
        if admitted:
            break
    assert admitted == ["team/behind"]


def test_a_queue_that_changes_between_pieces_is_dealt_with_as_it_is_then() -> None:
    engine = make_world()
    assert len(list_admitted(list(one_round(engine).quotas))) == COHORTS["x"]
    [queue] = [
        one
        for one in cases.make_objects({"queues": make_queue("wide-0", "wide", 0, stop="Hold")})
        if one["kind"] == "ClusterQueue"
    ]
    see(engine, queue)
    admitted = [
        key for one in list_pieces(engine, one_round) for key in list_admitted(list(one.quotas))
    ]
    assert len(admitted) == len(set(admitted))
    assert not [key for key in admitted if key.startswith("team/wide-0-")]
    assert sum(key.startswith("team/wide-") for key in admitted) == 3 * (COHORTS["wide"] - 1)


@pytest.mark.parametrize("seed", range(6))
def test_a_story_in_pieces_ends_and_can_be_run_again(seed: int) -> None:
    """Things happen while a tree is left for later; quota is given to nobody who has it, and is given out in the end."""
    story = QueueStory(seed, in_pieces=True)
    for _ in range(3):
        for _ in range(50):
            story.happen()
        assert story.settle(400) < 400
        story.files.append([])
        story.engine.start_anew(story.now)
    assert story.settle(400) < 400
    assert story.n_left > 30
    for lines in story.files[:3]:
        report = rerun(lines)
        assert report.difference is None
        assert report.n_decided > 10


@pytest.mark.parametrize("is_disturbed", [False, True])
def test_a_tree_that_is_made_anew_between_two_pieces_is_dealt_with(is_disturbed: bool) -> None:
    """A workload has quota in a flavor that no quota names any more: the tree gets a column for it."""
    queues: dict[str, Any] = {}
    workloads: dict[str, Any] = {}
    for i in range(3):
        queues |= make_queue(f"x-{i}", "x", 8)
        for k in range(6):
            one = {"in": f"x-{i}", "asks": {"cpu": 1}, "created": k, "uid": f"u{i}{k}"}
            workloads[f"team/x-{i}-{k}"] = one
    engine = make_engine(queues, workloads)
    n = len(list_admitted(list(one_round(engine).quotas)))
    assert n < 18
    if is_disturbed:
        strange = {"in": "x-0", "asks": {"cpu": 1}, "uid": "s", "has": {"main": {"cpu": "gone"}}}
        see(engine, cases.make_workload("team/strange", strange))
    for _ in range(200):
        if engine.find_due(NOW) > NOW:
            break
        n += len(list_admitted(list(one_round(engine).quotas)))
    assert n == 18


def test_a_stopped_queue_lends_nothing_after_its_tree_was_made_anew() -> None:
    queues = make_queue("a", "x", 8) | make_queue("b", "x", 8, stop="Hold")
    engine = make_engine(queues, {})
    engine.decide(NOW, Unlimited())
    strange = {"in": "a", "asks": {"cpu": 1}, "uid": "s", "has": {"main": {"cpu": "gone"}}}
    see(engine, cases.make_workload("team/strange", strange))
    engine.decide(NOW, Unlimited())
    big = {"in": "a", "asks": {"cpu": 12}, "uid": "big"}
    see(engine, cases.make_workload("team/big", big))
    assert not list_admitted(list(engine.decide(NOW, Unlimited()).quotas))
