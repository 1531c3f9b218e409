"""KAI's queues as time goes by: figures stay right, no limit is exceeded, and the log gives the same decisions again."""

from __future__ import annotations

import pytest

from scheduler.api.door.decisions import Outcome
from scheduler.api.queues.kai import CARD, NOTHING, UNLIMITED, KaiQueue
from scheduler.engine.allowance import Allowance
from scheduler.engine.questions.kai_queues import AllInKaiQueues, WhoGivesWay
from scheduler.engine.rerun import rerun
from scheduler.state import checks
from scheduler.tenancy.kai.accounts import Accounts
from scheduler.tenancy.kai.tree import Figures, Tree
from scheduler.tenancy.kai.usage import Usage
from tests.model.kai_stories import KaiStory
from tests.slices import pick_part


def check_figures(story: KaiStory) -> None:
    """The figures of all queues are those that are found by counting everything anew."""
    known = story.engine._kai.accounts
    fresh = Accounts(story.engine._cluster, Tree(1.0), Usage(0.0))
    for queue in known.tree.queues.values():
        fresh.tree.put(queue.defined)
    fresh.settle()
    fresh.recount()
    for accounts in (known, fresh):
        accounts.settle()
        accounts.tree.settle()
    assert known.total == fresh.total
    assert known.tree.make_mark() == fresh.tree.make_mark()
    for name, queue in known.tree.queues.items():
        assert queue.figures == fresh.tree.queues[name].figures


@pytest.mark.parametrize("seed", pick_part(range(60)))
def test_figures_are_right_whatever_happens(seed: int) -> None:
    story = KaiStory(seed)
    for _ in range(80):
        story.happen()
        check_figures(story)
        checks.verify(story.engine._cluster)


@pytest.mark.parametrize("seed", pick_part(range(60)))
def test_no_decision_lets_a_queue_exceed_its_limit(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A queue may have more as its limit was lowered, or as pods came to it; no decision gives it more."""
    story = KaiStory(seed)
    decide = story.engine.decide

    def watch(now: float, allowance: Allowance) -> Outcome:
        before = read_held(story)
        outcome = decide(now, allowance)
        after = read_held(story)
        for name, queue in story.engine._kai.accounts.tree.queues.items():
            for i, most in enumerate(queue.defined.limit):
                assert most == UNLIMITED or after[name][i] <= max(most, before[name][i])
        return outcome

    monkeypatch.setattr(story.engine, "decide", watch)
    for _ in range(80):
        story.happen()


def read_held(story: KaiStory) -> dict[str, tuple[int, int, int]]:
    """What each queue holds."""
    accounts = story.engine._kai.accounts
    accounts.settle()
    accounts.tree.settle()
    return {name: one.figures.allocated for name, one in accounts.tree.queues.items()}


@pytest.mark.parametrize("seed", range(6))
def test_every_file_of_the_log_gives_the_same_decisions(seed: int) -> None:
    story = KaiStory(seed, **({"usage": True} if seed % 2 else {}))
    for _ in range(4):
        for _ in range(40):
            story.happen()
        story.files.append([])
        story.engine.start_anew(story.now)
    for _ in range(20):
        story.happen()
    assert any(one.evicts for one in story.outcomes)
    assert any(one.binds for one in story.outcomes)
    for lines in story.files:
        report = rerun(lines)
        assert report.difference is None
        assert report.n_decided > 10


def test_what_was_used_counts_less_as_time_goes_by() -> None:
    tree, usage = Tree(1.0), Usage(3600.0)
    tree.put(KaiQueue("a"))
    tree.settle()
    total = (1000, 1000, 4 * CARD)
    usage.sample(tree, total, 0.0)
    assert usage.find_parts() == {}
    held = Figures((500, 0, CARD), NOTHING, NOTHING)
    tree.add("a", held, 1)
    usage.sample(tree, total, 0.0)
    usage.sample(tree, total, 7200.0)
    assert usage.find_parts()["a"] == pytest.approx((0.5, 0.0, 0.25))
    tree.add("a", held, -1)
    usage.sample(tree, total, 7200.0)
    usage.sample(tree, total, 10800.0)
    # Three quarters of the weight are in the first two hours, of which half is left; the rest is an hour of nothing.
    assert usage.find_parts()["a"] == pytest.approx(
        (0.5 * 0.375 / 0.875, 0.0, 0.25 * 0.375 / 0.875)
    )
    again = Usage(3600.0)
    again.take_over(usage.list_known() or {})
    assert again.find_parts() == usage.find_parts()


def test_usage_that_does_not_count_is_not_kept() -> None:
    tree, usage = Tree(1.0), Usage(0.0)
    tree.put(KaiQueue("a"))
    usage.sample(tree, (1, 1, 1), 5.0)
    assert usage.list_known() is None


def test_a_queue_that_has_used_much_gets_less() -> None:
    """Two queues of one weight: who had all cards lately has its turn later."""
    tree = Tree(1.0)
    for queue in ("a", "b"):
        tree.put(KaiQueue(queue, limit=(UNLIMITED,) * 3, weights=(0.0, 0.0, 1.0)))
        tree.add(queue, Figures(requested=(0, 0, 100 * CARD)), 1)
    tree.share_out((0, 0, 8 * CARD), {})
    assert [tree.queues[name].fair[2] for name in ("a", "b")] == [4 * CARD, 4 * CARD]
    tree.share_out((0, 0, 8 * CARD), {"a": (0.0, 0.0, 1.0)})
    # A weighs 0.5 + (0.5 - 1) = 0, B 0.5 + 0.5 = 1.
    assert [tree.queues[name].fair[2] for name in ("a", "b")] == [0.0, 8 * CARD]


@pytest.mark.parametrize("seed", pick_part(range(30)))
def test_nothing_in_queues_is_decided_while_another_scheduler_decides(seed: int) -> None:
    story, n_held = KaiStory(seed), 0
    for _ in range(120):
        story.happen()
        accounts = story.engine._kai.accounts
        assert accounts.rival == story.rival
        if not story.rival:
            continue
        n_held += 1
        outcome = story.outcomes[-1]
        for uid in [bind.uid for bind in outcome.binds] + [one.makes_room_for for one in outcome.evicts]:  # fmt: skip
            pod = story.engine._cluster.pods.get(uid)
            assert pod is None or not accounts.is_queued(pod)
    assert n_held


@pytest.mark.parametrize("seed", range(3))
def test_questions_about_queues_change_no_decision(seed: int) -> None:
    left_alone, asked = KaiStory(seed), KaiStory(seed)
    n_givers = 0
    for _ in range(80):
        left_alone.happen()
        asked.happen()
        for one in asked.engine.ask(AllInKaiQueues()):
            found = asked.engine.ask(WhoGivesWay(one.key, 5, by_common=True))
            n_givers += 0 if found is None else len(found.givers)
            assert one.is_waiting or one.amounts != (0, 0, 0)
    # The answers form groups, which the log has as a line of its own.
    assert asked.outcomes == left_alone.outcomes
    assert n_givers
