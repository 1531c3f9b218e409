"""A pod by itself takes the place of groups as kube-scheduler has them, if its rules hold: the twin says who goes."""

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.api.groups.objects import CompositePodGroup, KubePodGroup
from scheduler.config import Config, parse_config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from tests import slices
from tests.model import preemption_worlds as model
from tests.model.peer_objects import HOSTNAME, ZONE
from tests.oracles import preemption as twin

Json = dict[str, Any]


def read_config() -> Config:
    """kube-scheduler's own configuration, so that its rules hold."""
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return parse_config(kind | {"profiles": [{"schedulerName": "evenkeel"}]})


@st.composite
def worlds(draw: st.DrawFn) -> twin.World:
    """Worlds in which some of the pods that run are in one of two groups, with or without a group around them."""
    world = draw(model.worlds())
    has_root = draw(st.booleans())
    for name in ("a", "b"):
        spec: Json = {"schedulingPolicy": {"basic": {}}} | draw(_ranks())
        if has_root:
            spec["parentCompositePodGroupName"] = "root"
            spec["workloadRef"] = {"workloadName": "none", "templateName": "none"}
        world.groups.append(_make_group("PodGroup", name, spec))
    if has_root:
        spec = {"schedulingPolicy": {"basic": {}}} | draw(_ranks())
        world.groups.append(_make_group("CompositePodGroup", "root", spec))
    for pod in world.pods:
        if "nodeName" in pod["spec"] and draw(st.integers(0, 2)):
            _put_in(pod, draw(st.sampled_from(["a", "a", "b"])))
    return world


def _ranks() -> st.SearchStrategy[Json]:
    modes: st.SearchStrategy[Json] = st.sampled_from(["all", "all", "single"]).map(
        lambda mode: {mode: {}}
    )
    return st.fixed_dictionaries({"priority": model.PRIORITIES, "disruptionMode": modes})


def _make_group(kind: str, name: str, spec: Json) -> Json:
    return {"kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def _put_in(pod: Json, group: str) -> None:
    pod["spec"]["schedulingGroup"] = {"podGroupName": group}


def make_engine(world: twin.World) -> Engine:
    engine = model.engine_of(world, read_config())
    for one in world.groups:
        see_group(engine, one)
    return engine


def see_group(engine: Engine, group: Json) -> None:
    name = group["metadata"]["name"]
    meta = wire.Meta(name=name, namespace="default", uid=f"group-{name}")
    shape = KubePodGroup if group["kind"] == "PodGroup" else CompositePodGroup
    engine.handle(events.Seen(shape(meta, group["spec"])), 0.0)


def check(engine: Engine, pod: Json, world: twin.World) -> None:
    """Check that just those go whom the twin names."""
    running = [one for one in world.pods if one["spec"].get("nodeName")]
    assume(all(twin.beside_nominated(pod, node, world, running)[0] for node in world.nodes))
    model.see(engine, pod)
    outcome = engine.decide(0.0, Unlimited())
    found, _ = twin.targets(pod, world)
    target = twin.choose(found)
    if target is None:
        assert not outcome.evicts
        return
    (evict,) = outcome.evicts
    assert evict.node == target.node
    assert sorted(evict.victims) == sorted(map(twin.uid, target.victims))


@settings(max_examples=slices.count_examples(400), deadline=None)
@given(worlds(), model.pods("p"))
def test_whole_groups_go_for_a_pod_as_the_twin_says(world: twin.World, pod: Json) -> None:
    pod["spec"]["priority"] = 10
    check(make_engine(world), pod, world)


@settings(max_examples=slices.count_examples(400), deadline=None)
@given(worlds(), model.pods("p"), st.data())
def test_what_has_changed_in_a_group_is_known_on_all_its_nodes(
    world: twin.World, pod: Json, data: st.DataObject
) -> None:
    """A second pod like the first one is answered from what the first has asked, but for what has changed."""
    pod["spec"]["priority"] = 10
    engine = make_engine(world)
    model.see(engine, pod)
    outcome = engine.decide(0.0, Unlimited())
    assume(not outcome.binds)
    engine.handle(events.Gone("Pod", "p"), 0.0)
    for uid in (uid for one in outcome.evicts for uid in one.victims):
        engine.handle(events.EvictFailed(uid, "the test goes on"), 0.0)
    running = [one for one in world.pods if one["spec"].get("nodeName")]
    for step in range(data.draw(st.integers(1, 3))):
        change = data.draw(st.sampled_from(["comes", "goes", "group goes", "group comes"]))
        if change == "comes":
            one = data.draw(model.pods(f"r{step}", peers=False))
            one["spec"]["nodeName"] = data.draw(st.sampled_from(world.nodes))["metadata"]["name"]
            one["status"] = {"phase": "Running"}
            _put_in(one, data.draw(st.sampled_from(["a", "b"])))
            world.pods.append(one)
            model.see(engine, one, scheduler="other")
        elif change == "goes" and running:
            gone = running.pop(data.draw(st.integers(0, len(running) - 1)))
            world.pods.remove(gone)
            engine.handle(events.Gone("Pod", twin.uid(gone)), 0.0)
        elif change == "group goes" and len(world.groups) > 1:
            group = world.groups.pop(data.draw(st.integers(0, 1)))
            kind, name = f"{group['kind']}.scheduling.k8s.io", group["metadata"]["name"]
            engine.handle(events.Gone(kind, f"default/{name}"), 0.0)
        elif change == "group comes":
            there = {twin.name(one) for one in world.groups}
            spec: Json = {"schedulingPolicy": {"basic": {}}} | data.draw(_ranks())
            made = [_make_group("PodGroup", name, spec) for name in ("a", "b") if name not in there]
            for one in made:
                world.groups.append(one)
                see_group(engine, one)
    check(engine, pod | {"metadata": pod["metadata"] | {"name": "p2", "uid": "p2"}}, world)


def _make_node(name: str, cpu: int, zone: str = "z") -> Json:
    labels = {HOSTNAME: name, ZONE: zone}
    offered = {"cpu": cpu, "pods": 10}
    meta = {"name": name, "uid": name, "labels": labels}
    return {"metadata": meta, "spec": {}, "status": {"allocatable": offered}}


def _make_pod(name: str, cpu: int, priority: int, *, node: str = "", group: str = "") -> Json:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    spec: Json = {"priority": priority, "containers": [container]}
    meta = {"name": name, "namespace": "default", "uid": name, "labels": {"app": "a"}}
    pod = {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}
    if node:
        spec["nodeName"] = node
        pod["status"] = {"phase": "Running"}
    if group:
        _put_in(pod, group)
    return pod


def _make_podgroup(name: str, mode: str, parent: str = "") -> Json:
    spec: Json = {"schedulingPolicy": {"basic": {}}, "priority": 0, "disruptionMode": {mode: {}}}
    if parent:
        spec["parentCompositePodGroupName"] = parent
    return _make_group("PodGroup", name, spec)


def _name_victims(engine: Engine) -> tuple[str, list[str]]:
    (evict,) = engine.decide(0.0, Unlimited()).evicts
    return evict.node, sorted(evict.victims)


def test_a_budget_counts_all_pods_of_a_group() -> None:
    """One of two may go; both would go as one, so it is better to take another pod's place."""
    pods = [
        _make_pod("v0", 4, 0, node="a", group="g"),
        _make_pod("v1", 4, 0, node="b", group="g"),
        _make_pod("alone", 4, 1, node="c"),
    ]
    del pods[-1]["metadata"]["labels"]
    selector = {"matchLabels": {"app": "a"}}
    budget = {
        "metadata": {"name": "one", "namespace": "default"},
        "spec": {"selector": selector},
        "status": {"disruptionsAllowed": 1},
    }
    nodes = [_make_node(name, 4) for name in "abc"]
    world = twin.World(nodes, pods, [budget], [_make_podgroup("g", "all")])
    engine = make_engine(world)
    model.see(engine, _make_pod("p", 4, 10))
    assert _name_victims(engine) == ("c", ["alone"])


def test_a_pod_that_leaves_a_group_makes_it_cheaper_on_its_other_nodes() -> None:
    pods = [
        _make_pod("v0", 4, 0, node="a", group="g"),
        _make_pod("alone", 4, 0, node="b"),
        _make_pod("v1", 1, 0, node="c", group="g"),
        _make_pod("high", 1, 10, node="c"),
    ]
    root = _make_group("CompositePodGroup", "root", _make_podgroup("root", "single")["spec"])
    groups = [_make_podgroup("g", "all", "root"), root]
    nodes = [*(_make_node(name, 4) for name in "ab"), _make_node("c", 2)]
    engine = make_engine(twin.World(nodes, pods, [], groups))
    model.see(engine, _make_pod("p", 4, 10))
    assert _name_victims(engine) == ("b", ["alone"])
    engine.handle(events.Gone("Pod", "p"), 0.0)
    engine.handle(events.EvictFailed("alone", "the test goes on"), 0.0)
    engine.handle(events.Gone("Pod", "v1"), 0.0)
    model.see(engine, _make_pod("p2", 4, 10))
    assert _name_victims(engine) == ("a", ["v0"])


def test_pods_that_leave_other_domains_count_where_pods_are_spread() -> None:
    """Once the group is gone its other zone is empty, and the pod's own zone would have two more."""
    pods = [
        _make_pod("v1", 1, 0, node="b", group="g"),
        _make_pod("v0", 3, 0, node="a", group="g"),
        _make_pod("high", 1, 10, node="a"),
        _make_pod("other", 3, 10, node="b"),
    ]
    del pods[-1]["metadata"]["labels"]
    nodes = [_make_node("a", 4, "z1"), _make_node("b", 4, "z2")]
    engine = make_engine(twin.World(nodes, pods, [], [_make_podgroup("g", "all")]))
    pod = _make_pod("p", 2, 10)
    pod["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "a"}},
        }
    ]
    model.see(engine, pod)
    outcome = engine.decide(0.0, Unlimited())
    assert not outcome.binds
    assert not outcome.evicts
