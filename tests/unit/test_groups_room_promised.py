"""What is promised to a group while its victims leave, how they are sent away, and a search that others overtake."""

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.api.door.decisions import Nominate, Outcome
from scheduler.config import Config
from scheduler.engine.allowance import SpentAllowance, Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from tests import make


def make_engine(*nodes: wire.Node) -> Engine:
    engine = Engine(Config(), pace=PROMPT)
    for node in nodes:
        see(engine, node)
    return engine


def see(engine: Engine, *objects: events.Object, now: float = 0.0) -> None:
    for one in objects:
        engine.handle(events.Seen(one), now)


def see_group(engine: Engine, name: str, cpu: int, priority: int = 5) -> None:
    """A group of one pod, of the same name."""
    see(engine, make.pod_group(name, 1, priority=priority))
    see(engine, make.member(make.pod(name=name, cpu=cpu, priority=priority), name))


def leave(pod: wire.Pod) -> wire.Pod:
    pod.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    return pod


def list_victims(outcome: Outcome) -> list[str]:
    return sorted(uid for evict in outcome.evicts for uid in evict.victims)


def test_who_violates_a_budget_is_deleted_and_all_others_are_asked() -> None:
    """The Eviction API would refuse for ever."""
    for allowed, is_asked in ((0, False), (1, True)):
        engine = make_engine(make.node(name="n0", cpu=4))
        see(engine, make.pod(name="low", cpu=4, node="n0", labels={"app": "low"}))
        see(engine, make.budget("low", wire.LabelSelector({"app": "low"}), allowed))
        see_group(engine, "gang", 4)
        [evict] = engine.decide(0.0, Unlimited()).evicts
        assert (evict.victims, evict.is_asked) == (("default/low",), is_asked)


def test_nobody_else_goes_while_a_pod_leaves_the_node_that_is_promised() -> None:
    """A pod of another scheduler has taken the room by now; the group looks elsewhere when all have left."""
    engine = make_engine(*(make.node(name=name, cpu=4) for name in ("n0", "n1")))
    going = make.pod(name="going", cpu=2, node="n0")
    see(engine, make.pod(name="low", cpu=2, node="n0"), leave(going))
    see(engine, make.pod(name="dear", cpu=4, node="n1", priority=1))
    see_group(engine, "gang", 4)
    outcome = engine.decide(0.0, Unlimited())
    assert list_victims(outcome) == ["default/low"]
    assert Nominate("default/gang", "n0") in outcome.nominates
    engine.handle(events.EvictDone("default/low"), 1.0)
    engine.handle(events.Gone("Pod", "default/low"), 1.0)
    see(engine, make.pod(name="stranger", cpu=1, node="n0", priority=9), now=1.0)
    assert not engine.decide(60.0, Unlimited()).evicts
    engine.handle(events.Gone("Pod", "default/going"), 61.0)
    assert list_victims(engine.decide(120.0, Unlimited())) == ["default/dear"]


def test_a_group_of_higher_priority_takes_back_the_room_of_a_lower_one() -> None:
    """The lower one is told at once: until it is tried again nobody else would say so."""
    engine = make_engine(make.node(name="n0", cpu=4))
    see(engine, make.pod(name="low", cpu=4, node="n0"))
    see_group(engine, "first", 4)
    assert list_victims(engine.decide(0.0, Unlimited())) == ["default/low"]
    see_group(engine, "urgent", 4, priority=9)
    outcome = engine.decide(0.1, Unlimited())
    assert Nominate("default/urgent", "n0") in outcome.nominates
    assert Nominate("default/first", "") in outcome.nominates
    find_node = engine._cluster.nominations.find_node
    assert (find_node("default/urgent"), find_node("default/first")) == ("n0", "")


def test_who_stays_by_now_makes_the_best_place_of_a_search_in_pieces_useless() -> None:
    """Twelve racks of one node each; the pods of the second are the cheapest, until one is replaced."""
    engine = make_engine(
        *(make.node(name=f"n{i:02}", cpu=128, labels={"rack": f"r{i:02}"}) for i in range(12))
    )
    for i in range(12):
        for j in range(128):
            priority = 1 if i == 1 else 2
            see(engine, make.pod(name=f"p{i}-{j}", cpu=1, node=f"n{i:02}", priority=priority))
    see(engine, make.pod_group("gang", 1, topology="rack", priority=5))
    see(engine, make.member(make.pod(name="gang", cpu=128, priority=5)))
    for _ in range(3):
        assert not engine.decide(0.0, SpentAllowance(64, (0, 9, 1))).evicts
    engine.handle(events.Gone("Pod", "default/p1-0"), 0.0)
    see(engine, make.pod(name="stays", cpu=1, node="n01", priority=9))
    victims = list_victims(engine.decide(0.0, Unlimited()))
    assert {uid.partition("-")[0] for uid in victims} == {"default/p0"}
    assert len(victims) == 128


def test_a_port_that_a_promised_pod_needs_is_not_taken() -> None:
    """The pod that leaves has the other one of its two ports. There is CPU for all of them."""
    engine = make_engine(make.node(name="n0", cpu=8))
    low, gang, other = (make_pod_with_ports(*ports) for ports in ((80,), (80, 81), (81,)))
    low.spec.node_name = "n0"
    gang.spec.priority = 5
    see(engine, low, make.pod_group("gang", 1, priority=5), make.member(gang))
    assert list_victims(engine.decide(0.0, Unlimited())) == ["default/on-80"]
    see(engine, other)
    assert not engine.decide(0.0, Unlimited()).binds
    see(engine, make.pod(name="third", cpu=1))
    assert [bind.uid for bind in engine.decide(0.0, Unlimited()).binds] == ["default/third"]


def make_pod_with_ports(*ports: int) -> wire.Pod:
    container = make.container(cpu=1, host_ports=ports)
    return make.pod(name=f"on-{'-'.join(map(str, ports))}", containers=[container])
