"""``evenkeel explain group`` as a user types it."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from scheduler import cli
from scheduler.api.groups.definitions import GroupKey
from scheduler.config import Config
from scheduler.documents import writing
from scheduler.explain import groups
from scheduler.explain.scene import Scene
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.reading.kinds import ObjectKey
from scheduler.simulate.situation import prepare
from scheduler.state import checks
from tests.prose import unwrapped
from tests.unit.test_simulate_what_if import node, pod

Json = dict[str, Any]
SIGS = "scheduling.sigs.k8s.io"
LABEL = f"pod-group.{SIGS}"
KOORDINATOR = "gang.scheduling.koordinator.sh/"


def explain(*arguments: str, objects: list[Json]) -> Result:
    stdin = writing.dump_all(objects)
    return CliRunner().invoke(cli.app, ["explain", *arguments, "-f", "-"], input=stdin)


def answer(name: str, *arguments: str, objects: list[Json]) -> Json:
    result = explain("group", name, *arguments, "-o", "json", objects=objects)
    assert result.exit_code == 0, result.output
    found: Json = json.loads(result.stdout)
    return found


def page(name: str, objects: list[Json]) -> str:
    result = explain("group", name, objects=objects)
    assert result.exit_code == 0, result.output
    return unwrapped(result.stdout)


def native(name: str, minimum: int, rack: bool = True) -> Json:
    spec: Json = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    if rack:
        spec["schedulingConstraints"] = {"topology": [{"key": "rack"}]}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": meta, "spec": spec}  # fmt: skip


def member(name: str, group: str = "train", **figures: Any) -> Json:
    body = pod(name, **{"cpu": 4} | figures)
    body["spec"]["schedulingGroup"] = {"podGroupName": group}
    return body


def racks(*sizes: int) -> list[Json]:
    return [
        node(f"r{rack}-{i}", cpu=4, labels={"rack": f"r{rack}"})
        for rack, size in enumerate(sizes)
        for i in range(size)
    ]


def members(n: int) -> list[Json]:
    return [member(f"w{i}") for i in range(n)]


def test_a_group_that_waits_is_told_how_many_fit_where_and_what_would_help() -> None:
    closed = node("r3-0", cpu=4, labels={"rack": "r3"}, unschedulable=True)
    more = [node(f"r3-{i}", cpu=4, labels={"rack": "r3"}) for i in (1, 2)]
    objects = [*racks(2, 1, 2), closed, *more, native("train", 3), *members(3)]
    found = answer("default/train", objects=objects)
    assert (found["state"], found["minimum"], found["now"]) == ("waits", 3, None)
    assert [one["name"] for one in found["pods"]["waiting"]] == ["w0", "w1", "w2"]
    assert found["topology"]["required"] == "rack"
    [level] = found["levels"]
    assert (level["label"], level["domains"]) == ("rack", 4)
    fits = {one["values"][0]: (one["nodes"], one["fitting"], one["of"]) for one in level["closest"]}
    assert fits == {"r0": (2, 2, 3), "r2": (2, 2, 3), "r3": (3, 2, 3)}
    assert {one["lacks"].partition(":")[0] for one in level["closest"]} == {
        "0/2 nodes are available",
        "0/3 nodes are available",
    }
    assert [(one["text"], one["pods"]) for one in found["advice"]] == [
        ("require no rack", 3),
        ("lower the minimum from 3 to 2", 2),
        ("bring back r3-0 (cordoned)", 3),
    ]
    text = page("default/train", objects)
    assert "PodGroup default/train waits: too few of its pods fit." in text
    assert "r0 (2 nodes): 2 of 3 waiting pods fit" in text
    assert "3. bring back r3-0 (cordoned): 3 pods fit on 3 nodes" in text


def test_each_advice_lets_the_group_in() -> None:
    """What is said to help does help, in the whole way from files to nodes."""
    objects = [*racks(2, 2), native("train", 3), *members(3)]
    texts = [one["text"] for one in answer("train", objects=objects)["advice"]]
    assert texts == ["require no rack", "lower the minimum from 3 to 2"]
    for changed in (native("train", 3, rack=False), native("train", 2)):
        retried = [changed if one["kind"] == "PodGroup" else one for one in objects]
        assert answer("train", objects=retried)["state"] == "fits"


def test_a_group_for_which_room_is_made_names_the_victims() -> None:
    low = [pod(f"low{i}", node=f"r0-{i}", cpu=4) for i in range(2)]
    high = [member(f"w{i}", priority=9) for i in range(2)]
    group = native("train", 2) | {}
    group["spec"]["priority"] = 9
    found = answer("train", objects=[*racks(2, 1), group, *low, *high])
    assert found["state"] == "preempts"
    assert sorted(one["name"] for one in found["preemption"]["victims"]) == ["low0", "low1"]
    assert found["preemption"]["nodes"] == ["r0-0", "r0-1"]
    for one in high:
        one["spec"]["preemptionPolicy"] = "Never"
    found = answer("train", objects=[*racks(2, 1), group, *low, *high])
    assert (found["state"], found["preemption"]["notDone"]) == (
        "waits",
        "its preemptionPolicy is Never",
    )


def test_a_group_that_would_not_fit_without_those_that_may_go_says_so() -> None:
    high = [member(f"w{i}", priority=9) for i in range(3)]
    group = native("train", 3)
    group["spec"]["priority"] = 9
    low, higher = pod("low", node="r0-0", cpu=4), pod("higher", node="r1-0", cpu=4, priority=99)
    found = answer("train", objects=[*racks(2, 2), group, low, higher, *high])
    assert (found["state"], found["preemption"]["victims"]) == ("waits", [])
    assert found["preemption"]["notDone"] == (
        "1 pod may go for it; without it the group would not fit either"
    )


def test_a_running_group_of_kai_says_that_nobody_goes_for_fewer_pods_than_it_lacks() -> None:
    meta = {"name": "train", "namespace": "default"}
    kind = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup"}
    group = kind | {"metadata": meta, "spec": {"minMember": 3}}
    pods = [pod("w0", node="r0-0", cpu=4), pod("w1", cpu=4, priority=0)]
    for one in pods:
        one["metadata"]["annotations"] = {"pod-group-name": "train"}
    low = pod("low", node="r1-0", cpu=4, priority=-1)
    found = answer("train", objects=[*racks(1, 1), group, *pods, low])
    assert (found["state"], found["preemption"]["notDone"]) == (
        "waits",
        "it lacks pods that do not exist, and goes as a whole if it stays below its minimum",
    )


def test_a_group_that_is_not_complete_says_what_it_lacks() -> None:
    objects = [*racks(2), native("train", 3), *members(2)]
    found = answer("train", objects=objects)
    assert (found["state"], found["levels"]) == ("held", [])
    assert found["message"] == "PodGroup default/train needs 3 pods, and 2 exist"
    gated = member("w2")
    gated["spec"]["schedulingGates"] = [{"name": "later"}]
    found = answer("train", objects=[*objects, gated])
    assert (found["state"], found["message"]) == ("held", "pod default/w2 has scheduling gates")


def test_a_running_group_that_lacks_a_pod_which_nobody_makes_says_so() -> None:
    runs = [member(f"p{i}", node="n0") for i in range(2)]
    objects = [node("n0", cpu=16), native("train", 3, rack=False), *runs]
    found = answer("train", objects=objects)
    assert (found["state"], found["message"]) == (
        "below",
        "1 pod is missing that it needs, and none of them waits.",
    )
    assert "runs with fewer pods than it needs" in page("train", objects)


def test_a_group_whose_pods_all_have_nodes_is_placed() -> None:
    there = [member(f"w{i}", node=f"r0-{i}") for i in range(2)]
    objects = [*racks(2), native("train", 2), *there]
    assert answer("train", objects=objects)["state"] == "placed"
    text = page("train", objects)
    assert "PodGroup default/train is placed: no pod of it waits." in text
    assert "On 2 nodes: r0-0, r0-1." in text


def test_a_pod_that_comes_later_fits_only_where_the_others_are() -> None:
    objects = [*racks(1, 2), native("train", 1), member("w0", node="r0-0"), member("w1")]
    found = answer("train", objects=objects)
    [level] = found["levels"]
    assert [(one["values"], one["fitting"]) for one in level["closest"]] == [(["r0"], 0)]
    assert [one["text"] for one in found["advice"]] == ["require no rack"]


def test_a_level_whose_label_no_node_has_is_named() -> None:
    objects = [node("a", cpu=8), native("train", 2), *members(2)]
    found = answer("train", objects=objects)
    assert [(one["label"], one["domains"]) for one in found["levels"]] == [("rack", 0)]
    assert found["message"].endswith(
        " that must be placed at once fit. No node has the label rack."
    )
    assert "rack: no node has this label" in page("train", objects)


def test_a_group_that_is_in_several_domains_already_says_so() -> None:
    there = [member(f"w{i}", node=f"r{i}-0") for i in range(2)]
    found = answer("train", objects=[*racks(2, 2), native("train", 1), *there, member("w2")])
    said = "Its pods are in several domains of rack, and all must be in one."
    assert found["message"] == f"PodGroup default/train: 0 of 1 pods fit. {said}"


def test_a_group_without_a_topology_gets_the_levels_that_nodes_have() -> None:
    zones = [node(f"z{i}", cpu=4, labels={"topology.kubernetes.io/zone": f"z{i}"}) for i in (1, 2)]
    found = answer("train", objects=[*zones, native("train", 3, rack=False), *members(3)])
    assert [(one["label"], one["domains"]) for one in found["levels"]] == [
        ("topology.kubernetes.io/zone", 2),
        ("kubernetes.io/hostname", 2),
    ]


@pytest.mark.parametrize("tasks", [["work", "lead"], ["lead", "work"]])
def test_a_part_that_does_not_fit_does_not_end_the_count_of_those_that_fit(
    tasks: list[str],
) -> None:
    zone = {"topology.kubernetes.io/zone": "z"}
    nodes = [node(f"n{i}", cpu=cpu, labels=zone) for i, cpu in enumerate((4, 4, 1))]
    spec = {"minMember": 4, "minTaskMember": dict.fromkeys(tasks, 0) | {"work": 3, "lead": 1}}
    meta = {"name": "train", "namespace": "default"}
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": meta, "spec": spec}  # fmt: skip
    notes = {"scheduling.k8s.io/group-name": "train"}
    pods = [
        pod(f"p{i}", cpu=cpu, labels={"volcano.sh/task-spec": task}, annotations=notes)
        for i, (task, cpu) in enumerate([("work", 4)] * 3 + [("lead", 1)])
    ]
    found = answer("train", objects=[*nodes, group, *pods])
    (closest,) = found["levels"][0]["closest"]
    assert (closest["fitting"], closest["of"]) == (3, 4)


def test_in_kube_schedulers_mode_pods_that_fit_are_counted_too(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("placement: {scoring: {mode: kube-scheduler}}")
    objects = [*racks(2, 1), native("train", 3), *members(3)]
    found = answer("train", "--config", str(config), objects=objects)
    assert found["message"].startswith("pod group is unschedulable, 0/2 placements are available")
    [level] = found["levels"]
    assert [(one["values"], one["fitting"]) for one in level["closest"]] == [
        (["r0"], 2),
        (["r1"], 1),
    ]
    texts = [one["text"] for one in found["advice"]]
    assert texts == ["require no rack", "lower the minimum from 3 to 2"]


def test_a_part_is_explained_with_its_whole() -> None:
    both = json.dumps(["default/a", "default/b"])
    notes = {KOORDINATOR + "min-available": "1", KOORDINATOR + "groups": both}
    parts = [
        pod(f"p-{name}", cpu=cpu, annotations={**notes, KOORDINATOR + "name": name})
        for name, cpu in (("a", 1), ("b", 9))
    ]
    found = answer("default/b", objects=[*racks(2), *parts])
    assert found["title"] == "Groups default/a and default/b"
    whole = "Groups default/a and default/b"
    [remark] = found["remarks"]
    assert (
        remark == f"PodGroup default/b is placed together with other groups, as a part of {whole}."
    )
    assert found["state"] == "waits"


def test_of_two_groups_of_one_name_the_other_is_named() -> None:
    sigs = {"apiVersion": f"{SIGS}/v1alpha1", "kind": "PodGroup", "metadata": {"name": "train", "namespace": "default"}, "spec": {"minMember": 1}}  # fmt: skip
    objects = [*racks(2), native("train", 1), member("w0"), sigs, pod("s0", labels={LABEL: "train"})]  # fmt: skip
    [remark] = answer("train", objects=objects)["remarks"]
    assert remark == (
        "It is a PodGroup.scheduling.k8s.io. Groups of other kinds have this name, too: "
        f"PodGroup.{SIGS}."
    )


@pytest.mark.parametrize("words", [["default/llm/0"], ["llm/0", "-n", "default"], ["default/llm/0", "-n", "default"]])  # fmt: skip
def test_a_replica_of_a_leader_worker_set_has_a_slash_in_its_name(words: list[str]) -> None:
    labels = {
        "leaderworkerset.sigs.k8s.io/name": "llm",
        "leaderworkerset.sigs.k8s.io/group-index": "0",
        "leaderworkerset.sigs.k8s.io/worker-index": "0",
    }
    notes = {"evenkeel.dev/gang": "all", "leaderworkerset.sigs.k8s.io/size": "1"}
    sets = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": "llm", "namespace": "default"}, "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": {"containers": [{"name": "c"}]}}}}}  # fmt: skip
    objects = [*racks(1), pod("llm-0", labels=labels, annotations=notes), sets]
    found = answer(*words, objects=objects)
    assert (found["group"]["name"], found["state"]) == ("llm/0", "fits")


def test_a_name_that_no_group_has_gets_similar_ones() -> None:
    objects = [*racks(2), native("train", 2), *members(2)]
    result = explain("group", "default/trian", objects=objects)
    assert result.exit_code == 2
    said = unwrapped(result.stderr)
    assert "group default/trian: does not exist. Of 1 group, similar: default/train" in said
    result = explain("job", "train", objects=objects)
    assert "Did you mean group default/train?" in unwrapped(result.stderr)


def test_a_pod_that_fits_alone_points_to_its_group() -> None:
    objects = [*racks(2, 2), native("train", 3), *members(3)]
    result = explain("pod", "w0", objects=objects)
    assert "Its group decides: `evenkeel explain group default/train` says more." in unwrapped(
        result.stdout
    )


def test_explaining_a_group_leaves_the_engine_as_it_was() -> None:
    low = pod("low", node="r0-0", cpu=4)
    closed = node("r1-1", cpu=4, labels={"rack": "r1"}, unschedulable=True)
    objects = [*racks(2, 1), closed, native("train", 2), low, *members(2)]
    scene = Scene(prepare(objects, Changes(), strict=False), Config(), is_live=False)
    wanted = ObjectKey("Group", "default", "train")
    first = groups.explain_group(wanted, scene)
    assert first["advice"]
    assert groups.explain_group(wanted, scene) == first
    checks.verify(scene.engine._cluster)
    assert GroupKey("PodGroup.scheduling.k8s.io", "default", "train") == tuple(
        first["group"].values()
    )


def test_age_is_worth_priority_among_files_too() -> None:
    """A group that is in no cluster yet is as old as the youngest pod that is."""
    old = [member(f"o{i}", "old") for i in range(2)]
    for one in old:
        one["metadata"]["creationTimestamp"] = "2026-01-02T10:00:00Z"
    taken = pod("taken", cpu=4, node="r0-0")
    taken["metadata"] |= {"creationTimestamp": "2026-01-02T12:00:00Z"}
    urgent = native("train", 2)
    urgent["spec"]["priority"] = 5
    young = members(2)
    for one in young:
        one["spec"]["priority"] = 5
    objects = [*racks(2), taken, native("old", 2), *old, urgent, *young]
    for points, before in ((0.0, ["old", "train"]), (3.0, ["train", "old"])):
        situation = prepare(objects, Changes(), strict=True)
        scene = Scene(situation, Config(ageing_per_hour=points), is_live=False)
        order = scene.engine._pending.order
        places = {
            one.uid.rpartition("/")[2]: order.find_place(one.entity)
            for one in scene.engine._pending.list_groups()
        }
        assert sorted(places, key=places.__getitem__, reverse=True) == before


def test_a_higher_priority_is_advised_if_others_would_then_go() -> None:
    """Two pods of priority 7 are on the only nodes; one of priority 9 on a node that alone is of no use."""
    objects = [*racks(2, 1), native("train", 2), *members(2)]
    for name, priority in (("r0-0", 7), ("r0-1", 7), ("r1-0", 9)):
        taken = pod(f"on-{name}", cpu=4, node=name)
        taken["spec"]["priority"] = priority
        objects.append(taken)
    advice = {one["text"]: one for one in answer("train", objects=objects)["advice"]}
    text = "give it a priority above 7, by which 2 pods would be evicted"
    assert advice[text] == {"text": text, "pods": 2, "nodes": 2}
    # What is said to help does help.
    urgent = [one for one in objects if one["metadata"]["name"] not in {"train", "w0", "w1"}]
    group = native("train", 2)
    group["spec"]["priority"] = 8
    for one in (again := members(2)):
        one["spec"]["priority"] = 8
    assert answer("train", objects=[*urgent, group, *again])["state"] == "preempts"


def test_no_priority_is_advised_to_a_group_that_evicts_nobody() -> None:
    group = native("train", 2)
    group["spec"]["preemptionPolicy"] = "Never"
    waiting = members(2)
    for one in waiting:
        one["spec"]["preemptionPolicy"] = "Never"
    taken = [pod(f"on-{i}", cpu=4, node=f"r0-{i}") for i in range(2)]
    found = answer("train", objects=[*racks(2), group, *waiting, *taken])
    assert not [one for one in found["advice"] if "priority" in one["text"]]
