"""The log of an engine with queues can be run again from any of its files, and gives the same decisions and history."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from scheduler.api.door import events
from scheduler.api.door.workload_decisions import (
    Admit,
    Deactivate,
    EvictWorkload,
    Preempt,
    SetDomains,
)
from scheduler.api.kinds import BY_KIND
from scheduler.api.queues import configuration
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.engine.log import Happened, Head, decode
from scheduler.engine.recorded import Recorded
from scheduler.engine.rerun import rerun
from tests.model.queue_stories import QueueStory
from tests.unit.small_failures import make_started
from tests.unit.test_queues_places import (
    FOUR_NODES,
    RACKS,
    make_flavor,
    make_node,
    make_queue,
)


@pytest.mark.parametrize("seed", range(6))
def test_every_file_of_the_log_gives_the_same_decisions(seed: int) -> None:
    story = QueueStory(seed)
    for _ in range(4):
        for _ in range(40):
            story.happen()
        story.files.append([])
        story.engine.start_anew(story.now)
    for _ in range(20):
        story.happen()
    kinds = {type(one) for one in story.outcomes}
    # Where one waits for the pods of another, hardly anybody has quota.
    assert {Admit, EvictWorkload} <= kinds
    assert {Preempt, Deactivate} <= kinds or story.blocks
    for lines in story.files:
        report = rerun(lines)
        assert report.difference is None
        assert report.n_decided > 10


@pytest.mark.parametrize("seed", range(4))
def test_a_fresh_start_keeps_quota_and_history_to_the_last_digit(seed: int) -> None:
    story = QueueStory(seed)
    for _ in range(60):
        story.happen()
    tenants = story.engine._queues.tenants
    held = {
        key: (work.queue, work.is_assumed, work.is_going) for key, work in tenants.works.items()
    }
    under_way, due = set(tenants.stops.under_way), tenants.stops.find_due()
    amounts = {
        queue: dict(tenants.directory.forest.list_held(queue))
        for queue in tenants.directory.forest.queues
    }
    given = {key: (work.given, work.is_owed) for key, work in tenants.works.items()}
    # In the first story nobody has given way by now.
    assert seed == 0 or any(one for one, _ in given.values())
    history = tenants.history.list_known()
    assert any(one["consumed"] for one in history.values())
    story.files.append([])
    story.engine.start_anew(story.now)
    after = story.engine._queues.tenants
    assert after is not tenants
    assert (after.stops.under_way, after.stops.find_due()) == (under_way, due)
    assert {
        key: (work.queue, work.is_assumed, work.is_going) for key, work in after.works.items()
    } == held
    assert amounts == {
        queue: dict(after.directory.forest.list_held(queue))
        for queue in after.directory.forest.queues
    }
    assert {key: (work.given, work.is_owed) for key, work in after.works.items()} == given
    assert after.history.list_known() == history
    # A log that is run again knows the same.
    again: Engine | None = None
    for line in map(decode, story.files[-1]):
        if isinstance(line, Head):
            again = Engine(line.config)
        elif isinstance(line, Happened) and again is not None:
            again.handle(line.event, line.at)
    assert again is not None
    assert again._queues.tenants.history.list_known() == history


def test_failures_of_nodes_are_the_same_in_a_re_run() -> None:
    files: list[list[bytes]] = [[]]
    settings = configuration.read_settings({"kueue": True})
    now, found = 1_800_000_000.0, []

    def write(line: bytes) -> None:
        files[-1].append(line)

    engine = Recorded(Config(queues=settings), "test", write)

    def see(body: dict[str, Any]) -> None:
        kind = next(one for one in BY_KIND[body["kind"]] if one.group in body["apiVersion"])
        engine.handle(events.Seen(msgspec.convert({**body, "kind": kind.name}, kind.shape)), now)

    gang = make_started("n0", "n1", request={"required": "rack"})
    nodes = [*FOUR_NODES, make_node("n4", "r0")]
    queue = make_queue("a", {"gpus": 100})
    for body in (*nodes, RACKS, make_flavor("gpus", "gpu", "racks"), *queue, *gang):
        see(body)
    for node, uid in (("n1", "uid-gang-1"), ("n4", ""), ("n0", "uid-gang-0")):
        engine.handle(events.Gone("Node", node), now)
        if uid:
            engine.handle(events.Gone("Pod", uid), now)
        for _ in range(3):
            now += 10.0
            found += engine.decide(now, Unlimited()).quotas
        files.append([])
        engine.start_anew(now)
    assert {SetDomains, EvictWorkload} <= {type(one) for one in found}
    for lines in files[:-1]:
        report = rerun(lines)
        assert report.difference is None
        assert report.n_decided > 1
