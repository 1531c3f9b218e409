"""Plans of moves against brute force on tiny clusters: each move as a fresh engine makes it, counted from objects."""

import io
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.plan.command import Request, plan_defrag
from scheduler.simulate.reading.gathering import Live
from tests import make, slices
from tests.oracles import defrag
from tests.oracles.defrag import World

Json = dict[str, Any]
STARTED, WAITS, NOW = "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", 1_775_000_000
MIB = 1000
MODES = (Mode.BEST_FIT, Mode.KEEL, Mode.GPU_PACKING, Mode.LEAST_ALLOCATED)


def configure(mode: Mode) -> Config:
    return Config(placement=Placement(mode=mode))


def owned(name: str, kind: str = "ReplicaSet", **asked: Any) -> Json:
    body = make.raw(make.pod(name=name, uid=name, **asked))
    body["metadata"]["creationTimestamp"] = STARTED
    body["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": True}
    ]  # fmt: skip
    return body


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Few cards, some of which pods share; sometimes somebody waits."""
    nodes = {}
    free: dict[tuple[str, str], int] = {}
    for i in range(draw(st.integers(1, 3))):
        name, n = f"n{i}", draw(st.integers(1, 3))
        cards = [make.card(uuid=f"{name}-{k}", index=k, mib=MIB, sharers=4) for k in range(n)]
        nodes[name] = make.raw(make.hami_node(name=name, cards=cards, cpu=6))
        free |= {(name, f"{name}-{k}"): MIB for k in range(n)}
    pods = {}
    for i in range(draw(st.integers(1, 5))):
        mib = draw(st.sampled_from((250, 300, 500, 700, MIB)))
        seats = sorted(seat for seat, left in free.items() if left >= mib)
        if not seats:
            continue
        node, card = draw(st.sampled_from(seats))
        free[node, card] -= mib
        name = f"p{i}"
        kind = draw(st.sampled_from(("ReplicaSet", "StatefulSet")))
        body = owned(name, kind, node=node, cpu=1, gpu=1, gpumem=mib, gpucores=10)
        body["metadata"]["annotations"] = {
            "hami.io/vgpu-node": node,
            "hami.io/vgpu-devices-allocated": f"{card},NVIDIA,{mib},10:;",
        }
        body["status"] = {"phase": "Running", "startTime": STARTED}
        pods[name] = body
    for i in range(draw(st.integers(0, 2))):
        n_cards, mib = draw(st.sampled_from(((1, MIB), (1, 700), (2, MIB), (1, 300))))
        name = f"w{i}"
        body = make.raw(make.pod(name=name, uid=name, cpu=1, gpu=n_cards, gpumem=mib, gpucores=90))
        body["metadata"]["creationTimestamp"] = WAITS
        pods[name] = body
    return World(nodes, pods)


def plan(world: World, config: Config, **more: Any) -> Json:
    request = Request(config=config, now=NOW, **more)
    live = Live(world.list_objects())
    found: Json = plan_defrag(request, live, io.StringIO(), lambda *_: None).printed
    return found


def settle(world: World, config: Config) -> World:
    """Let those come who fit without any move, as the scheduler would."""
    waiting = [name for name, pod in world.pods.items() if "nodeName" not in pod["spec"]]
    if not waiting:
        return world
    # The last one leaves nothing, and comes again as it was.
    stub = owned("zz-stub", "StatefulSet", node="none", cpu=0)
    went = defrag.move(World(world.nodes, {**world.pods, "zz-stub": stub}), "zz-stub", config)
    return World(world.nodes, {key: one for key, one in went.world.pods.items() if key in world.pods})  # fmt: skip


def seat_of(printed: Json) -> tuple[str, tuple[str, ...]]:
    return printed["node"], tuple(sorted(card["id"] for card in printed["cards"]))


@given(worlds(), st.sampled_from(MODES))
@settings(max_examples=slices.count_examples(600))
def test_a_plan_comes_about_as_it_says_and_no_prefix_of_it_loses_anything(
    world: World, mode: Mode
) -> None:
    config = configure(mode)
    found, at = plan(world, config), settle(world, config)
    before = at
    moved: set[str] = set()
    for bundle in found["bundles"]:
        begin, came = defrag.count(at), list[str]()
        for move in bundle["moves"]:
            name = move["pod"]["name"]
            assert name not in moved
            moved.add(name)
            assert seat_of(move["from"]) == defrag.find_seat(at.pods[name])
            went = defrag.move(at, name, config)
            assert seat_of(move["to"]) == went.seat
            assert {one["pod"]["name"]: seat_of(one["to"]) for one in move["letsIn"]} == went.came
            at, came = went.world, [*came, *went.came]
            now = defrag.count(defrag.without(at, came))
            assert now.is_no_worse_than(begin)
        assert now.whole + len(came) > begin.whole
    first, last = defrag.count(before), defrag.count(at)
    totals = found["totals"]
    assert (totals["before"]["wholeCards"], totals["before"]["idleNodes"]) == first[:2]
    assert (totals["after"]["wholeCards"], totals["after"]["idleNodes"]) == last[:2]


@given(worlds(), st.sampled_from(MODES))
@settings(max_examples=slices.count_examples(300))
def test_where_one_move_gains_something_there_is_a_plan(world: World, mode: Mode) -> None:
    config = configure(mode)
    at = settle(world, config)
    movable = [name for name in world.pods if name.startswith("p")]
    for names in defrag.list_gains(at, movable, config, 1):
        found = plan(world, config)
        assert found["bundles"], names
        assert len(plan(world, config, most=1)["bundles"]) == 1
        return
