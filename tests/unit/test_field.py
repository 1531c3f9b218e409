"""Inputs after public reports, in tests/field: what each command makes of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from scheduler import cli
from scheduler.audit.words import write_short
from tests.prose import unwrapped

Json = dict[str, Any]
FOLDER = Path(__file__).parents[1] / "field"


def run(*arguments: object, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(cli.app, list(map(str, arguments)), input=stdin)


def simulated(*files: Path | str, **more: Any) -> Json:
    given = [word for file in files for word in ("-f", file)]
    result = run("simulate", *given, "-o", "json", **more)
    assert result.exit_code == 0, result.output
    found: Json = json.loads(result.stdout)
    return found


def test_words_that_kubectl_takes_as_text_are_text() -> None:
    folder = FOLDER / "yaml-like-kubectl"
    found = simulated(folder / "in.yaml", folder / "crd.yaml", folder / "times.yaml")
    assert sorted(one["name"].partition("-")[0] for one in found["pods"]) == ["metrics", "nightly"]
    assert {one["node"] for one in found["pods"]} == {"n1"}
    assert found["passedOver"] == {"CustomResourceDefinition": 1}
    audited = run("audit", "-f", folder / "in.yaml", "-f", folder / "crd.yaml", "-o", "json")
    assert audited.exit_code == 0, audited.output


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_dump_that_powershell_wrote_is_read_from_a_file_and_from_a_pipe(
    tmp_path: Path, encoding: str
) -> None:
    raw = (FOLDER / "yaml-like-kubectl/in.yaml").read_text(encoding="utf-8").encode(encoding)
    path = tmp_path / "dump.yaml"
    path.write_bytes(raw)
    assert simulated(path)["summary"]["scheduled"] == 1
    assert simulated("-", stdin=raw)["summary"]["scheduled"] == 1
    assert run("audit", "-f", path).exit_code == 0
    settings = tmp_path / "config.yaml"
    settings.write_bytes("slicePods: 0".encode(encoding))
    assert "slicePods: 0 is not" in unwrapped(
        run("simulate", "-f", path, "--config", settings).stderr
    )


def test_one_file_that_cannot_be_read_is_a_mistake_beside_others(tmp_path: Path) -> None:
    good, bad = FOLDER / "yaml-like-kubectl/in.yaml", tmp_path / "bad.yaml"
    bad.write_text("kind: Pod\n---\nkind: [\n---\nkind: ConfigMap\nmetadata: {name: c}\n")
    result = run("simulate", "-f", bad, "-f", good, "-o", "json")
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert (found["summary"]["scheduled"], found["passedOver"]) == (1, {"ConfigMap": 1})
    unread = found["mistakes"][1]
    assert (unread["file"], unread["place"]) == (str(bad), "document 2")
    assert unread["problem"].startswith("neither YAML nor JSON: line 4, column 1: ")
    assert f"{bad}: document 2: neither YAML nor JSON" in unwrapped(result.stderr)
    assert f"{bad}: document 2: neither YAML" in run("audit", "-f", bad, "-f", good).stdout
    strict = run("simulate", "-f", bad, "-f", good, "--strict")
    assert (strict.exit_code, "document 2: neither YAML" in unwrapped(strict.stderr)) == (2, True)
    # Where nothing can be read there is nothing to answer about.
    bad.write_text("kind: [")
    for command in ("simulate", "audit"):
        alone = run(command, "-f", bad)
        assert alone.exit_code == 2
        assert unwrapped(alone.stderr).startswith(f"{bad}: neither YAML nor JSON")


@pytest.mark.parametrize(
    ("annotation", "value", "node"),
    [
        ("nvidia.com/use-gpuuuid", "GPU-s1", "shared"),
        ("nvidia.com/nouse-gpuuuid", "GPU-s0", "shared"),
        ("nvidia.com/numa-bind", "true", "shared"),
        ("nvidia.com/vgpu-mode", "hami-core", "shared"),
        ("nvidia.com/vgpu-mode", "mps", None),
        ("nvidia.com/use-gpuuuid", "GPU-p", None),
        ("nvidia.com/use-gputype", "RTX 3090", "shared"),
        ("nvidia.com/use-gputype", "P4", "plain"),
        ("nvidia.com/nouse-gputype", "RTX", "plain"),
        ("nvidia.com/use-gputype", "H100", None),
    ],
)
def test_a_wish_that_only_a_card_can_grant_is_not_dropped(
    annotation: str, value: str, node: str | None
) -> None:
    pod = {
        "kind": "Pod",
        "metadata": {"name": "p", "annotations": {annotation: value}},
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]},
    }
    nodes = FOLDER / "card-wishes-on-plain-nodes/in.yaml"
    found = simulated(nodes, "-", stdin=json.dumps(pod).encode())["pods"][0]
    assert found["node"] == node, found["message"]
    if node is None:
        assert "annotations" in found["message"]


def audited(*files: Path | str, **more: Any) -> Json:
    given = [word for file in files for word in ("-f", file)]
    result = run("audit", *given, "-o", "json", "--price", "Tesla-T4=400", **more)
    assert result.exit_code == 0, result.output
    found: Json = json.loads(result.stdout)
    return found


def of_sharing(name: str, offered: int, **labels: str) -> Json:
    return {
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {f"nvidia.com/gpu.{key}": value for key, value in labels.items()},
        },
        "status": {"allocatable": {"cpu": "8", "memory": "30Gi", "pods": "29", "nvidia.com/gpu": offered}},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "offered", "gpus"),
    [
        ({"product": "Tesla-T4-SHARED", "count": "1", "replicas": "12"}, 12, 1),
        ({"product": "Tesla-T4", "count": "2", "replicas": "4"}, 8, 2),
        ({"product": "Tesla-T4-SHARED", "count": "2"}, 20, 2),
        ({"product": "Tesla-T4", "count": "1"}, 2, 2),
        ({"product": "Tesla-T4", "count": "2", "replicas": "1"}, 2, 2),
        ({"product": "Tesla-T4", "replicas": "many"}, 2, 2),
        ({"product": "Tesla-T4-SHARED", "replicas": "0"}, 2, 2),
    ],
)
def test_replicas_of_a_card_cost_one_card(labels: dict[str, str], offered: int, gpus: int) -> None:
    pod = {
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": offered // 2}}}]},
    }  # fmt: skip
    node = of_sharing("n", offered, **labels)
    found = audited("-", stdin="\n---\n".join(map(json.dumps, (node, pod))).encode())
    total = found["total"]
    assert total["capacity"]["gpuCompute"] == gpus
    assert total["used"]["gpuCompute"] == gpus / 2
    (model,) = found["gpuModels"]
    assert (model["gpus"], model["parts"], model["price"]) == (gpus, offered, 400)
    units = found["prices"]
    rest = 8 * units["cpu-core"] + 30 * units["memory-gib"]
    assert total["value"]["capacity"] == pytest.approx(400 * gpus + rest, abs=0.01)


def test_a_machine_with_shared_cards_costs_what_it_costs_without() -> None:
    found = audited(FOLDER / "shared-gpus-in-money/nodes.yaml")
    assert found["total"]["capacity"]["gpuCompute"] == 2
    said = run("audit", "-f", FOLDER / "shared-gpus-in-money/nodes.yaml").stdout
    assert "Tesla-T4: 2 GPUs, offered as 13 parts (time-slicing, MPS or MIG)" in said


def _spare(found: Json, name: str) -> Json:
    (row,) = (row for row in found["nodes"] if row["name"] == name)
    return {key: row["spare"][key] for key in ("cpu", "memory")}


def test_a_node_whose_gpus_nobody_counts_is_a_gpu_node(tmp_path: Path) -> None:
    nodes = FOLDER / "cpu-pods-on-renamed-gpus/in.yaml"
    assert [one["node"] for one in simulated(nodes)["pods"]] == ["b-cpu"]
    # The plugin of one node is down: only a label says that there are GPUs.
    silent = tmp_path / "silent.json"
    body = {"labels": {"nvidia.com/gpu.present": "true"}, "name": "a-silent"}
    status = {"allocatable": {"cpu": "8", "memory": "30Gi", "pods": "29"}}
    silent.write_text(json.dumps({"kind": "Node", "metadata": body, "status": status}))
    found = audited(nodes, silent)
    having = ["a-mig", "a-shared", "a-silent"]
    assert sorted(row["name"] for row in found["nodes"] if row["hasGpus"]) == having
    assert found["uncounted"] == [
        {
            "node": "a-shared",
            "offers": {"nvidia.com/gpu.shared": 128},
            "gpus": None,
            "spare": _spare(found, "a-shared"),
        },
        {"node": "a-silent", "offers": {}, "gpus": None, "spare": _spare(found, "a-silent")},
    ]
    # Of the free cores that count as no loss, it is said which are beside such GPUs: in text, page and JSON.
    cores, gib = (sum(one["spare"][key] for one in found["uncounted"]) for key in ("cpu", "memory"))
    assert cores > 0
    assert found["total"]["capacity"]["gpuCompute"] == pytest.approx(2 / 7)
    told = f"{write_short(cores)} cores and {write_short(gib)} GiB of memory that count as no loss are on those nodes; whether pods"
    for form in ("table", "html"):
        said = " ".join(run("audit", "-f", nodes, "-f", silent, "-o", form).stdout.split())
        assert (
            "2 nodes have GPUs that Evenkeel cannot count, so no figure includes these GPUs: a-shared"
            in said
        )
        assert told in said
    assert (
        "count as no loss"
        not in run("audit", "-f", nodes, "-f", silent, "--by", "namespace").stdout
    )
    # What else is a GPU stands in the configuration.
    other = {
        "kind": "Node",
        "metadata": {"name": "a", "labels": {}},
        "status": {"allocatable": {"cpu": "8", "memory": "30Gi", "pods": "29", "habana.ai/gaudi": 8}},
    }  # fmt: skip
    path = tmp_path / "other.json"
    path.write_text(json.dumps(other))
    text = nodes.read_text(encoding="utf-8")
    rest = tmp_path / "rest.yaml"
    rest.write_text("\n---\n".join(text.split("---")[3:]))
    assert [one["node"] for one in simulated(path, rest)["pods"]] == ["a"]
    settings = tmp_path / "config.yaml"
    settings.write_text("gpuResources: [habana.ai/*]")
    given = ["simulate", "-f", path, "-f", rest, "--config", settings, "-o", "json"]
    assert json.loads(run(*given).stdout)["pods"][0]["node"] == "b-cpu"
    settings.write_text("gpuResources: [gaudi]")
    assert "gpuResources[0]: 'gaudi' is not a resource" in unwrapped(run(*given).stderr)
