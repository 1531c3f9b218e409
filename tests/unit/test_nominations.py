"""Room that is promised: to whom, for how long, and that it is given back."""

from typing import Any

import msgspec

from scheduler.api import names, wire
from scheduler.api.cards import CardUse, list_uses
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.engine.recorded import Recorded
from scheduler.engine.rerun import rerun
from tests import make


def engine_of(*nodes: wire.Node) -> Engine:
    engine = Engine(Config(), pace=PROMPT, is_shared=False)
    for node in nodes or (make.node(name="a", cpu=4),):
        engine.handle(events.Seen(node), 0.0)
    return engine


def nominated(name: str, to: str, **more: Any) -> wire.Pod:
    figures: dict[str, Any] = {"scheduler_name": "other", "priority": 10, "cpu": 3}
    pod = make.pod(name=name, **figures | more)
    pod.status.nominated_node_name = to
    return pod


def see(engine: Engine, *pods: wire.Pod, at: float = 0.0) -> None:
    for pod in pods:
        engine.handle(events.Seen(pod), at)


def placed(engine: Engine, at: float = 0.0) -> dict[str, str]:
    return {bind.uid: bind.node for bind in engine.decide(at, Unlimited()).binds}


def test_room_is_kept_for_whoever_is_nominated_in_the_watch() -> None:
    """As after a restart, or where an autoscaler nominates."""
    engine = engine_of()
    see(engine, nominated("high", "a"), make.pod(name="low", cpu=2), make.pod(name="tiny", cpu=1))
    assert placed(engine) == {"default/tiny": "a"}


def test_a_higher_priority_takes_what_is_promised() -> None:
    engine = engine_of()
    see(engine, nominated("high", "a"), make.pod(name="higher", cpu=2, priority=11))
    assert placed(engine) == {"default/higher": "a"}


def test_room_is_given_back_when_the_nomination_ends() -> None:
    for end in ("deleted", "cleared", "elsewhere"):
        engine = engine_of()
        see(engine, nominated("high", "a"), make.pod(name="low", cpu=2))
        assert placed(engine) == {}
        if end == "deleted":
            engine.handle(events.Gone("Pod", "default/high"), 1.0)
        elif end == "cleared":
            see(engine, nominated("high", ""), at=1.0)
        else:
            see(engine, nominated("high", "", node="elsewhere"), at=1.0)
        assert placed(engine, 1.0) == {"default/low": "a"}, end


def test_the_node_that_a_pod_is_nominated_to_is_tried_alone() -> None:
    """By a mode that would have it on the other node, as a pod alike shows."""
    engine = engine_of(make.node(name="a", cpu=4), make.node(name="b", cpu=64))
    emptiest = {names.MODE: "least-allocated"}
    mine = make.pod(name="mine", cpu=1, priority=1, annotations=emptiest)
    mine.status.nominated_node_name = "a"
    see(engine, mine, make.pod(name="other", cpu=1, annotations=emptiest))
    assert placed(engine) == {"default/mine": "a", "default/other": "b"}


def test_a_nominated_pod_goes_elsewhere_when_its_node_is_full() -> None:
    engine = engine_of(make.node(name="a", cpu=1), make.node(name="b", cpu=4))
    mine = make.pod(name="mine", cpu=2)
    mine.status.nominated_node_name = "a"
    see(engine, mine)
    assert placed(engine) == {"default/mine": "b"}
    assert not engine._cluster.nominations


def test_what_a_preemptor_leaves_behind_is_free_for_those_of_lower_priority() -> None:
    engine = engine_of()
    see(engine, make.pod(name="victim", node="a", cpu=4), make.pod(name="high", cpu=3, priority=10))
    (evict,) = engine.decide(0.0, Unlimited()).evicts
    assert (evict.node, evict.victims) == ("a", ("default/victim",))
    engine.handle(events.Seen(make.node(name="b", cpu=4)), 2.0)
    assert placed(engine, 2.0) == {"default/high": "b"}
    engine.handle(events.Gone("Pod", "default/victim"), 3.0)
    see(engine, make.pod(name="low", cpu=4), at=3.0)
    assert placed(engine, 3.0) == {"default/low": "a"}


def test_a_victim_that_stays_is_sent_away_again_later() -> None:
    """The API server refused, as it does while a webhook is down."""
    engine = engine_of()
    see(engine, make.pod(name="victim", node="a", cpu=4), make.pod(name="high", cpu=3, priority=10))
    assert engine.decide(0.0, Unlimited()).evicts
    assert not engine.decide(5.0, Unlimited()).evicts
    engine.handle(events.EvictFailed("default/victim", "a webhook is down"), 5.0)
    (again,) = engine.decide(7.0, Unlimited()).evicts
    assert again.victims == ("default/victim",)


def test_a_pod_that_waits_for_its_victims_evicts_nobody_else() -> None:
    engine = engine_of(make.node(name="a", cpu=4), make.node(name="b", cpu=4))
    for name in "ab":
        see(engine, make.pod(name=f"on-{name}", node=name, cpu=4))
    see(engine, make.pod(name="high", cpu=3, priority=10))
    (evict,) = engine.decide(0.0, Unlimited()).evicts
    # Something steers all pods: they are tried at once.
    engine._pending.retry_all(1.0)
    outcome = engine.decide(1.0, Unlimited())
    (hold,) = outcome.holds
    assert not outcome.evicts
    assert hold.attempt is not None
    assert hold.attempt.why == "not eligible due to a terminating pod on the nominated node."
    assert engine._cluster.nominations.find_node("default/high") == evict.node


def test_an_engine_that_starts_anew_knows_what_it_promised_and_its_log_runs_again() -> None:
    lines: list[bytes] = []
    engine = Recorded(Config(), "test", lines.append, pace=PROMPT)
    engine.handle(events.Seen(make.node(name="a", cpu=4)), 0.0)
    selector = wire.LabelSelector(match_labels={"app": "db"})
    engine.handle(events.Seen(make.budget("db", selector, 1)), 0.0)
    see(engine, make.pod(name="victim", node="a", cpu=4), make.pod(name="high", cpu=3, priority=10))
    assert engine.decide(0.0, Unlimited()).evicts
    first = len(lines)
    engine.start_anew(1.0)
    nominations = engine._cluster.nominations
    assert nominations.find_node("default/high") == "a"
    assert nominations.going == {"default/victim": "default/high"}
    assert len(engine._cluster.budgets) == 1
    engine.handle(events.Gone("Pod", "default/victim"), 2.0)
    assert {bind.uid for bind in engine.decide(4.0, Unlimited()).binds} == {"default/high"}
    for part in (lines[:first], lines[first:]):
        assert rerun(part).difference is None


def test_a_share_that_is_promised_is_counted_on_its_card() -> None:
    engine = engine_of(make.hami_node(name="a", cards=2, cpu=16))
    high = nominated("high", "a", gpu=1, gpumem=15000, cpu=1)
    see(
        engine, high, make.pod(name="x", gpu=1, gpumem=4000), make.pod(name="y", gpu=2, gpumem=1000)
    )
    assert placed(engine) == {"default/x": "a"}
    (held,) = [use.uuid for use in list_uses(engine._cluster.pods["default/x"].claim)]
    engine.handle(events.Gone("Pod", "default/high"), 1.0)
    see(engine, make.pod(name="z", gpu=2, gpumem=1000), at=1.0)
    assert placed(engine, 1.0).keys() == {"default/y", "default/z"}
    assert held


def test_nominations_are_remembered_within_a_bound() -> None:
    engine = engine_of()
    nominations = engine._cluster.nominations
    for i in range(20_000):
        nominations.put("u", f"n{i}", 1)
    assert len(nominations._changed) < 10_000
    assert nominations.list_since(0) is None
    assert nominations.list_since(nominations.version - 1) == {"n19999"}
    assert msgspec.json.encode(nominations.going) == b"{}"


def test_a_board_that_was_read_in_a_trial_knows_afterwards_which_cards_are_promised() -> None:
    """The node and the priority are the same in the trial: only the promised card is another one."""
    cards = [make.card(uuid=f"GPU-{i}", index=i, mib=1000) for i in range(2)]
    engine = engine_of(make.hami_node(name="n", cards=cards, cpu=64))
    figures: dict[str, Any] = {"gpu": 1, "gpumem": 1000}
    see(engine, make.pod(name="p", priority=10, **figures))
    see(engine, make.pod(name="q", annotations={names.USE_UUID: "GPU-0"}, **figures))
    cluster, cycle = engine._cluster, engine._cycle
    pod = cluster.pods["default/q"]

    def promise(uuid: str) -> None:
        cluster.nominations.put("default/p", "n", 10, make.grant(((CardUse(uuid, 1000, 0),),)))

    def fits() -> bool:
        assert cycle.get_shape(pod) is not None  # keeps a board
        return cycle.could_place(pod)

    promise("GPU-0")
    assert not fits()
    with cluster.trial():
        promise("GPU-1")
        assert fits()
    assert not fits()
    assert not cycle.schedule([pod]).binds
