"""What commands print as JSON is what ``docs/schemas`` says, no more and no less."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from typer.testing import CliRunner

from docs.schemas import write
from scheduler import cli
from scheduler.documents import writing
from scheduler.simulate import schedule
from tests import make
from tests.differential.run import sample
from tests.docs import blocks, examples
from tests.model import mixed_fleet
from tests.unit.test_simulate_what_if import node, pod, workload

Json = dict[str, Any]
FOLDER = blocks.ROOT / "docs" / "schemas"
NAMES = [of.__name__ for of in write.ALL]


def checker(name: str) -> Any:
    schema = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema)


def check(name: str, *arguments: str, stdin: str = "", codes: tuple[int, ...] = (0,)) -> Json:
    """Run a command and hold what it prints against a schema; its answer."""
    done = CliRunner().invoke(cli.app, [*arguments, "-o", "json"], input=stdin)
    assert done.exit_code in codes, done.output
    found: Json = json.loads(done.stdout)
    errors = sorted(checker(name).iter_errors(found), key=lambda error: str(error.path))
    if errors and errors[0].context:
        errors = sorted(errors[0].context, key=lambda error: -len(error.absolute_path))
    assert not errors, f"{list(errors[0].absolute_path)}: {errors[0].message[:300]}"
    assert found["schemaVersion"] == 1
    return found


@pytest.fixture(name="fleet", scope="module")
def fleet_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nodes with cards of several kinds, whole GPUs and none, pods that run and that wait for all kinds of reasons."""
    objects = [make.raw(one) | {"kind": "Node"} for one in mixed_fleet.nodes()]
    pods = [*mixed_fleet.running(), *mixed_fleet.pending()]
    objects += [make.raw(one) | {"kind": "Pod"} for one in pods]
    objects += [workload("Job", "s", suspend=True), {"apiVersion": "x/v1", "kind": "ConfigMap", "metadata": {"name": "c"}}]  # fmt: skip
    path = tmp_path_factory.mktemp("fleet") / "fleet.json"
    path.write_text(json.dumps({"kind": "List", "items": objects}), encoding="utf-8")
    return path


def objects_in(schema: Any) -> Iterator[Json]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for inner in schema.values():
            yield from objects_in(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from objects_in(inner)


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_one_is_strict_and_is_what_its_script_writes(name: str) -> None:
    text = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    of = next(one for one in write.ALL if one.__name__ == name)
    assert text == write.text_of(name, of(), (of.__doc__ or "").strip())
    schema = json.loads(text)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert all("additionalProperties" in one for one in objects_in(schema))
    assert {path.stem for path in FOLDER.glob("*.json")} == set(NAMES)


def test_what_simulate_prints(fleet: Path) -> None:
    of = ["-f", str(fleet)]
    check("simulate", "simulate", *of, "--explain")
    found = check("simulate", "simulate", *of, "--mode", "keel,kube-scheduler", "--explain")
    assert set(found) == {"schemaVersion", "modes"}
    nodes, training = str(examples.NODES), str(examples.FOLDER / "training.yaml")
    gone = check("simulate", "simulate", "-f", nodes, "-f", training, "--without-node", "whole-2")
    assert gone["summary"]["pending"]
    gang = {"labels": {"pod-group.scheduling.sigs.k8s.io": "g"}}
    meta = {"name": "g", "namespace": "default"}
    group = {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup", "metadata": meta, "spec": {"minMember": 2}}  # fmt: skip
    job = workload("Job", "train", parallelism=2, template={
        "metadata": {"annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"}}, "spec": {"containers": [{"name": "c"}]},
    })  # fmt: skip
    levels = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Topology", "metadata": {"name": "t"}, "spec": {"levels": [{"nodeLabel": "rack"}]}}  # fmt: skip
    objects = [node("a", labels={"rack": "r"}), pod("p", cpu=99, **gang), pod("q", **gang), group, job, levels]  # fmt: skip
    found = check("simulate", "simulate", "-f", "-", stdin=writing.dump_all(objects))
    assert [one["state"] for one in found["groups"]] == ["waits", "placed"]
    odd = {"apiVersion": "x/v1", "kind": "Odd", "metadata": {"name": "o"}, "spec": {"template": {"spec": {"containers": [{}]}}}}  # fmt: skip
    low = [pod(f"low-{i}", node="a", cpu=4) for i in range(2)]
    objects = [
        node("a"), *low, pod("high", cpu=8, priority=9), workload("Deployment", "bad", replicas="x"),
        workload("StatefulSet", "db", replicas=1), odd, {"kind": "Pod"},
    ]  # fmt: skip
    found = check("simulate", "simulate", "-f", "-", stdin=writing.dump_all(objects), codes=(3,))
    assert found["mistakes"]
    assert any(one["victims"] for one in found["pods"])


def test_what_plan_prints(fleet: Path) -> None:
    nodes, pods = str(examples.NODES), str(examples.FOLDER / "defragment.yaml")
    of = ["plan", "defrag", "-f", nodes, "-f", pods]
    (bundle,) = check("plan", *of)["bundles"]
    assert bundle["moves"][-1]["letsIn"]
    assert check("plan", *of, "--for", "default/train")["for"] == "default/train"
    assert not check("plan", *of, "--min-run", "10h")["movable"]
    check("plan", "plan", "defrag", "-f", str(fleet), codes=(0, 3))


def test_what_explain_prints(fleet: Path) -> None:
    of = ["-f", str(fleet)]
    pods = [*[*mixed_fleet.running()][::40], *mixed_fleet.pending()]
    kinds = set()
    for one in pods:
        found = check("explain", "explain", "pod", one.metadata.name, *of)
        kinds |= {step["do"] for advice in found["advice"] for step in advice["steps"]}
    for name in ("node-3", "node-70", "node-110", "node-130", "node-197"):
        check("explain", "explain", "node", name, *of)
    taint = ("k", "", "NoSchedule")
    low = pod("low", node="a", cpu=8)
    gone = pod("gone", node="c", cpu=8)
    gone["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    objects = [
        node("a"), node("b", taints=[taint]), node("c"), low, gone, pod("high", cpu=8, priority=9),
        pod("never", cpu=8, priority=9, spec={"preemptionPolicy": "Never"}), pod("waits", cpu=8), pod("huge", cpu=80),
        pod("gated", spec={"schedulingGates": [{"name": "g"}]}), pod("held", cpu="x"),
    ]  # fmt: skip
    stdin = writing.dump_all(objects)
    states = set()
    for name in ("low", "high", "never", "waits", "huge", "gated", "gone"):
        found = check("explain", "explain", "pod", name, "-f", "-", stdin=stdin, codes=(0, 3))
        states.add(found["state"])
        kinds |= {step["do"] for advice in found["advice"] for step in advice["steps"]}
    for name in "abc":
        check("explain", "explain", "node", name, "-f", "-", stdin=stdin, codes=(0, 3))
    rack = blocks.ROOT / "docs" / "examples" / "rack.yaml"
    found = check("explain", "explain", "group", "train", "-f", str(rack))
    assert found["levels"]
    assert found["advice"]
    assert {"bound", "preempts", "waits", "gated"} <= states
    assert {"requestLess", "drop", "tolerate", "wait", "end"} <= kinds


def test_what_queue_prints() -> None:
    of = ["-f", str(examples.FOLDER / "queues.yaml")]
    listed = check("queue", "queue", "list", *of)
    assert {one["name"] for one in listed["queues"]} == {"vision", "speech"}
    assert len(check("queue", "queue", "tree", *of)["queues"]) == 3
    assert check("queue", "queue", "list", "-f", "-", stdin="kind: Odd")["queues"] == []
    kai = ["-f", str(examples.FOLDER / "kai-queues.yaml")]
    assert len(check("queue", "queue", "list", *kai)["kaiQueues"]) == 3
    assert check("queue", "queue", "show", "vision", *kai)["waiters"]
    names = "speech/translate", "speech/serve", "vision/detect"
    found = [check("queue", "queue", "why", name, *kai) for name in names]
    assert [one["state"] for one in found] == ["waits", "held", "holds"]
    assert found[0]["givers"]
    for name in ("vision", "research"):
        assert check("queue", "queue", "show", name, *of)["queue"]["name"] == name
    names = "speech/translate", "vision/depth", "vision/detect"
    states = [check("queue", "queue", "why", name, *of)["state"] for name in names]
    assert states == ["preempts", "waits", "holds"]
    check("queue", "queue", "why", "speech/translate", "--decide", *of)


def test_what_audit_prints(fleet: Path) -> None:
    check("audit", "audit", "-f", str(fleet), "--orders", "2", "--mode", "keel,best-fit")
    bad = node("bad")
    bad["status"]["allocatable"]["cpu"] = "x"
    hidden = node("hidden", labels={"nvidia.com/gpu.present": "true"})
    objects = [
        node("a"),
        bad,
        hidden,
        pod("p", node="a"),
        pod("held", cpu="x"),
        workload("Job", "j"),
    ]
    stdin = writing.dump_all(objects)
    found = check("audit", "audit", "-f", "-", "--price", "X=1", stdin=stdin, codes=(3,))
    assert found["mistakes"]
    assert found["leftOut"]
    assert found["uncounted"]
    for by in ("namespace", "label=app"):
        check("showback", "audit", "-f", str(fleet), "--by", by)
        check("showback", "audit", "-f", "-", "--by", by, stdin=stdin, codes=(3,))


@pytest.mark.parametrize("experiment", ["fill", "churn", "recorded"])
@pytest.mark.parametrize("queue", [False, True])
def test_what_replay_prints(experiment: str, queue: bool) -> None:
    folder = blocks.ROOT / "docs" / "examples" / "web-and-batch"
    more = ["--queue"] if queue and experiment != "fill" else []
    load = [] if experiment == "recorded" else ["--load", "0.5"]
    if experiment == "churn":
        load += ["--arrivals", "1000"]
    arguments = ["--experiment", experiment, "--seeds", "1,2", "--mode", "keel", *load, *more]
    check("replay", "replay", str(folder), *arguments)
    if experiment == "fill":
        data = str(blocks.ROOT / "bench" / "data" / "openb")
        check("replay", "replay", data, "--load", "0.02")


@pytest.mark.many
def test_what_is_said_of_worlds_with_all_features() -> None:
    valid = checker("simulate")
    for world, _ in sample(3, 40):
        found = schedule([*world.objects, *world.incoming], with_nodes=True)
        for one in found["pods"]:
            one |= {"file": "", "own": False, "ofChange": False, "counts": True}
        for one in found["mistakes"]:
            one |= {"file": "", "place": "", "counts": True}
        found |= {
            "ownFiles": [],
            "changed": False,
            "ownUnsuited": [],
            "queueChanges": None,
            "kaiQueueChanges": None,
        }
        errors = list(valid.iter_errors({"schemaVersion": 1} | found))
        assert not errors, errors[0].context[0].message[:300]


def test_yaml_has_the_version_too_and_another_key_is_refused(fleet: Path) -> None:
    for command in ("simulate", "audit"):
        more = ["--by", "namespace"] if command == "audit" else []
        done = CliRunner().invoke(cli.app, [command, "-f", str(fleet), "-o", "yaml", *more])
        assert yaml.safe_load(done.stdout)["schemaVersion"] == 1
    found = check("simulate", "simulate", "-f", str(fleet))
    assert not checker("simulate").is_valid(found | {"more": 1})
    assert not checker("simulate").is_valid(found | {"schemaVersion": 2})
