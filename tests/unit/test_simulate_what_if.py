"""What-ifs, exit codes and warnings of ``evenkeel simulate``, as a user types them."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from scheduler import cli
from scheduler.api import kinds
from scheduler.config import Config
from scheduler.documents import writing
from scheduler.simulate import command, gaps, schedule
from scheduler.simulate.changes import what_if
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.reading import inventory as inventories
from scheduler.simulate.reading.gathering import Live
from scheduler.simulate.reading.inventory import Inventory
from scheduler.simulate.reading.priorities import Priorities
from tests import make
from tests.prose import unwrapped

Json = dict[str, Any]


def node(name: str, **figures: Any) -> Json:
    return make.raw(make.node(name=name, **figures)) | {"apiVersion": "v1", "kind": "Node"}


def gpu_node(name: str, **figures: Any) -> Json:
    return make.raw(make.hami_node(name=name, **figures)) | {"apiVersion": "v1", "kind": "Node"}


def pod(name: str, **figures: Any) -> Json:
    return make.raw(make.pod(name=name, **{"cpu": 1} | figures)) | {
        "apiVersion": "v1",
        "kind": "Pod",
    }


def owned(name: str, kind: str, **figures: Any) -> Json:
    body = pod(name, **figures)
    ref = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "1", "controller": True}
    body["metadata"] |= {"ownerReferences": [ref], "creationTimestamp": f"2026-01-01T00:00:0{name[-1]}Z"}  # fmt: skip
    return body


def workload(kind: str, name: str = "web", namespace: str = "default", **spec: Any) -> Json:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [make.container(cpu=1)]}}  # fmt: skip
    return {
        "apiVersion": "batch/v1" if kind in {"Job", "CronJob"} else "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"template": template} | spec,
    }


def simulate(*arguments: str, objects: list[Json]) -> Result:
    stdin = writing.dump_all(objects)
    return CliRunner().invoke(cli.app, ["simulate", "-f", "-", *arguments], input=stdin)


def answer(*arguments: str, objects: list[Json]) -> Json:
    result = simulate(*arguments, "-o", "json", objects=objects)
    assert result.exit_code == 0, result.output
    found: Json = json.loads(result.stdout)
    return found


def refused(*arguments: str, objects: list[Json]) -> str:
    result = simulate(*arguments, objects=objects)
    assert result.exit_code == 2, result.output
    assert not result.stdout
    return unwrapped(result.stderr).strip()


def placed(found: Json) -> dict[str, str | None]:
    return {one["name"]: one["node"] for one in found["pods"]}


def test_would_my_job_fit_if_a_node_were_gone_is_one_command() -> None:
    job = workload("Job", template={"spec": {"containers": [make.container(gpu=2)]}})
    nodes = [gpu_node("a", cards=2), gpu_node("b", cards=2)]
    for gone, code in ((("--without-node", "a"), 0), (("--without-node", "a", "--without-node", "b"), 1)):  # fmt: skip
        result = simulate(*gone, "--fail-if-pending", objects=[*nodes, job])
        assert result.exit_code == code, result.output
    assert simulate("--without-node", "a", "--without-node", "b", objects=[*nodes, job]).exit_code == 0  # fmt: skip


def test_pods_of_a_node_that_is_gone_are_placed_again_with_new_cards() -> None:
    there = {"hami.io/vgpu-node": "a", "hami.io/vgpu-devices-allocated": "a-GPU-0,NVIDIA,100,0:;"}
    agent, mirror = owned("agent-0", "DaemonSet", node="a"), pod("static", node="a", annotations={"kubernetes.io/config.mirror": "x"})  # fmt: skip
    going = pod("going", node="a")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    objects = [
        gpu_node("a"), gpu_node("b"), agent, mirror, going,
        pod("gpu", node="a", gpu=1, gpumem=100, annotations=there), pod("done", node="a", phase="Succeeded"),
        pod("stays", node="b"),
    ]  # fmt: skip
    found = answer("--without-node", "a", objects=objects)
    (moved,) = found["pods"]
    assert (moved["name"], moved["node"], moved["displacedFrom"]) == ("gpu", "b", "a")
    assert [card["id"] for card in moved["devices"]] == ["b-GPU-0"]
    assert found["summary"]["nodes"] == 1
    assert "gpu  b     was on a; card 0: 100 MiB" in simulate("--without-node", "a", objects=objects).stdout  # fmt: skip


def test_a_cordoned_node_keeps_its_pods_and_takes_no_new_ones() -> None:
    objects = [node("a"), node("b", cpu=1), pod("there", node="a"), pod("x"), pod("y")]
    found = answer("--cordon", "a", objects=objects)
    assert placed(found) == {"x": "b", "y": None}
    assert "1 node(s) were unschedulable" in found["pods"][1]["message"]


def test_nodes_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "new.yaml"
    path.write_text(writing.dump_all([gpu_node("n1", cards=8), node("n2")]))
    objects = [node("a"), pod("big", gpu=8), workload("DaemonSet")]
    found = answer("--add-node", str(path), objects=objects)
    assert placed(found)["big"] == "n1"
    assert found["summary"] == {"nodes": 3, "pods": 4, "scheduled": 4, "pending": 0}
    again = tmp_path / "again.yaml"
    again.write_text(writing.dump(node("a")))
    assert refused("--add-node", str(again), objects=objects) == (
        f"--add-node {again}: Node a: metadata.name: a node of this name exists already"
    )
    again.write_text(writing.dump(pod("p")))
    assert refused("--add-node", str(again), objects=objects) == (
        f'--add-node {again}: Pod default/p: kind: "Pod" is not allowed; it must be Node'
    )
    again.write_text(writing.dump(node("z", cpu="x")))
    assert refused("--add-node", str(again), objects=objects).startswith(f"--add-node {again}: Node z: status.allocatable[cpu]")  # fmt: skip


@pytest.mark.parametrize("word", ["deploy", "deployment", "Deployments"])
def test_a_workload_grows(word: str) -> None:
    objects = [node("a"), workload("Deployment", replicas=1), workload("Deployment", "other")]
    assert len(answer("--scale", f"{word}/web=3", objects=objects)["pods"]) == 4
    assert len(answer("--scale", f"default/{word}/web=3", objects=objects)["pods"]) == 4
    # As `explain` takes it, too.
    assert len(answer("--scale", f"{word}/default/web=3", objects=objects)["pods"]) == 4


@pytest.mark.parametrize(
    ("word", "kind", "gone"),
    [("sts", "StatefulSet", "web-2"), ("rs", "ReplicaSet", "web-2"), ("job", "Job", "web-2")],
)
def test_a_workload_that_shrinks_makes_room(word: str, kind: str, gone: str) -> None:
    """The youngest go, or the highest numbers."""
    pods = [owned(f"web-{i}", kind, node="a", cpu=2) for i in range(3)]
    objects = [node("a", cpu=6), workload(kind, replicas=3, parallelism=3), *pods, pod("new", cpu=2)]  # fmt: skip
    assert placed(answer(objects=objects)) == {"new": None}
    assert placed(answer("--scale", f"{word}/web=2", objects=objects)) == {"new": "a"}
    left = schedule(objects, changes=Changes(scale=[f"{word}/web=2"], without=["a"]))
    assert gone not in placed(left)
    assert {"web-0", "web-1"} <= placed(left).keys()


def test_which_pods_go_of_a_workload_that_shrinks_is_said() -> None:
    def pods(n: int) -> list[Json]:
        return [owned(f"web-{i}", "StatefulSet", node="a") for i in range(n)]

    objects = [node("a", cpu=16), workload("StatefulSet", replicas=9), *pods(9)]
    found = answer("--scale", "sts/web=7", objects=objects)
    owner = {"kind": "StatefulSet", "name": "web"}
    gone = {row.pop("name") for row in found["removed"]}
    assert gone == {"web-7", "web-8"}
    assert found["removed"] == [{"namespace": "default", "owner": owner, "node": "a"}] * 2
    (line,) = simulate("--scale", "sts/web=8", objects=objects).stdout.splitlines()[-1:]
    assert line == "1 pod of StatefulSet default/web goes: web-8"
    line = " ".join(simulate("--scale", "sts/web=0", objects=objects).stdout.splitlines()[-2:])
    assert line.startswith("9 pods of StatefulSet default/web go: web-")
    assert line.endswith(" and 4 more")
    assert answer("--scale", "sts/web=9", objects=objects)["removed"] == []
    # What is too many without a wish stays, as its controller is not asked.
    assert answer(objects=[node("a", cpu=16), workload("StatefulSet", replicas=1), *pods(2)])["removed"] == []  # fmt: skip


def test_would_a_gang_fit_if_a_rack_were_drained_is_one_command() -> None:
    """The pods of the rack are placed again, but for those that belong to their nodes; the gang takes what is left."""
    nodes = [
        node(f"n{i}", cpu=4, labels={"rack": f"r{i // 2}", "zone": "a" if i < 4 else "b"})
        for i in range(6)
    ]
    agent, runs = owned("agent-0", "DaemonSet", node="n0", cpu=1), pod("runs", node="n0", cpu=2)
    job = workload("Job", parallelism=2, completions=2)
    job["metadata"]["annotations"] = {"evenkeel.dev/gang": "all"}
    job["spec"]["template"]["spec"]["containers"] = [make.container(cpu=4)]
    objects = [*nodes, agent, runs, job, pod("busy", node="n4", cpu=4)]
    found = answer("--drain", "rack=r0", objects=objects)
    where = {one["name"].partition("-")[0]: one for one in found["pods"]}
    assert (where["runs"]["displacedFrom"], where["runs"]["ofChange"]) == ("n0", True)
    assert {one["node"] for one in found["pods"]}.isdisjoint({None, "n0", "n1"})
    both = "--drain", "rack=r0", "--drain", "rack=r1,zone=a"
    result = simulate(*both, "--fail-if-pending", objects=objects)
    assert result.exit_code == 1
    assert "4 node(s) were unschedulable" in unwrapped(result.stdout)


def test_a_change_that_names_what_is_not_there_says_what_is() -> None:
    nodes = [node(f"n{i:02}") for i in range(14)]
    objects = [*nodes, workload("Deployment"), workload("Deployment", namespace="b")]
    assert refused("--without-node", "n011", objects=objects) == (
        '--without-node n011: there is no node "n011"; there are n01, n11 and 12 more'
    )
    assert refused("--drain", "rack", objects=objects) == (
        "--drain rack: is no list of labels such as topology.kubernetes.io/rack=r7"
    )
    hosts = [node(f"n{i}", labels={"rack": f"r{i}", "zone": "a"}) for i in range(2)]
    assert refused("--drain", "zone=a,rack=r7", objects=hosts) == (
        '--drain zone=a,rack=r7: there is no node with rack "r7"; there are r0, r1'
    )
    hosts[0]["metadata"]["labels"]["zone"] = "b"
    assert refused("--drain", "zone=a,rack=r0", objects=hosts) == (
        "--drain zone=a,rack=r0: no node has all these labels"
    )
    assert refused("--cordon", "zzz", objects=objects) == (
        '--cordon zzz: there is no node "zzz"; there are n00, n01, n02, n03, n04, n05, n06, n07, n08, n09 '
        "and 4 more"
    )
    assert (
        refused("--cordon", "a", objects=objects[-2:])
        == '--cordon a: there is no node "a", and no other'
    )
    said = {
        "deploy/wb=1": 'there is no Deployment "wb"; there are b/web, default/web',
        "sts/web=1": 'there is no StatefulSet "web", and no other',
        "deploy/web=1": "Deployment web is in the namespaces b, default: name one, as namespace/deploy/web=1",
        "ds/web=1": '"ds" cannot be scaled; allowed are deployment, deployments, deploy, statefulset, '
        "statefulsets, sts, replicaset, replicasets, rs, replicationcontroller, replicationcontrollers, rc, "
        "job, jobs, leaderworkerset, leaderworkersets, lws",
        "deploy/web=200001": "200001 is not within 0..200000",
        "deploy/web": "is not like deploy/web=3 or deploy/team-a/web=3",
        "deploy/web=-1": "is not like deploy/web=3 or deploy/team-a/web=3",
    }
    for text, problem in said.items():
        assert refused("--scale", text, objects=objects) == f"--scale {text}: {problem}"
    assert refused("--mode", "keel,fast", objects=objects).startswith('--mode: "fast" is not one of keel, fgd')  # fmt: skip
    assert refused("--mode", "random", objects=objects).startswith('--mode: "random" is not one of')


def test_a_mode_stands_in_the_configurations_place_and_several_are_compared(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("placement: {nodePolicy: spread}")
    objects = [node("a"), node("b"), pod("p"), pod("q")]
    command = ["--config", str(config), "--mode", "most-allocated"]
    assert len(set(placed(answer(*command, objects=objects)).values())) == 1
    found = answer(*command, "--mode", "least-allocated,most-allocated", objects=objects)
    used = {mode: len(set(placed(one).values())) for mode, one in found["modes"].items()}
    assert used == {"most-allocated": 1, "least-allocated": 2}
    lines = simulate(
        "--mode", "least-allocated,most-allocated", objects=objects
    ).stdout.splitlines()
    assert [line for line in lines if line.startswith("Mode ")] == ["Mode least-allocated", "Mode most-allocated"]  # fmt: skip
    assert lines[-3].split() == ["MODE", "SCHEDULED", "PENDING", "NODES", "USED"]
    assert lines[-1].split() == ["most-allocated", "2", "0", "1"]


def test_policies_come_from_a_file_and_stand_in_the_place_of_those_of_their_name(
    tmp_path: Path,
) -> None:
    spread = {
        "kind": "BalancePolicy",
        "metadata": {"name": "how"},
        "spec": {"nodePolicy": "spread"},
    }
    objects = [gpu_node("a", cards=2), gpu_node("b", cards=2), spread, pod("p", gpu=1), pod("q", gpu=1)]  # fmt: skip
    pack = tmp_path / "how.yaml"
    assert len(set(placed(answer(objects=objects)).values())) == 2
    for text in ({"nodePolicy": "binpack"}, spread | {"spec": {"nodePolicy": "binpack"}}):
        pack.write_text(writing.dump(text))
        assert len(set(placed(answer("--policy", str(pack), objects=objects)).values())) == 1
    found = answer("--mode", "keel", objects=objects)
    assert found["warnings"] == [
        "BalancePolicy how sets a mode, which wins over --mode for the pods that it selects"
    ]
    pack.write_text("scoring: {mode: fast}")
    assert refused("--policy", str(pack), objects=objects).startswith(
        f'--policy {pack}: BalancePolicy how: spec.scoring.mode: "fast" is not a mode'
    )
    pack.write_text(writing.dump(spread | {"apiVersion": "evenkeel.dev/v1alpha1"}))
    assert refused("--policy", str(pack), objects=objects) == (
        f'--policy {pack}: BalancePolicy how: apiVersion: "evenkeel.dev/v1alpha1" is not allowed; '
        "it must be scheduling.evenkeel.dev/v1alpha1"
    )


def test_priorities_come_from_classes_the_default_class_or_the_pod_itself() -> None:
    def asking(name: str, **spec: Any) -> Json:
        body = pod(name, spec=spec)
        if "priority" not in spec:
            body["spec"].pop("priority", None)
        body["metadata"].pop("creationTimestamp", None)
        return body | {"spec": body["spec"] | spec}

    classes = [
        {"kind": "PriorityClass", "metadata": {"name": "low"}, "value": -5},
        {"kind": "PriorityClass", "metadata": {"name": "usual"}, "value": 7, "globalDefault": True},
    ]
    pods = [
        asking("low", priorityClassName="low"), asking("unknown", priorityClassName="gold"), asking("usual"),
        asking("own", priorityClassName="gold", priority=9), asking("top", priorityClassName="system-node-critical"),
    ]  # fmt: skip
    found = answer(objects=[node("a"), *classes, *pods])
    assert list(placed(found)) == ["top", "own", "usual", "unknown", "low"]
    (warning,) = found["warnings"]
    assert warning == (
        'no PriorityClass "gold" is among the objects: pods that name it and do not set spec.priority '
        "have priority 0"
    )


def near(**more: Any) -> Json:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}, **more}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}  # fmt: skip


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        ([pod("p", spec=near(namespaceSelector={"matchLabels": {"team": "a"}}))], "labels of namespace default are not known, because no such Namespace is among the objects; selectors of pod default/p need these labels"),
        ([pod("p"), {"kind": "BalancePolicy", "metadata": {"name": "b"}, "spec": {"nodePolicy": "spread", "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}}}], "labels of namespace default are not known, because no such Namespace is among the objects; selectors of BalancePolicy b need these labels"),
        ([owned("p-1", "StatefulSet")], "The StatefulSets of 1 pod are missing, so its spread is not simulated. Add `statefulsets` to the dump"),
        ([workload("Deployment") | {"status": {"replicas": 3}}], "workloads report that they have pods, but no Pod is among the objects"),
        ([workload("Deployment"), {"kind": "LimitRange", "metadata": {"name": "l"}}], "LimitRanges of namespace default: their defaults are not filled in"),
        ([workload("Deployment"), {"kind": "Namespace", "metadata": {"name": "default", "annotations": {"scheduler.alpha.kubernetes.io/node-selector": "a=b"}}}], "annotations of namespace default for a node selector or tolerations are not applied"),
    ],
)  # fmt: skip
def test_what_is_missing_and_would_matter_is_said(objects: list[Json], said: str) -> None:
    (warning,) = answer(objects=[node("a"), *objects])["warnings"]
    assert warning.startswith(said)


def test_what_would_not_matter_is_not_said() -> None:
    own_name = {"matchLabels": {"kubernetes.io/metadata.name": "default"}}
    objects = [
        node("a"), {"kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "a"}}},
        pod("p", memory=1, spec=near(namespaceSelector={"matchLabels": {"team": "a"}})),
        pod("q", namespace="far", spec=near(namespaceSelector={})),
        {"kind": "BalancePolicy", "metadata": {"name": "b"}, "spec": {"nodePolicy": "spread", "namespaceSelector": own_name}},
        {"kind": "LimitRange", "metadata": {"name": "l", "namespace": "far-off"}},
    ]  # fmt: skip
    assert answer(objects=[one for one in objects if one["metadata"]["name"] != "p"])["warnings"] == []  # fmt: skip
    # Whoever asks by labels needs those of all namespaces that have pods.
    (warning,) = answer(objects=objects)["warnings"]
    assert warning.startswith("labels of namespace far are not known")


def test_kinds_that_a_cluster_would_not_list_are_told_where_they_matter() -> None:
    unlisted = dict.fromkeys(
        ("BalancePolicy", "Namespace", "PriorityClass", "Job"), "403 Forbidden"
    )
    inventory = Inventory([node("a")], strict=False, priorities=Priorities(strict=False))
    assert gaps.report_gaps(inventory, unlisted, set(), is_mode_given=False) == [
        "objects of kind BalancePolicy cannot be listed (403 Forbidden): pods are placed without any policy",
        "objects of kind Job cannot be listed (403 Forbidden): their pods that do not exist yet are left out",
    ]  # fmt: skip
    unlisted = {"ConfigMap kube-system/hami-scheduler-device": "404 NotFound"}
    assert gaps.report_gaps(inventory, unlisted, set(), is_mode_given=False) == [
        "ConfigMap kube-system/hami-scheduler-device cannot be read (404 NotFound): requests of devices are read by the defaults of HAMi's chart",
    ]  # fmt: skip
    # Nodes and pods are needed, and of the others it is said where one of them is asked for.
    silent = {kind.name for kind in kinds.TABLE if not kind.lost}
    assert silent == {"Node", "Pod", "Namespace", "PriorityClass"}


def test_a_pod_on_its_way_out_is_not_displaced_with_its_node() -> None:
    going = pod("going", node="a")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    inventory = inventories.read_inventory([node("a"), node("b"), going, pod("moves", node="a"), pod("stays", node="b")])  # fmt: skip
    displaced = what_if.apply_changes(inventory, Changes(without=["a"]))
    assert displaced == {"default/moves": "a"}
    assert [one.metadata.name for one in inventory.pods] == ["moves", "stays"]


def code_of(*live: Json, **request: Any) -> int:
    """How the command ends for a cluster that has these objects."""
    asked = command.Request(config=Config(), fail_if_pending=True, **request)
    return command.simulate(asked, Live(live), io.StringIO(), lambda *_: None).code


def test_in_a_cluster_only_pods_that_the_change_sets_free_or_makes_count_as_pending() -> None:
    waits = pod("waits", cpu=99)
    cluster = (node("a", cpu=2), node("b", cpu=1), waits, pod("p", node="a", cpu=2))
    assert code_of(*cluster) == 1
    assert code_of(*cluster, cordon=["b"]) == 0
    # The pod that must leave fits nowhere else.
    assert code_of(*cluster, without_nodes=["a"]) == 1
    web = workload("Deployment", replicas=0)
    assert code_of(*cluster, web, scale=["deploy/web=1"]) == 0
    assert code_of(*cluster, web, scale=["deploy/web=2"]) == 1
