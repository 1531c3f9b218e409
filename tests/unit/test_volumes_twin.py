"""Rules about storage against their twin: random clusters, in any order of news, kept up and made anew."""

import copy
from collections.abc import Collection
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import storage, wire
from scheduler.api.kube_plugins import KubePlugins, VolumeBinding
from scheduler.api.placement import Placement
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.plugins.volumes.refusals import BINDING, LIMITS, RESTRICTIONS, ZONE
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from scheduler.telling import verdicts
from tests import make, slices
from tests.model import volume_worlds as worlds
from tests.oracles import volume_binding as bound
from tests.oracles import volumes as twin
from tests.oracles.volumes import World

Json = dict[str, Any]
RULES = {RESTRICTIONS, LIMITS, BINDING, ZONE}
SHAPES = st.just(dict(bound.DEFAULT)) | st.dictionaries(
    st.integers(0, 100), st.integers(0, 10), min_size=1, max_size=4
)

OFF = st.frozensets(st.sampled_from(sorted(RULES)), min_size=1)


def see_storage(cluster: Cluster, body: Json) -> None:
    cluster.storage.see(msgspec.convert(body, storage.KINDS[body["kind"]]))


def see_pod(cluster: Cluster, body: Json) -> PodRecord:
    record = cluster.see_pod(msgspec.convert(body, wire.Pod))
    assert record is not None
    return record


def see(cluster: Cluster, body: Json) -> None:
    """An object is there, or another than before."""
    if "kind" in body:
        see_storage(cluster, body)
    elif "containers" in body["spec"]:
        see_pod(cluster, body)
    else:
        cluster.see_node(msgspec.convert(body, wire.Node))


def compare(
    world: World,
    cluster: Cluster,
    cycle: Cycle,
    pod: Json,
    shape: bound.Shape = bound.DEFAULT,
    off: Collection[str] = (),
) -> None:
    """What every node says of a pod, and what it is told where all refuse it; rules that are off are not asked."""
    record = see_pod(cluster, pod)
    refusal = twin.refusal(world, pod, off)
    names = sorted(node["metadata"]["name"] for node in world.nodes)
    hold = cycle.explain_hold(record)
    if refusal:
        assert hold is not None
        assert hold.diagnosis is not None
        assert hold.diagnosis.of_pod == refusal
        assert hold.diagnosis.unresolvable == len(names)
        return
    found = verdicts.judge_nodes(cluster, cycle, record).nodes
    for node in world.nodes:
        name = node["metadata"]["name"]
        wanted = bound.reasons(world, pod, node, off)
        assert found[name]["reasons"] == wanted, name
        if wanted:
            lasting = {twin.AFFINITY, twin.NO_MATCH, twin.NO_ROOM, twin.MISSING, twin.ZONE}
            lasting |= set(twin.uncounted(world, pod))
            status = "unresolvable" if lasting & set(wanted) else "unschedulable"
            assert found[name]["status"] == status
        else:
            points = 0 if BINDING in off else bound.plan(world, pod, node, shape)[1]
            assert found[name]["scores"].get("VolumeBinding", 0) == points


@given(
    worlds.worlds(), worlds.pods("p"), SHAPES, st.none() | OFF, st.randoms(use_true_random=False)
)
@settings(max_examples=slices.count_examples(500), deadline=None)
def test_nodes_are_judged_and_scored_as_the_twin_does_whatever_is_heard_first_and_whichever_rules_are_asked(
    world: World, pod: Json, shape: dict[int, int], off: frozenset[str] | None, order: Any
) -> None:
    cluster = Cluster()
    news = [*world.nodes, *world.storage, *world.pods]
    order.shuffle(news)
    for one in news:
        see(cluster, one)
    points = VolumeBinding(shape=tuple(sorted(shape.items())))
    off = off or frozenset()
    weights = ((BINDING, 0),) if BINDING in off else ()
    plugins = KubePlugins(volume_binding=points, not_asked=off, weights=weights)
    cycle = make.cycle(cluster=cluster, config=Config(placement=Placement(plugins=plugins)))
    compare(world, cluster, cycle, pod, points.shape, off)


@given(worlds.worlds(), worlds.pods("p"), st.data())
@settings(max_examples=slices.count_examples(200), deadline=None)
def test_judgements_are_kept_up_while_storage_pods_and_nodes_come_go_and_change(
    world: World, pod: Json, data: st.DataObject
) -> None:
    """The pod that waits has a live board all the time."""
    cluster = Cluster()
    for one in [*world.nodes, *world.storage, *world.pods]:
        see(cluster, one)
    cycle = make.cycle(cluster=cluster)
    compare(world, cluster, cycle, pod)
    for step in range(data.draw(st.integers(1, 6))):
        match data.draw(st.integers(0, 5)):
            case 0 if world.storage:
                gone = world.storage.pop(data.draw(st.integers(0, len(world.storage) - 1)))
                meta = gone["metadata"]
                cluster.storage.drop_object(gone["kind"], meta.get("namespace", ""), meta["name"])
            case 1 if world.pods:
                there = world.pods.pop(data.draw(st.integers(0, len(world.pods) - 1)))
                cluster.drop_pod(there["metadata"]["uid"])
            case 2:
                node = data.draw(st.sampled_from(worlds.NODES))
                world.pods.append(data.draw(worlds.pods(f"s{step}", node)))
                see_pod(cluster, world.pods[-1])
            case 3 if len(world.nodes) > 1:
                left = world.nodes.pop(data.draw(st.integers(0, len(world.nodes) - 1)))
                cluster.drop_node(left["metadata"]["name"])
            case 4:
                name = data.draw(st.sampled_from(worlds.NODES))
                world.nodes = [one for one in world.nodes if one["metadata"]["name"] != name]
                world.nodes.append(data.draw(worlds.nodes(name)))
                see(cluster, world.nodes[-1])
            case _:
                kind = data.draw(st.sampled_from(sorted(worlds.MAKERS)))
                maker, names = worlds.MAKERS[kind]
                new = data.draw(maker(data.draw(st.sampled_from(names))))
                same = kind, new["metadata"]["name"]
                world.storage = [
                    one for one in world.storage if (one["kind"], one["metadata"]["name"]) != same
                ]
                world.storage.append(new)
                see_storage(cluster, new)
        compare(world, cluster, cycle, pod)
        checks.verify(cluster)


@given(worlds.worlds(), st.lists(worlds.pod_volumes(), min_size=1, max_size=3), st.data())
@settings(max_examples=slices.count_examples(200), deadline=None)
def test_a_batch_goes_as_the_twin_allows_one_pod_after_the_other(
    world: World, kinds: list[list[Json]], data: st.DataObject
) -> None:
    """Each decision counts for the next, as if it were written; and what comes to nothing is forgotten."""
    cluster = Cluster()
    for one in [*world.nodes, *world.storage, *world.pods]:
        see(cluster, one)
    before = copy.deepcopy(world)
    cycle = make.cycle(cluster=cluster)
    waiting = []
    for i in range(data.draw(st.integers(1, 6))):
        body: Json = {"metadata": {"name": f"q{i}", "namespace": "default", "uid": f"q{i}"},
                "spec": {"schedulerName": "evenkeel", "containers": [{"name": "c"}],
                         "volumes": data.draw(st.sampled_from(kinds))}}  # fmt: skip
        waiting.append((body, see_pod(cluster, body)))
    outcome = cycle.schedule([record for _, record in waiting])
    binds = {one.uid: one for one in outcome.binds}
    for body, record in waiting:
        fits = [] if twin.refusal(world, body) else [
            node["metadata"]["name"]
            for node in world.nodes
            if not bound.reasons(world, body, node)
        ]  # fmt: skip
        made = binds.get(record.uid)
        assert bool(fits) == (made is not None)
        if made is None:
            continue
        assert made.node in fits
        node = next(one for one in world.nodes if one["metadata"]["name"] == made.node)
        given = bound.plan(world, body, node)[2]
        assert {one.claim: one.volume for one in made.given} == given
        write(world, body, made.node, given)
    checks.verify(cluster)
    for uid in binds:
        cluster.forget(uid)
    for body, _ in waiting:
        cluster.drop_pod(body["metadata"]["uid"])
    compare(before, cluster, cycle, data.draw(worlds.pods("p")))


def write(world: World, pod: Json, node: str, given: dict[str, str]) -> None:
    """A decision as the API server would have it."""
    world.pods.append(copy.deepcopy(pod) | {"spec": pod["spec"] | {"nodeName": node}})
    for name, volume in given.items():
        claim = world.claim("default", name)
        assert claim is not None
        if volume:
            reference = {"namespace": "default", "name": name, "uid": claim["metadata"]["uid"]}
            world.of("PersistentVolume")[volume]["spec"]["claimRef"] = reference
        else:
            claim["metadata"]["annotations"][twin.SELECTED] = node
