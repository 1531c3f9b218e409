"""The log of an engine with queues can be run again from any of its files, and gives the same decisions and history."""

from __future__ import annotations

import pytest

from scheduler.api.door.workload_decisions import Admit, Deactivate, EvictWorkload, Preempt
from scheduler.engine.engine import Engine
from scheduler.engine.log import Happened, Head, decode
from scheduler.engine.rerun import rerun
from tests.model.queue_stories import QueueStory


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
