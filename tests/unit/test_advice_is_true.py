"""Every advice is true: what it says, done to the objects and told to another engine, lets the pod in.

And none could be had cheaper: one unit more, one step less, one pod that stays, and it does not fit.
"""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduler.api import storage, wire
from scheduler.simulate import schedule
from scheduler.state import checks
from scheduler.telling.advice import advise
from scheduler.telling.advice.asking import Asking
from scheduler.telling.explained import sentences
from tests import make, slices
from tests.model import advised, clusters, peer_worlds, volume_worlds, workloads
from tests.model.clusters import Kit
from tests.oracles.volumes import World

Json = dict[str, Any]
KIT = Kit(
    cpu=("4", "8", "16"),
    memory=("8Gi", "32Gi"),
    pods=(6, 20),
    counts=(1, 2, 4),
    closed=0.25,
    taints=0.3,
    beside=0.2,
)
ZONE = "topology.kubernetes.io/zone"
STATE = {"key": "node.kubernetes.io/not-ready", "value": "", "effect": "NoExecute"}


def engine_of(objects: list[Json], pod: Json) -> tuple[Asking, wire.Pod]:
    """A cluster that has seen all objects and the pod, which waits."""
    kinds: dict[str, type[wire.Node | wire.Pod]] = {"Node": wire.Node, "Pod": wire.Pod}
    typed = [msgspec.convert(one, kinds[one["kind"]]) for one in objects if one["kind"] in kinds]
    cluster = make.cluster(
        nodes=[one for one in typed if isinstance(one, wire.Node)],
        pods=[one for one in typed if isinstance(one, wire.Pod)],
    )
    for one in objects:
        if one["kind"] in storage.KINDS:
            cluster.storage.see(msgspec.convert(one, storage.KINDS[one["kind"]]))
    words = msgspec.convert(pod, wire.Pod)
    cluster.see_pod(words)
    return Asking(cluster, make.cycle(cluster=cluster)), words


def fits_on(objects: list[Json], pod: Json) -> list[str]:
    asking, words = engine_of(objects, pod)
    record = asking.cluster.pods[words.metadata.uid]
    return asking.list_names(asking.find_fitting(record))


def advice_for(objects: list[Json], pod: Json) -> list[Json]:
    asking, words = engine_of(objects, pod)
    record = asking.cluster.pods[words.metadata.uid]
    nodes = {
        one["metadata"]["name"]: msgspec.convert(one, wire.Node)
        for one in objects
        if one["kind"] == "Node"
    }
    found = advise.find_advice(asking, record, advise.ObjectFacts(words, nodes, lambda _: True))
    checks.verify(asking.cluster)
    return [sentences.write_advice(asking, one) for one in found]


def check_all(objects: list[Json], pod: Json) -> set[str]:
    """Hold every advice to what it says; the kinds of steps that there were."""
    if fits_on(objects, pod):
        assert advice_for(objects, pod) == []
        return set()
    kinds = set()
    for advice in advice_for(objects, pod):
        steps = advice["steps"]
        kinds |= {step["do"] for step in steps}
        where = fits_on(*advised.done(objects, pod, steps))
        assert where[:20] == advice["names"], advice["text"]
        alone = len(where) == advice["nodes"]
        assert alone or {step["do"] for step in steps} <= {"bringBack", "end"}, advice["text"]
        for i, step in enumerate(steps):
            others = [*steps[:i], *steps[i + 1 :]]
            if others:
                assert not fits_on(*advised.done(objects, pod, others)), advice["text"]
            for one in advised.cheaper(step):
                still = fits_on(*advised.done(objects, pod, [*others, one]))
                # Other nodes may need less to end.
                told = advice["names"] if step["do"] == "end" else still
                assert not set(told) & set(still), (advice["text"], one)
    return kinds


def drawn(seed: int) -> tuple[list[Json], Json]:
    """Nodes on which pods run, some of which end, and a pod that waits."""
    rng = random.Random(seed)
    nodes = [
        advised.as_object("Node", one) for one in clusters.nodes(rng, rng.randrange(1, 6), KIT)
    ]
    for one in nodes:
        if rng.random() < 0.15:
            one["spec"].setdefault("taints", []).append(STATE)
    pods = [
        advised.as_object("Pod", workloads.drawn(rng, KIT, name=f"pod-{i}"))
        for i in range(rng.randrange(25))
    ]
    running = []
    where = {row["name"]: row for row in schedule([*nodes, *pods])["pods"]}
    for one in pods:
        row = where[one["metadata"]["name"]]
        if row["node"]:
            one["spec"] |= {"nodeName": row["node"], "priority": rng.randrange(3)}
            one["metadata"].setdefault("annotations", {}).update(row["annotations"])
            one["status"] = {"phase": "Running"}
            if rng.random() < 0.1:
                one["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            running.append(one)
    asked = workloads.drawn(rng, KIT, name="waits")
    figures = asked["spec"]["containers"][0]["resources"]["requests"]
    figures["cpu"] = rng.choice(["3", "7500m", "12", "20"])
    figures["memory"] = rng.choice(["1Gi", "12Gi", "40Gi"])
    return nodes + running, asked


def drawn_with_containers(seed: int) -> tuple[list[Json], Json]:
    """As ``drawn``, but the pod that waits has two or three containers that request cards, and little else."""
    objects, asked = drawn(seed)
    rng = random.Random(seed + 1)
    asks: list[Json] = [
        {
            "gpu": rng.choice([1, 1, 2]),
            "gpumem": rng.choice([3000, 9000, 12000, 16000, 20000, 40000]),
            "gpucores": rng.choice([0, 30, 60]),
        }
        for _ in range(rng.choice([2, 2, 3]))
    ]
    if rng.random() < 0.3:
        asks[-1] = asks[0]
    kind = rng.choice(["containers", "containers", "initContainers"])
    named = [make.container(name=f"c{i}", **one) for i, one in enumerate(asks)]
    first = named[:1] if kind == "initContainers" else []
    if first and rng.random() < 0.5:
        first[0]["restartPolicy"] = "Always"
    spec = {"schedulerName": asked["spec"]["schedulerName"], "containers": named[len(first) :]}
    return objects, asked | {"spec": spec | ({"initContainers": first} if first else {})}


@given(st.integers(0, 2**32))
@settings(max_examples=slices.count_examples(60))
def test_advice_for_pods_of_several_gpu_containers_is_true_and_not_to_be_had_cheaper(
    seed: int,
) -> None:
    check_all(*drawn_with_containers(seed))


@pytest.mark.many
def test_pods_of_several_gpu_containers_are_advised_about_one_of_them_and_about_all() -> None:
    seen: set[bool] = set()
    for seed in range(80):
        objects, pod = drawn_with_containers(seed)
        if fits_on(objects, pod):
            continue
        for step in (step for one in advice_for(objects, pod) for step in one["steps"]):
            if step["do"] == "requestLess":
                seen.add(bool(step["containers"]))
    assert seen == {True, False}


@given(st.integers(0, 2**32))
@settings(max_examples=slices.count_examples(60))
def test_advice_on_random_clusters_is_true_and_not_to_be_had_cheaper(seed: int) -> None:
    check_all(*drawn(seed))


@pytest.mark.many
def test_every_kind_of_step_is_advised_on_some_cluster() -> None:
    kinds: set[str] = set()
    for seed in range(60):
        kinds |= check_all(*drawn(seed))
    assert kinds == {"requestLess", "drop", "tolerate", "bringBack", "end", "wait"}


# The end of one pod lets the other in on each node of its zone.
SHARED_ZONE = peer_worlds.World(
    pod={"metadata": {"name": "p", "namespace": "default"}, "spec": {"affinity": {"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ZONE, "labelSelector": {}}],
    }}}},
    nodes=[
        {"metadata": {"name": name, "uid": name, "labels": {ZONE: "z"}}, "status": {"allocatable": {"pods": 9}}}
        for name in ("n0", "n1")
    ],
    pods=[{"metadata": {"name": "q", "namespace": "default", "uid": "q"}, "spec": {"nodeName": "n0"}}],
    namespaces={}, owners=[], candidates=[],
)  # fmt: skip
# The end of both pods of a node lets the other in there and on a node without a zone, for which one is enough.
ONE_IS_ENOUGH_ELSEWHERE = peer_worlds.World(
    pod={"metadata": {"name": "p", "namespace": "default"}, "spec": {"affinity": {"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "rack", "labelSelector": {}},
            {"topologyKey": ZONE, "labelSelector": {}, "namespaces": ["default", "two"]},
        ],
    }}}},
    nodes=[
        {"metadata": {"name": name, "uid": name, "labels": labels}, "status": {"allocatable": {"pods": 9}}}
        for name, labels in (("n0", {ZONE: "z", "rack": "r"}), ("n1", {"rack": "r"}))
    ],
    pods=[
        {"metadata": {"name": name, "namespace": space, "uid": name}, "spec": {"nodeName": "n0"}}
        for name, space in (("q0", "default"), ("q1", "two"))
    ],
    namespaces={}, owners=[], candidates=[],
)  # fmt: skip


@given(peer_worlds.worlds())
@example(SHARED_ZONE)
@example(ONE_IS_ENOUGH_ELSEWHERE)
@settings(max_examples=slices.count_examples(60))
def test_advice_about_other_pods_is_true(world: peer_worlds.World) -> None:
    objects = [advised.as_object("Node", one) for one in world.nodes]
    objects += [advised.as_object("Pod", one) for one in world.pods]
    meta = world.pod["metadata"] | {"name": "waits", "uid": "waits"}
    spec = world.pod["spec"] | {"schedulerName": "evenkeel"}
    check_all(objects, world.pod | {"metadata": meta, "spec": spec})


@given(volume_worlds.worlds(), volume_worlds.pods("p"))
@settings(max_examples=slices.count_examples(60))
def test_advice_about_storage_is_true(world: World, pod: Json) -> None:
    objects = [advised.as_object("Node", one) for one in world.nodes]
    objects += [advised.as_object("Pod", one) for one in world.pods]
    check_all(objects + world.storage, pod)
