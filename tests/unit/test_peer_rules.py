"""Rules about other pods against their twins: random clusters, kept up and made anew; runs and one pod at a time."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import names, wire
from scheduler.api.door.decisions import Diagnosis
from scheduler.telling import verdicts
from tests import make, slices
from tests.model import peer_objects as objects
from tests.model import peer_worlds as worlds
from tests.oracles import pod_affinity
from tests.unit.peer_clusters import FITS, cluster_of, compare, seen, verdict_of

Json = dict[str, Any]


@given(worlds.worlds())
@settings(max_examples=slices.count_examples(300), deadline=None)
def test_rules_about_pods_judge_and_score_nodes_as_their_twins(world: worlds.World) -> None:
    cluster = cluster_of(world.nodes, world.pods, world.namespaces, world.owners)
    cycle = make.cycle(cluster=cluster)
    there = world.nodes, world.pods, world.namespaces
    compare(cluster, cycle, seen(cluster, world.pod), world.pod, there, world.owners)


@given(worlds.worlds(), st.data())
@settings(max_examples=slices.count_examples(200), deadline=None)
def test_rules_about_pods_are_kept_up_while_pods_nodes_and_namespaces_come_go_and_change(
    world: worlds.World, data: st.DataObject
) -> None:
    """The pod that waits has a live board all the time."""
    pod, namespaces = world.pod, dict(world.namespaces)
    nodes = {one["metadata"]["name"]: one for one in world.nodes}
    pods = {f"q{i}": one for i, one in enumerate(world.pods)}
    owners = list(world.owners)
    cluster = cluster_of(world.nodes, world.pods, namespaces, owners)
    cycle = make.cycle(cluster=cluster)
    record = seen(cluster, pod)
    for step in range(data.draw(st.integers(1, 6))):
        match data.draw(st.integers(0, 5)):
            case 0 if pods:
                gone = data.draw(st.sampled_from(sorted(pods)))
                del pods[gone]
                cluster.drop_pod(gone)
            case 1:
                came = data.draw(worlds.pods(on=data.draw(st.sampled_from(sorted(nodes)))))
                uid = data.draw(st.sampled_from([f"r{step}", *sorted(pods)]))
                pods[uid] = came
                seen(cluster, came, uid)
            case 2 if len(nodes) > 1:
                gone = data.draw(st.sampled_from(sorted(nodes)))
                del nodes[gone]
                cluster.drop_node(gone)
            case 3 if owners:
                last = owners.pop(data.draw(st.integers(0, len(owners) - 1)))
                kind, meta = names.PeerKind(last["kind"]), last["metadata"]
                cluster.peers.drop(kind, meta["namespace"], meta["name"])
            case 4:
                name = data.draw(worlds.NAMESPACE_NAMES)
                namespaces[name] = data.draw(worlds.LABELS)
                cluster.terms.see_namespace(name, namespaces[name])
            case _:
                for node in data.draw(worlds.nodes()):
                    nodes[node["metadata"]["name"]] = node
                    cluster.see_node(msgspec.convert(node, wire.Node))
        there = [one for one in pods.values() if one["spec"]["nodeName"] in nodes]
        compare(cluster, cycle, record, pod, (list(nodes.values()), there, namespaces), owners)


@given(worlds.worlds(), st.integers(2, 12))
@settings(max_examples=slices.count_examples(100), deadline=None)
def test_a_run_of_like_pods_goes_as_one_pod_at_a_time_and_as_the_twins_allow(
    world: worlds.World, n: int
) -> None:
    check_run(world, world.pod, n)


@given(worlds.worlds(), worlds.self_regarding(), st.integers(3, 12), st.integers(0, 8))
@settings(max_examples=slices.count_examples(200), deadline=None)
def test_a_run_of_pods_whose_rules_are_about_themselves_goes_as_one_at_a_time(
    world: worlds.World, pod: Json, n: int, n_like: int
) -> None:
    """Each changes what the next meets: of its own rules, and as a pod that is there.

    Some that they are about run already, and have no rules themselves.
    """
    names_of = [node["metadata"]["name"] for node in world.nodes]
    like = [objects.pod({"a": "a"}, on=names_of[i % len(names_of)]) for i in range(n_like)]
    check_run(world._replace(pods=[*world.pods, *like]), pod, n)


def placed(
    world: worlds.World, pods: list[Json], *, at_once: bool
) -> tuple[list[str], list[Diagnosis | None]]:
    """Where each of a batch goes ("": nowhere), and why those that are held are."""
    cluster = cluster_of(world.nodes, world.pods, world.namespaces, world.owners)
    batch = [seen(cluster, pod, f"p{i}") for i, pod in enumerate(pods)]
    steps = [batch] if at_once else [[one] for one in batch]
    # A new cycle each time: nothing that a kernel counted is remembered.
    outcomes = [make.cycle(cluster=cluster).schedule(step) for step in steps]
    went = {bind.uid: bind.node for outcome in outcomes for bind in outcome.binds}
    held = [hold.diagnosis for outcome in outcomes for hold in outcome.holds]
    return [went.get(one.uid, "") for one in batch], held


def check_run(world: worlds.World, pod: Json, n: int) -> None:
    went, held = placed(world, [pod] * n, at_once=True)
    assert (went, held) == placed(world, [pod] * n, at_once=False)
    now = list(world.pods)
    for node in went:
        verdicts = verdict_of(pod, world.nodes, now, world.namespaces)
        if not node:
            assert FITS not in verdicts.values()
            break
        assert verdicts[node] == FITS
        now.append(pod | {"spec": pod["spec"] | {"nodeName": node}})


def test_terms_of_pods_that_run_weigh_what_they_say_and_required_ones_weigh_one() -> None:
    """hardPodAffinityWeight; a pod that is to be near nobody in particular is pushed away as it is drawn."""
    term = {"topologyKey": objects.HOSTNAME, "labelSelector": {"matchLabels": {"app": "x"}}}
    owners = {
        "a": objects.affinity("podAffinity", term),
        "b": objects.affinity("podAffinity", preferred=[(4, term)]),
        "c": objects.affinity("podAntiAffinity", preferred=[(1, term)]),
        "d": {},
    }
    nodes = [objects.node(name, {objects.HOSTNAME: name}) for name in owners]
    pods = [objects.pod(on=name, affinity=said) for name, said in owners.items()]
    pod = objects.pod({"app": "x"})
    cluster = cluster_of(nodes, pods)
    told = verdicts.judge_nodes(cluster, make.cycle(cluster=cluster), seen(cluster, pod)).nodes
    points = {name: said["scores"]["InterPodAffinity"] for name, said in told.items()}
    assert points == {"a": 40, "b": 100, "c": 0, "d": 20}
    assert points == pod_affinity.scores(pod, nodes, pods, list(owners))


def test_a_pod_in_a_batch_is_judged_by_the_terms_of_those_placed_before_it_in_the_batch() -> None:
    """The first of its kind would go to the node whose pod had just refused to be beside it."""
    term = {"topologyKey": names.HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
    alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = [
        make.pod(name="alone", cpu=1, spec={"affinity": alone}),
        make.pod(name="web", cpu=1, labels={"app": "web"}),
    ]
    cluster = make.cluster(nodes=[make.node(name="only")], pods=pods)
    outcome = make.cycle(cluster=cluster).schedule(list(cluster.pods.values()))
    assert [bind.uid for bind in outcome.binds] == ["default/alone"]
    assert [hold.uid for hold in outcome.holds] == ["default/web"]


@given(worlds.worlds(), worlds.batches())
@settings(max_examples=slices.count_examples(300), deadline=None)
def test_a_batch_of_few_templates_and_many_labels_goes_as_one_pod_at_a_time(
    world: worlds.World, batch: list[Json]
) -> None:
    """What the first placed says about others, it says of some of those that follow with one template."""
    assert placed(world, batch, at_once=True) == placed(world, batch, at_once=False)


def test_a_pod_is_not_refused_for_the_labels_of_the_pod_before_it_in_the_batch() -> None:
    """Those two have one template, and differed in nothing until the first of the batch was placed."""
    term = {"topologyKey": names.HOSTNAME, "labelSelector": {"matchLabels": {"app": "a"}}}
    alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = [
        make.pod(name="alone", cpu=1, spec={"affinity": alone}),
        make.pod(name="refused", cpu=1, labels={"app": "a"}),
        make.pod(name="welcome", cpu=1, labels={"app": "b"}),
    ]
    cluster = make.cluster(nodes=[make.node(name="only")], pods=pods)
    outcome = make.cycle(cluster=cluster).schedule(list(cluster.pods.values()))
    assert [bind.uid for bind in outcome.binds] == ["default/alone", "default/welcome"]
    assert [hold.uid for hold in outcome.holds] == ["default/refused"]
