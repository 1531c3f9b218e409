"""``evenkeel explain`` as a user types it."""

import json
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from scheduler import cli
from scheduler.config import Config
from scheduler.documents import writing
from scheduler.explain import pods
from scheduler.explain.scene import Scene
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.situation import prepare
from scheduler.state import checks
from tests import make
from tests.prose import unwrapped
from tests.unit.test_simulate_what_if import gpu_node, node, pod, workload

Json = dict[str, Any]
POD_KEYS = {
    "schemaVersion",
    "kind", "namespace", "name", "uid", "scheduler", "priority", "node", "state", "message", "remarks",
    "queue", "problem", "ofPod", "claims", "preemption", "nodes", "reasons", "details", "nearest", "advice", "now", "best", "weights", "objective", "group",
}  # fmt: skip
NODE_KEYS = {
    "schemaVersion",
    "kind",
    "name",
    "cordoned",
    "silent",
    "taints",
    "resources",
    "cards",
    "pools",
    "devices",
    "counters",
    "pods",
    "waiting",
}


def explain(*arguments: str, objects: list[Json]) -> Result:
    stdin = writing.dump_all(objects)
    return CliRunner().invoke(cli.app, ["explain", *arguments, "-f", "-"], input=stdin)


def answer(*arguments: str, objects: list[Json]) -> Json:
    result = explain(*arguments, "-o", "json", objects=objects)
    assert result.exit_code == 0, result.output
    found: Json = json.loads(result.stdout)
    assert found == yaml.safe_load(explain(*arguments, "-o", "yaml", objects=objects).stdout)
    assert found.keys() == (POD_KEYS if arguments[0] == "pod" else NODE_KEYS)
    return found


def said(*arguments: str, objects: list[Json]) -> list[str]:
    result = explain(*arguments, objects=objects)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def sentences(lines: list[str]) -> str:
    """The lines of a pipe as one text, whatever was wrapped."""
    return " ".join(" ".join(lines).split())


def on(name: str, where: str, cards: str = "", **figures: Any) -> Json:
    notes = {"hami.io/vgpu-node": where, "hami.io/vgpu-devices-allocated": cards} if cards else {}
    return pod(name, node=where, annotations=notes, **figures)


def test_a_pod_that_waits_is_told_why_what_is_closest_and_what_would_help() -> None:
    objects = [
        gpu_node("g", cards=2, cpu=16), node("a", cpu=4, taints=[("t", "x", "NoSchedule")]),
        on("r", "g", "g-GPU-0,NVIDIA,8000,30:;", gpu=1, gpumem=8000, gpucores=30),
        pod("first", priority=5), pod("big", gpu=2, gpumem=9000),
    ]  # fmt: skip
    found = answer("pod", "default/big", objects=objects)
    assert (found["state"], found["node"], found["now"]) == ("waits", None, None)
    assert found["message"].startswith("0/2 nodes are available: 1 node(s) had no fitting GPU, 1 ")
    assert found["queue"] == {
        "place": 2,
        "of": 2,
        "ahead": ["default/first"],
        "gates": [],
        "heldBy": None,
    }
    assert [(one["reason"], one["nodes"], one["names"]) for one in found["reasons"]] == [
        ("node(s) had no fitting GPU", 1, ["g"]),
        ("node(s) had untolerated taint(s)", 1, ["a"]),
    ]
    closest = found["nearest"]
    assert (closest["node"], closest["cardsRequested"]) == ("g", 2)
    assert [(card["index"], card["refusal"]) for card in closest["cards"]] == [
        (0, "CardInsufficientMemory"),
        (1, None),
    ]
    assert closest["cards"][0]["memoryMiB"] == {"total": 15360, "used": 8000, "free": 7360}
    assert found["advice"][0]["steps"] == [
        {"do": "requestLess", "resource": "nvidia.com/gpumem", "requested": 9000, "atMost": 7360,
         "perContainer": True, "containers": []}
    ]  # fmt: skip
    lines = said("pod", "big", objects=objects)
    assert lines[:2] == [
        "Pod default/big waits: it fits nowhere.",
        "  Number 2 of 2 pods to be tried, by priority and age, behind default/first.",
    ]
    assert f" {found['message']} " in sentences(lines)
    assert "Closest: g" in lines
    assert "  1 of 2 cards would fit, 2 are requested" in lines
    assert f" 1. {found['advice'][0]['text']}" in sentences(lines)


def test_a_pod_that_fits_is_told_where_it_would_go_and_how_nodes_score() -> None:
    objects = [gpu_node("g", cards=2), node("a"), node("b", cpu=16), pod("p", gpu=1, gpumem=4000)]
    found = answer("pod", "default/p", objects=objects)
    assert (found["state"], found["message"], found["advice"]) == ("fits", "", [])
    assert found["now"] == {
        "node": "g",
        "devices": [{"id": "g-GPU-0", "index": 0, "memoryMiB": 4000, "cores": 0}],
        "claims": [],
    }
    (best,) = found["best"]
    assert (best["node"], best["place"]) == ("g", 1)
    weighted = {name: best["scores"][name] * found["weights"][name] for name in best["scores"]}
    assert best["weighted"] == pytest.approx(weighted)
    assert best["total"] == pytest.approx(sum(weighted.values()))
    assert best["after"][0] == {"resource": "cpu", "used": 1000, "total": 8000}
    lines = said("pod", "default/p", objects=objects)
    assert "  Tried now, it would go to g with card 0 (4000 MiB)." in lines


def test_a_pod_with_a_node_is_judged_as_if_it_came_now_and_nothing_is_changed() -> None:
    # Where q is, no place for half a node is left to lose.
    objects = [node("a", cpu=8), node("b", cpu=8), on("p", "a", cpu=2), on("q", "b", cpu=5)]
    found = answer("pod", "default/p", objects=objects)
    assert (found["state"], found["node"], found["queue"]) == ("bound", "a", None)
    assert "Evaluated again against the cluster as it is now" in found["remarks"][0]
    assert found["now"]["node"] == "b"
    assert [(one["node"], one["place"]) for one in found["best"]] == [("b", 1), ("a", 2)]
    scene = Scene(prepare(objects, Changes(), strict=True), Config(), is_live=False)
    before = checks.take_fingerprint(scene.engine._cluster)
    again = pods.explain_pod(scene, scene.pods["default/p"])
    assert {"schemaVersion": 1} | again == found
    assert checks.take_fingerprint(scene.engine._cluster) == before
    # Where it is, it would not come by now.
    closed = [node("a", cpu=4, unschedulable=True), on("p", "a", cpu=2)]
    found = answer("pod", "default/p", objects=closed)
    assert [lack["rule"] for lack in found["nearest"]["lacks"]] == ["NodeUnschedulable"]
    assert "a would refuse the pod now" in said("pod", "default/p", objects=closed)


def test_who_is_not_tried_says_so() -> None:
    gated = pod("gated", spec={"schedulingGates": [{"name": "example.com/wait"}]})
    going = pod("going")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    wrong = pod("wrong", gpu=1, gpumem="lots")
    other = pod("other", scheduler_name="else")
    objects = [node("a"), gated, going, wrong, other]
    found = answer("pod", "default/gated", objects=objects[:2])
    assert (found["state"], found["queue"]["gates"]) == ("gated", ["example.com/wait"])
    assert answer("pod", "default/going", objects=[objects[0], going])["state"] == "deleting"
    result = explain("pod", "default/wrong", "-o", "json", objects=objects)
    assert json.loads(result.stdout)["state"] == "held"
    assert "gpumem" in json.loads(result.stdout)["problem"]
    remarks = answer("pod", "default/other", objects=[objects[0], other])["remarks"]
    assert remarks == [
        'It names scheduler "else", which is not one of ours (evenkeel): evaluated as one of ours.'
    ]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ("pod", "default/webb"),
            "pod default/webb: does not exist. Of 2 pods, similar: default/web",
        ),
        (("pod", "x/y/z"), 'NAME: "x/y/z" is not a name: write NAME with -n NAMESPACE'),
        (("pod", "x/"), 'NAME: "x/" is not a name'),
        (("node", "shared-l"), "node shared-l: does not exist. Of 1 node, similar: shared-1"),
        (("node", "a/b"), 'NAME: "a/b" is not a node name: write NAME without a namespace'),
        (("pod", "default/done"), "pod default/done: has finished"),
        (
            ("pod", "*"),
            "pod default/*: does not exist. There are 2 pods: default/other, default/web",
        ),
    ],
)
def test_what_is_not_there_is_refused_with_what_is_near(
    arguments: tuple[str, ...], text: str
) -> None:
    objects = [node("shared-1"), pod("web"), pod("other"), pod("done", phase="Succeeded")]
    result = explain(*arguments, objects=objects)
    assert (result.exit_code, result.stdout) == (2, "")
    assert text in unwrapped(result.stderr)


@pytest.mark.parametrize(
    ("n", "ending"),
    [
        (5, "There are 5 pods: default/p-0, default/p-1, default/p-2, default/p-3, default/p-4"),
        # Some of many would be no help.
        (6, "None of 6 pods has a similar name"),
    ],
)
def test_where_no_name_is_near_a_few_are_named_and_many_counted(n: int, ending: str) -> None:
    objects = [pod(f"p-{i}") for i in range(n)]
    result = explain("pod", "default/zzzzzzzzzzzzzzzz", objects=objects)
    said = " ".join(result.stderr.split())
    assert said.endswith(f"does not exist. {ending}")


def test_mistakes_of_other_objects_are_told_and_do_not_stop_the_answer() -> None:
    broken = pod("broken") | {"spec": {"containers": "none"}}
    bad = node("bad", cpu="many")
    result = explain("pod", "default/p", objects=[node("a"), pod("p"), broken, bad])
    assert result.exit_code == 3
    assert result.stdout.startswith("Pod default/p waits, although it fits on at least one node.")
    assert "Pod default/broken: spec.containers" in unwrapped(result.stderr)
    for arguments in (("pod", "default/broken"), ("node", "bad")):
        result = explain(*arguments, objects=[node("a"), pod("p"), broken, bad])
        assert result.exit_code == 2
        assert "cannot be read" in unwrapped(result.stderr)


def test_pods_of_a_workload_that_is_not_there_yet_can_be_asked_about() -> None:
    objects = [node("a"), workload("Job", template={"spec": {"containers": [make.container(cpu=9)]}})]  # fmt: skip
    by_beginning = answer("pod", "default/web", objects=objects)
    assert by_beginning["name"].startswith("web-")
    found = answer("pod", f"default/{by_beginning['name']}", objects=objects)
    assert (found["state"], found["name"]) == ("waits", by_beginning["name"])


def test_a_node_says_who_holds_what_and_who_waits_for_it() -> None:
    objects = [
        gpu_node("g", cards=2, cpu=8, taints=[("node.kubernetes.io/not-ready", "", "NoExecute")]),
        on("r", "g", "g-GPU-1,NVIDIA,8000,30:;", gpu=1, gpumem=8000, gpucores=30, priority=7),
        pod("w1", cpu=20), pod("w2", cpu=30), pod("w3", tolerations=[{"operator": "Exists"}]),
    ]  # fmt: skip
    found = answer("node", "g", objects=objects)
    assert [card["holders"] for card in found["cards"]] == [
        [],
        [{"pod": "default/r", "memoryMiB": 8000, "cores": 30, "sharers": 1}],
    ]
    assert found["cards"][1]["memoryMiB"] == {"total": 15360, "used": 8000, "free": 7360}
    assert found["resources"][0] == {
        "resource": "cpu",
        "total": 8000,
        "used": 1000,
        "free": 7000,
        "gpuPart": 1,
    }
    assert [(pod["name"], pod["priority"]) for pod in found["pods"]] == [("r", 7)]
    groups = [(one["fits"], one["names"]) for one in found["waiting"]["groups"]]
    assert groups == [(True, ["default/w3"]), (False, ["default/w1", "default/w2"])]
    assert found["waiting"]["groups"][1]["short"] == {
        "cpu": {"leastRequested": 20000, "free": 7000}
    }
    lines = said("node", "g", objects=objects)
    assert lines[1] == "  taint node.kubernetes.io/not-ready:NoExecute, which reports its state"
    assert "    [#######.....] 8000 of 15360 MiB, 7360 free" in lines
    assert "                   default/r (8000 MiB, 30 %)" in lines
    assert "3 pods wait" in lines


def test_whose_place_a_pod_takes_or_would_take_if_it_might() -> None:
    objects = [node("a", cpu=4), on("low", "a", cpu=4), on("daemon", "a", cpu=0, priority=9)]
    found = answer("pod", "default/p", objects=[*objects, pod("p", cpu=2, priority=5)])
    assert (found["state"], found["preemption"]["notDone"]) == ("preempts", None)
    assert [one["name"] for one in found["preemption"]["victims"]] == ["low"]
    never = pod("p", cpu=2, priority=5, spec={"preemptionPolicy": "Never"})
    found = answer("pod", "default/p", objects=[*objects, never])
    assert found["state"] == "waits"
    assert [one["name"] for one in found["preemption"]["victims"]] == ["low"]
    lines = said("pod", "default/p", objects=[*objects, never])
    why = "this is not done because its preemptionPolicy is Never."
    assert f" Preempting pod default/low on a would let the pod in; {why} " in sentences(lines)
    found = answer("pod", "default/p", objects=[*objects, pod("p", cpu=2)])
    assert (found["state"], found["preemption"]) == ("waits", None)


def test_a_pod_that_is_refused_for_what_it_says_is_not_told_to_look_for_other_nodes() -> None:
    claims = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "nope"}}]}
    full = node("a")
    full["status"]["allocatable"]["pods"] = "0"
    lines = said("pod", "p", objects=[full, pod("p", spec=claims)])
    refusal = 'persistentvolumeclaim "nope" not found'
    said_last = f" Nothing was found that would, nor would other nodes: {refusal}."
    assert sentences(lines).endswith(said_last)
    assert answer("pod", "p", objects=[full, pod("p", spec=claims)])["ofPod"] == refusal
    assert said("pod", "p", objects=[full, pod("p")])[-1] == (
        "  Nothing was found that would, but other nodes."
    )


def test_nobody_waits_behind_a_pod_that_somebody_must_mend() -> None:
    held = pod("held", priority=9, cpu="much")
    wrong = pod("wrong", priority=8, gpu=1, gpumem="lots")
    objects = [node("a"), held, wrong, pod("first", priority=7), pod("p")]

    def queue(name: str) -> Json | None:
        found: Json = json.loads(explain("pod", name, "-o", "json", objects=objects).stdout)
        place: Json | None = found["queue"]
        return place

    assert queue("p") == {
        "place": 2,
        "of": 2,
        "ahead": ["default/first"],
        "gates": [],
        "heldBy": None,
    }
    assert (queue("held"), queue("wrong")) == (None, None)


def _alike(**words: Any) -> Json:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "w"}}, **words}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _even(**words: Any) -> Json:
    one = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
           "labelSelector": {"matchLabels": {"app": "w"}}}  # fmt: skip
    return {"topologySpreadConstraints": [one | words]}


@pytest.mark.parametrize(
    ("spec", "texts"),
    [
        (
            {"affinity": {"podAntiAffinity": _alike()}},
            [["in the way in zone=x: default/w-0, default/w-1"]],
        ),
        (
            {"affinity": {"podAffinity": _alike(labelSelector={"matchLabels": {"app": "none"}})}},
            [["no pod that matches all of its affinity terms is in zone=x"]],
        ),
        (
            {"affinity": {"podAffinity": _alike(topologyKey="rack")}},
            [["it has no label rack"]],
        ),
        (_even(), [["pods counted in zone=x: 2; fewest in any domain: 0; maxSkew 1"]]),
        (
            _even(maxSkew=2, minDomains=9),
            [["pods counted in zone=x: 2; fewest in any domain: 0; maxSkew 2"]],
        ),
    ],
)  # fmt: skip
def test_which_pods_are_in_the_way_on_the_closest_node_is_told(
    spec: Json, texts: list[list[str]]
) -> None:
    nodes = [
        node("a", labels={"zone": "x"}),
        node("b", labels={"zone": "x"}),
        node("c", labels={"zone": "y"}, unschedulable=True),
    ]
    there = [pod(f"w-{i}", node=name, labels={"app": "w"}) for i, name in enumerate("ab")]
    asked = pod("p", spec=spec, labels={"app": "w"})
    objects = [*nodes, *there, pod("other", node="a"), asked]
    found = answer("pod", "p", objects=objects)["nearest"]
    assert [one["counted"] for one in found["lacks"]] == texts
    assert f"    {texts[0][0]}" in said("pod", "p", objects=objects)


def test_whose_anti_affinity_keeps_a_pod_off_the_closest_node_is_told() -> None:
    shunning = pod("shy", node="b", spec={"affinity": {"podAntiAffinity": _alike()}})
    nodes = [node("a", labels={"zone": "x"}), node("b", labels={"zone": "x"})]
    objects = [*nodes, shunning, pod("other", node="a"), pod("p", labels={"app": "w"})]
    (lack,) = answer("pod", "p", objects=objects)["nearest"]["lacks"]
    assert lack["counted"] == ["in the way in zone=x: default/shy"]


def test_figures_of_memory_are_of_one_unit_and_bars_show_what_their_heading_says() -> None:
    """``974.7Gi free of 1206759552Ki``, and bars of what was used under the heading "Free"."""
    big = node("big", memory="1206759552Ki", cpu=8)
    objects = [big, pod("runs", node="big", memory="176Gi", cpu=6), pod("waits", memory="1000Gi")]
    (short,) = [
        line for line in said("pod", "default/waits", objects=objects) if "requests 1000Gi" in line
    ]
    assert short.strip() == "Insufficient memory: requests 1000Gi, 974.8Gi free of 1150.8Gi"
    lines = said("node", "big", objects=objects)
    at = lines.index("In use and free")
    assert lines[at + 1 : at + 3] == [
        "  [#########...] cpu: 6 of 8, 2 free",
        "  [##..........] memory: 176Gi of 1150.8Gi, 974.8Gi free",
    ]


def test_advice_to_end_pods_names_every_one() -> None:
    """``end pods A, B, C and 1 more`` cannot be followed."""
    runs = [pod(f"runs-{i}", node="n", cpu=2) for i in range(5)]
    waits = pod("waits", cpu=10)
    text = sentences(said("pod", "default/waits", objects=[node("n", cpu=10), *runs, waits]))
    names = ", ".join(f"default/runs-{i}" for i in range(5))
    assert f"end pods {names} (priority 0 at most)" in text
