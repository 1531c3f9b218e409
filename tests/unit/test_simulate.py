"""``evenkeel simulate`` as a user types it: what goes in, what comes out, how mistakes are told."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from typer.testing import CliRunner, Result

from scheduler import cli
from scheduler.documents import writing
from scheduler.simulate import InputProblem, schedule
from tests import make
from tests.prose import unwrapped
from tests.unit.test_simulate_what_if import placed

Json = dict[str, Any]

NODE = msgspec.to_builtins(make.node(name="a")) | {"apiVersion": "v1", "kind": "Node"}
GPU_NODE = msgspec.to_builtins(make.hami_node(name="g", cards=1)) | {"kind": "Node"}


def pod(name: str = "p", **spec: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
            "spec": {"containers": [make.container(cpu=1)], **spec}}  # fmt: skip


def simulate(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(cli.app, ["simulate", *arguments], input=stdin)


def answer(*arguments: str, stdin: str = "") -> Json:
    result = simulate(*arguments, "-o", "json", stdin=stdin)
    assert result.exit_code == 0, result.output
    found: Json = json.loads(result.stdout)
    return found


def refused(*arguments: str, stdin: str = "") -> str:
    result = simulate(*arguments, stdin=stdin)
    assert result.exit_code == 2
    assert not result.stdout
    return unwrapped(result.stderr).strip()


def test_json_has_the_documented_shape_to_the_key() -> None:
    gpu = pod("gpu", containers=[make.container(gpu=1, gpumem=3000, gpucores=30)])
    others = [{"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "spec": {"tasks": [{"template": {"spec": {"containers": [{}]}}}]}}, {"kind": "ConfigMap"}]  # fmt: skip
    found = answer("-f", "-", stdin=writing.dump_all([GPU_NODE, gpu, pod("big", priority=-1, containers=[make.container(cpu=99)]), *others]))  # fmt: skip
    (warning,) = found.pop("warnings")
    assert warning.startswith(
        "1 Job (batch.volcano.sh/v1alpha1): Evenkeel does not know which pods this kind"
    )
    stamp = found["pods"][0]["annotations"].pop("hami.io/vgpu-time")
    assert stamp.isdigit()
    assert found["pods"][0]["annotations"].pop("hami.io/bind-time") == stamp
    assert found == {
        "schemaVersion": 1,
        "queues": [],
        "workloads": [],
        "queueChanges": None,
        "kaiQueues": [],
        "kaiQueueChanges": None,
        "pods": [
            {
                "namespace": "default",
                "name": "gpu",
                "uid": "default/gpu",
                "owner": None,
                "displacedFrom": None,
                "file": "-",
                "own": False,
                "ofChange": False,
                "counts": True,
                "node": "g",
                "annotations": {
                    "hami.io/vgpu-node": "g",
                    "hami.io/vgpu-devices-to-allocate": "g-GPU-0,NVIDIA,3000,30:;",
                    "hami.io/vgpu-devices-allocated": "g-GPU-0,NVIDIA,3000,30:;",
                    "hami.io/bind-phase": "allocating",
                },
                "devices": [{"id": "g-GPU-0", "index": 0, "memoryMiB": 3000, "cores": 30}],
                "claims": [],
                "message": "Successfully assigned default/gpu to g",
                "unschedulable": None,
                "victims": [],
                "nominated": None,
                "group": None,
            },
            {
                "namespace": "default",
                "name": "big",
                "uid": "default/big",
                "owner": None,
                "displacedFrom": None,
                "file": "-",
                "own": False,
                "ofChange": False,
                "counts": True,
                "node": None,
                "annotations": {},
                "devices": [],
                "claims": [],
                "message": "0/1 nodes are available: 1 Insufficient cpu. "
                "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling. "
                "Insufficient cpu: requested 99, the most free is 8 on g.",
                "unschedulable": "0/1 nodes are available: 1 Insufficient cpu. "
                "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
                "victims": [],
                "nominated": None,
                "group": None,
            },
        ],
        "groups": [],
        "summary": {"nodes": 1, "pods": 2, "scheduled": 1, "pending": 1},
        "mistakes": [],
        "passedOver": {"ConfigMap": 1},
        "unknownWorkloads": [
            {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "count": 1}
        ],
        "suspended": {},
        "finished": {},
        "unsuited": {},
        "removed": [],
        "ownFiles": [],
        "ownUnsuited": [],
        "changed": False,
    }


def test_explain_names_the_mode_that_scored_each_node() -> None:
    """Keel scores nodes with and without GPUs, for pods that ask some and for others."""
    gpu = msgspec.to_builtins(make.hami_node(name="g")) | {"kind": "Node"}
    asking = pod("p", containers=[make.container(cpu=1, gpu=1)])
    for given, fits_elsewhere in ((pod("q"), True), (asking, False)):
        found = answer("-f", "-", "--explain", stdin=writing.dump_all([NODE, gpu, given]))
        (row,) = found["pods"]
        assert "keel" in row["nodes"]["g"]["scores"]
        assert ("keel" in row["nodes"]["a"]["scores"]) == fits_elsewhere


def test_explain_says_of_every_node_whether_why_and_how_good() -> None:
    cordoned = make.node(name="c", unschedulable=True)
    small = make.node(name="s", cpu="500m")
    full = make.node(name="f", cpu=1)
    there = pod("q", nodeName="f")
    nodes = [msgspec.to_builtins(one) | {"kind": "Node"} for one in (cordoned, small, full)]
    found = answer("-f", "-", "--explain", stdin=writing.dump_all([NODE, *nodes, there, pod()]))
    (row,) = found["pods"]
    said = row["nodes"]
    assert list(said) == ["a", "c", "f", "s"]
    scores, total = said["a"].pop("scores"), said["a"].pop("total")
    weighted, raw = said["a"].pop("weighted"), said["a"].pop("raw")
    assert weighted.keys() == raw.keys() == scores.keys() == row["weights"].keys()
    assert total == pytest.approx(sum(weighted.values()))
    assert said["a"] == {"feasible": True, "status": "fit", "reasons": []}
    assert scores.keys() == {
        "keel", "TaintToleration", "NodeAffinity", "ImageLocality", "PodTopologySpread",
        "InterPodAffinity", "KeepsGpuNodesFree",
    }  # fmt: skip
    assert total == pytest.approx(
        5 * scores["keel"] + 3 * scores["TaintToleration"] + 2 * scores["NodeAffinity"]
    )
    nothing = {"feasible": False, "raw": {}, "scores": {}, "weighted": {}, "total": None}
    assert said["c"] == nothing | {
        "status": "unresolvable",
        "reasons": ["node(s) were unschedulable"],
    }
    assert said["f"] == nothing | {"status": "unschedulable", "reasons": ["Insufficient cpu"]}
    assert said["s"] == nothing | {"status": "unresolvable", "reasons": ["Insufficient cpu"]}


def test_explain_says_that_a_node_has_promised_its_room_to_others() -> None:
    small = msgspec.to_builtins(make.node(name="s", cpu=2)) | {"kind": "Node"}
    gates = [{"name": "later"}]
    waits = pod("w", containers=[make.container(cpu=2)], schedulingGates=gates)
    waits["status"] = {"nominatedNodeName": "s"}
    asking = pod(containers=[make.container(cpu=1)])
    found = answer("-f", "-", "--explain", stdin=writing.dump_all([NODE, small, waits, asking]))
    said = next(row["nodes"] for row in found["pods"] if row["name"] == "p")
    assert said["a"]["feasible"]
    assert not said["s"]["feasible"]
    assert (said["s"]["status"], said["s"]["reasons"]) == ("unschedulable", ["Insufficient cpu"])


def test_without_explain_there_is_no_word_of_nodes() -> None:
    assert "nodes" not in answer("-f", "-", stdin=writing.dump_all([NODE, pod()]))["pods"][0]


def test_several_files_lists_json_and_documents_come_together(tmp_path: Path) -> None:
    typed = {"apiVersion": "v1", "kind": "NodeList", "items": [{k: v for k, v in NODE.items() if k != "kind"}]}  # fmt: skip
    (tmp_path / "nodes.json").write_text(json.dumps(typed))
    listed = {"apiVersion": "v1", "kind": "List", "items": [pod("one"), pod("two")]}
    (tmp_path / "pods.yaml").write_text(f"---\n{writing.dump(listed)}---\n---\n# nothing\n")
    lines = "\n".join(json.dumps(pod(name)) for name in ("three", "four"))
    (tmp_path / "more.json").write_text(lines.replace("\n", "\n---\n"))
    files = [str(tmp_path / name) for name in ("nodes.json", "pods.yaml", "more.json")]
    found = answer("-f", files[0], "-f", files[1], "-f", files[2], "-f", "-", stdin=writing.dump(pod("five")))  # fmt: skip
    assert placed(found) == dict.fromkeys(["one", "two", "three", "four", "five"], "a")


def test_only_ours_leaves_the_pods_of_other_schedulers() -> None:
    stdin = writing.dump_all([NODE, pod("ours", schedulerName="evenkeel"), pod("theirs")])
    assert placed(answer("-f", "-", stdin=stdin)) == {"ours": "a", "theirs": "a"}
    assert placed(answer("-f", "-", "--only-ours", stdin=stdin)) == {"ours": "a"}


def test_kinds_that_are_neither_nodes_nor_pods_are_passed_over() -> None:
    kinds = ["Deployment", "Job", "Service", "ConfigMap"]
    others = [{"apiVersion": "x", "kind": kind, "metadata": {"name": "n"}} for kind in kinds]
    found = answer("-f", "-", stdin=writing.dump_all([*others, NODE, pod()]))
    assert placed(found) == {"p": "a"}
    assert found["passedOver"] == {"ConfigMap": 1, "Deployment": 1, "Job": 1}


def test_bound_pods_are_charged_and_finished_ones_are_not() -> None:
    node = msgspec.to_builtins(make.node(name="a", cpu=2)) | {"kind": "Node"}
    done = pod("done", nodeName="a") | {"status": {"phase": "Succeeded"}}
    stdin = writing.dump_all([node, done, pod("runs", nodeName="a"), pod("x"), pod("y")])
    assert placed(answer("-f", "-", stdin=stdin)) == {"x": "a", "y": None}


def test_what_kubectl_prints_and_people_write_is_taken_as_the_api_server_takes_it() -> None:
    text = """
apiVersion: v1
kind: Pod
metadata: {creationTimestamp: null, generateName: web-, labels: null}
spec:
  containers:
    - {name: c, resources: {limits: {cpu: 0.5}}, ports: null}
  nodeSelector: null
status: {}
---
apiVersion: v1
kind: Pod
metadata: {creationTimestamp: 2026-01-01T00:00:00Z, name: old}
spec: {containers: [{name: c}]}
"""
    found = answer("-f", "-", stdin=writing.dump(NODE) + "---" + text)
    assert placed(found) == {"web-1": "a", "old": "a"}


def test_table_and_yaml_say_the_same_in_other_forms() -> None:
    stdin = writing.dump_all([GPU_NODE, pod("p", containers=[make.container(gpu=1, gpumem=10)])])
    table = simulate("-f", "-", "--explain", stdin=stdin)
    assert table.exit_code == 0
    for word in (
        "default/p",
        "card 0: 10 MiB",
        "1 of 1 pod scheduled on 1 node\n",
        "1 of 1 node fits",
    ):
        assert word in table.stdout
    printed = simulate("-f", "-", "-o", "yaml", stdin=stdin)
    assert yaml.safe_load(printed.stdout)["pods"][0]["node"] == "g"


def test_no_nodes_and_no_pods_are_answers() -> None:
    assert answer("-f", "-", stdin=writing.dump(pod()))["pods"][0]["message"] == (
        "no nodes available to schedule pods"
    )
    summary = {"nodes": 0, "pods": 0, "scheduled": 0, "pending": 0}
    nothing = answer("-f", "-", stdin="kind: List\nitems: []\n")
    assert (nothing["pods"], nothing["summary"]) == ([], summary)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: Pod\nmetadata: {name: p}\nspec: {containers: 5}", "Pod p: spec.containers: must be a list, is a whole number"),
        ("kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, resources: {requests: {cpu: x}}}]}", 'Pod p: spec.containers[0].resources.requests[cpu]: "x" is not a quantity'),
        ("kind: Pod\nmetadata: {name: p}\nspec: {nodeName: a, containers: [{name: c, resources: {requests: {cpu: x}}}]}", 'Pod p: spec.containers[0].resources.requests[cpu]: "x" is not a quantity'),
        ("kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, resources: {limits: {nvidia.com/gpumem: -5}}}]}", 'Pod p: spec.containers[0].resources.limits[nvidia.com/gpumem]: "-5" is negative'),
        ("kind: Pod\nmetadata: {name: p, namespace: 'n'}\nspec: {priorityClassName: gold, containers: [{name: c}]}", 'Pod n/p: spec.priorityClassName: no PriorityClass "gold" is among the objects'),
        ("kind: Pod\nmetadata: {name: p, labels: {a: 1}}", "Pod p: metadata.labels"),
        ("kind: Pod\nmetadata: {name: p}\nspec: {containers: null}", "Pod p: spec.containers: at least one container is needed"),
        ("kind: Pod\nmetadata: {name: p}\nspec: {priority: 2147483648, containers: [{name: c}]}", "Pod p: spec.priority: 2147483648 is not within -2147483648..2147483647"),
        ("kind: List\nitems: 7", "document 1: List: items must be a list, not 7"),
        ("kind: PodList\nitems: {a: b}", "document 1: PodList: items must be a list, not {'a': 'b'}"),
        ("kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n---\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}", "Pod p: metadata.name: the object is given twice"),
        ("kind: Node\nmetadata: {name: a}\n---\nkind: Node\nmetadata: {name: a}", "Node a: metadata.name: the object is given twice"),
        ("kind: Node\nmetadata: {labels: {}}", "document 1: Node (no name): metadata.name: is missing"),
        ("kind: Node", "document 1: Node (no name): metadata.name: is missing"),
        ("kind: Node\nmetadata: {name: a}\nstatus: {allocatable: {cpu: -1}}", 'Node a: status.allocatable[cpu]: "-1" is negative'),
        ("kind: PriorityClass\nmetadata: {name: a}\nvalue: high", "PriorityClass a: value: 'high' is not an integer"),
        ("kind: PriorityClass\nmetadata: null\nvalue: 1", "document 1: PriorityClass (no name): metadata.name: is missing"),
        ("kind: BalancePolicy\nmetadata: {name: b}\nspec: {nodePolicy: up}", 'BalancePolicy b: spec.nodePolicy: "up" is not a node policy'),
        ("metadata: {name: p}", "(no kind) p: kind: is missing: every document and every item of a List must name one"),
        ("- kind: Pod", "is a list, not a Kubernetes object: put the list under `items:` of a `kind: List`"),
        ("kind: PodList\nitems: [5]", "document 1, item 1: (no kind) (no name): kind: is missing: every document and every item of a List must name one"),
        ("a: [", "neither YAML nor JSON"),
        ('{"kind": ', "neither YAML nor JSON"),
        ("kind: \x07", "neither YAML nor JSON"),
        (r'{"kind": "Pod", "metadata": {"name": "p\ud800"}}', "neither YAML nor JSON: line 1, column 42: in double quotes"),
    ],
)  # fmt: skip
def test_strict_bad_input_ends_with_2_and_names_file_object_and_field(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    good = tmp_path / "good.yaml"
    good.write_text(writing.dump(msgspec.to_builtins(make.node(name="z")) | {"kind": "Node"}))
    strict = refused("-f", str(good), "-f", str(path), "--strict")
    assert strict.startswith(f"{path}: {said}")


def test_a_bad_option_is_refused_by_name(tmp_path: Path) -> None:
    assert "'xml' is not one of 'table', 'wide', 'json', 'yaml'" in refused("-f", "-", "-o", "xml")
    settings = tmp_path / "config.yaml"
    settings.write_text("slicePods: 0")
    assert refused("-f", "-", "--config", str(settings)) == (
        f"{settings}: slicePods: 0 is not a whole number above 0"
    )


def test_the_function_gives_what_the_command_prints_and_leaves_its_input_alone() -> None:
    objects = [GPU_NODE, pod("p", containers=[make.container(gpu=1)])]
    before = json.dumps(objects)
    first, second = schedule(objects, now=5), schedule(objects, now=5)
    assert first == second
    assert json.dumps(objects) == before
    with pytest.raises(InputProblem) as caught:
        schedule([NODE, pod(schedulerName=5)], strict=True)
    assert (caught.value.position, caught.value.name) == (1, "Pod default/p")


def ten_times(*lines: str) -> str:
    """YAML of which each line but the first stands for ten of the one before it."""
    levels = [f"a0: &a0 {lines[0]}"]
    levels += [f"a{i}: &a{i} {lines[1]}".replace("*", ",".join([f"*a{i - 1}"] * 10)) for i in range(1, 12)]  # fmt: skip
    return "\n".join(levels)


LIST = "{kind: List, items: [*]}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"kind: Pod\n{ten_times('[x]', '[*]')}", "aliases repeat more than 100000 values"),
        (f"{ten_times(LIST.replace('*', ''), LIST)}\nkind: List\nitems: [*a11]", "aliases repeat more than 100000 values"),
        (f"kind: Pod\na: &a {{{','.join(f'k{i}: 0' for i in range(1000))}}}\n" + "\n".join(f"b{i}: {{<<: *a}}" for i in range(101)), "aliases repeat more than 100000 values"),
        (f"kind: Pod\na: &a {{x: 1}}\nb: {{<<: [{','.join(['*a'] * 101)}]}}", "a merge key names more than 100 mappings"),
        ("&a\nkind: List\nitems: [*a]", "is nested more than 200 levels deep, or holds itself"),
        ("kind: Pod\nspec: &a {a: {b: *a}}", "is nested more than 200 levels deep, or holds itself"),
        ('{"kind": "Pod", "a": ' + "[" * 300 + "]" * 300 + "}", "is nested more than 200 levels deep"),
        ('{"kind": "Pod", "a": ' + "[" * 99999 + "]" * 99999 + "}", "is nested more than 200 levels deep"),
    ],
    ids=["aliases", "lists", "merged", "names", "list-of-itself", "itself", "deep", "deepest"],
)  # fmt: skip
def test_a_file_that_is_larger_than_it_looks_is_refused_before_it_is_unfolded(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "bomb.yaml"
    path.write_text(text)
    assert refused("-f", str(path)).startswith(f"{path}: {said}")


def test_anchors_and_merge_keys_as_people_write_them_are_read() -> None:
    shared = "template: &pod\n  spec: &spec {schedulerName: evenkeel, containers: &c [{name: c}]}"
    listed = f"kind: List\n{shared}\nitems:\n" + "\n".join(
        f"- {{<<: *pod, kind: Pod, metadata: {{name: p{i}}}, spec: {{<<: *spec, containers: *c}}}}"
        for i in range(300)
    )
    found = answer("-f", "-", stdin=f"{writing.dump(NODE)}---\n{listed}")
    assert found["summary"] == {"nodes": 1, "pods": 300, "scheduled": 110, "pending": 190}


def test_that_there_is_no_node_is_said() -> None:
    (warning,) = answer("-f", "-", stdin=writing.dump(pod()))["warnings"]
    assert warning == "no Node is among the objects: add nodes or use --context"
    agents = {"kind": "DaemonSet", "metadata": {"name": "d"}, "spec": {"template": {"spec": pod()["spec"]}}}  # fmt: skip
    (warning,) = answer("-f", "-", stdin=writing.dump(agents))["warnings"]
    assert warning == (
        "no Node is among the objects: add nodes or use --context; without a Node, a DaemonSet has no pods"
    )
    gone = answer("-f", "-", "--without-node", "a", stdin=writing.dump_all([NODE, pod()]))
    assert gone["warnings"] == []
