"""kube-scheduler's whole sum against its twin: any profile, random clusters, every plugin on every node."""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler import config
from scheduler.api import names
from scheduler.config import Config
from scheduler.telling import verdicts
from tests import make, slices
from tests.model import peer_worlds as worlds
from tests.oracles import kube_sum as twin
from tests.unit.peer_clusters import cluster_of, seen

Json = dict[str, Any]
RESOURCES = (
    "cpu",
    "memory",
    "ephemeral-storage",
    "example.com/foo",
    "example.org/bar",
    "hugepages-2Mi",
)
CAPACITY = {
    "cpu": ["1", "2", "3500m"],
    "memory": ["1Gi", "2Gi", "1500M"],
    "ephemeral-storage": ["10Gi", "7G"],
    "example.com/foo": ["2", "7"],
    "example.org/bar": ["3"],
    "hugepages-2Mi": ["8Mi"],
}
ASKED = {
    "cpu": ["0", "100m", "700m", "1"],
    "memory": ["0", "128Mi", "300M", "700Mi"],
    "ephemeral-storage": ["1Gi", "2G"],
    "example.com/foo": ["1", "2"],
    "example.org/bar": ["1"],
    "hugepages-2Mi": ["2Mi", "4Mi"],
}  # fmt: skip
POD_LEVEL: list[Json] = [{}, {}, {}, {"cpu": "1500m"}, {"memory": "512Mi", "hugepages-2Mi": "6Mi"}]
FILTERS = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
)
NODE_TERMS = st.fixed_dictionaries(
    {"matchExpressions": st.lists(worlds.EXPRESSIONS, min_size=1, max_size=2)}
)
PREFERRED = st.lists(
    st.fixed_dictionaries({"weight": st.integers(1, 100), "preference": NODE_TERMS}), max_size=2
)
SHAPES = st.dictionaries(st.integers(0, 100), st.integers(0, 10), min_size=1, max_size=4).map(
    lambda points: [{"utilization": u, "score": s} for u, s in sorted(points.items())]
)


@st.composite
def resources(draw: st.DrawFn, of: dict[str, list[str]], most: int) -> Json:
    chosen = draw(st.lists(st.sampled_from(RESOURCES), max_size=most, unique=True))
    return {name: draw(st.sampled_from(of[name])) for name in chosen}


@st.composite
def rich_worlds(draw: st.DrawFn) -> twin.World:
    """As of the rules about other pods, and pods ask resources that not every node has."""
    world = draw(worlds.worlds())
    nodes = [
        one
        | {"status": one["status"] | {"allocatable": {"pods": "9"} | draw(resources(CAPACITY, 6))}}
        for one in world.nodes
    ]

    def asking(pod: Json) -> Json:
        containers = [
            one | {"resources": {"requests": draw(resources(ASKED, 3))}}
            for one in pod["spec"]["containers"]
        ]
        asked: Json = {"containers": containers}
        if level := draw(st.sampled_from(POD_LEVEL)):
            asked["resources"] = {"requests": level}
        return pod | {"spec": pod["spec"] | asked}

    waits = asking(world.pod)
    if preferred := draw(PREFERRED):
        affinity = waits["spec"].get("affinity", {})
        of_nodes = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
        waits["spec"]["affinity"] = affinity | {"nodeAffinity": of_nodes}
    there = [asking(one) for one in world.pods]
    return twin.World(waits, nodes, there, world.namespaces, world.owners)


@st.composite
def strategies(draw: st.DrawFn) -> Json:
    """``scoringStrategy`` over any resources."""
    kind = draw(st.sampled_from(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]))
    found: Json = {"type": kind}
    if kind == "RequestedToCapacityRatio":
        found["requestedToCapacityRatio"] = {"shape": draw(SHAPES)}
    if chosen := draw(st.lists(st.sampled_from(RESOURCES), max_size=5, unique=True)):
        weights = st.sampled_from([None, 0, 1, 3, 100])
        found["resources"] = [
            {"name": name} | ({} if (weight := draw(weights)) is None else {"weight": weight})
            for name in chosen
        ]
    return found


@st.composite
def profiles(draw: st.DrawFn) -> twin.Profile:
    """What a file may say, all of it."""
    found = twin.Profile()
    if draw(st.integers(0, 3)) == 0:
        return found
    changed = draw(
        st.dictionaries(
            st.sampled_from(sorted(twin.WEIGHTS)), st.sampled_from([0, 1, 5, 2**31 - 1])
        )
    )
    added: Json = {}
    if draw(st.booleans()):
        terms = draw(st.lists(NODE_TERMS, max_size=2))
        added["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if draw(st.booleans()):
        added["preferredDuringSchedulingIgnoredDuringExecution"] = draw(PREFERRED)
    defaults = [
        {k: v for k, v in one.items() if k not in {"labelSelector", "matchLabelKeys"}}
        for one in draw(worlds.constraints())
    ]
    return replace(
        found,
        weights=twin.WEIGHTS | changed,
        off=draw(st.frozensets(st.sampled_from(FILTERS), max_size=2)),
        strategy=draw(strategies()),
        balanced=tuple(
            draw(st.lists(st.sampled_from(RESOURCES), min_size=1, max_size=4, unique=True))
        ),
        ignored=draw(st.sampled_from([(), ("example.com/foo",)])),
        ignored_groups=draw(st.sampled_from([(), ("example.org",)])),
        spread=draw(st.sampled_from([None, defaults])),
        hard_weight=draw(st.sampled_from([0, 1, 100])),
        ignores_others=draw(st.booleans()),
        added=added,
    )


def file_of(profile: twin.Profile) -> Config:
    """The same as a file says it."""
    on = [{"name": name, "weight": weight} for name, weight in profile.weights.items() if weight]
    off = [{"name": name} for name, weight in profile.weights.items() if not weight]
    filters = [{"name": name} for name in sorted(profile.off)]
    spread: Json = {}
    if profile.spread is not None:
        spread = {"defaultingType": "List", "defaultConstraints": profile.spread}
    arguments: dict[str, Json] = {
        "NodeResourcesFit": {
            "scoringStrategy": profile.strategy,
            "ignoredResources": list(profile.ignored),
            "ignoredResourceGroups": list(profile.ignored_groups),
        },
        "NodeResourcesBalancedAllocation": {
            "resources": [{"name": name} for name in profile.balanced]
        },
        "PodTopologySpread": spread,
        "InterPodAffinity": {
            "hardPodAffinityWeight": profile.hard_weight,
            "ignorePreferredTermsOfExistingPods": profile.ignores_others,
        },
        "NodeAffinity": {"addedAffinity": profile.added} if profile.added else {},
    }
    said = {
        "schedulerName": names.SCHEDULER,
        "plugins": {
            "preFilter": {"disabled": filters},
            "filter": {"disabled": filters},
            "score": {"enabled": on, "disabled": off},
        },
        "pluginConfig": [{"name": name, "args": given} for name, given in arguments.items()],
    }
    return config.parse_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [said],
        }
    )


@given(rich_worlds(), profiles())
@settings(max_examples=slices.count_examples(150), deadline=None)
def test_every_plugin_scores_every_node_as_its_twin_and_the_highest_sum_is_chosen(
    world: twin.World, profile: twin.Profile
) -> None:
    cluster = cluster_of(world.nodes, world.pods, world.namespaces, world.owners)
    cycle = make.cycle(cluster=cluster, config=file_of(profile))
    record = seen(cluster, world.pod)
    told = verdicts.judge_nodes(cluster, cycle, record).nodes
    fitting = twin.fitting(world, profile)
    assert sorted(name for name, said in told.items() if said["feasible"]) == sorted(fitting)
    weighted = twin.weighted(world, profile, fitting)
    for name in fitting:
        assert told[name]["weighted"] == weighted[name], name
        if weighted[name]:
            assert told[name]["total"] == sum(weighted[name].values())
    (best,) = {
        min(fitting, key=lambda name: (-sum(weighted[name].values()), name)) if fitting else ""
    }
    outcome = cycle.schedule([record])
    assert [bind.node for bind in outcome.binds] == ([best] if best else [])
