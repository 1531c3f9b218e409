"""Inputs after public reports, in tests/field: what each command makes of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from scheduler import cli

Json = dict[str, Any]
FOLDER = Path(__file__).parents[1] / "field"


def run(*arguments: str | Path, stdin: bytes = b"") -> Result:
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
    assert "slicePods: 0 is not" in run("simulate", "-f", path, "--config", settings).stderr


def test_one_file_that_cannot_be_read_is_a_mistake_beside_others(tmp_path: Path) -> None:
    good, bad = FOLDER / "yaml-like-kubectl/in.yaml", tmp_path / "bad.yaml"
    bad.write_text("kind: Pod\n---\nkind: [\n---\nkind: ConfigMap\nmetadata: {name: c}\n")
    result = run("simulate", "-f", bad, "-f", good, "-o", "json")
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert (found["summary"]["scheduled"], found["passedOver"]) == (1, {"ConfigMap": 1})
    unread = found["mistakes"][1]
    assert (unread["file"], unread["place"]) == (str(bad), "document 2")
    assert unread["problem"].startswith("neither YAML nor JSON: while parsing")
    assert f"{bad}: document 2: neither YAML nor JSON" in result.stderr
    assert f"{bad}: document 2: neither YAML" in run("audit", "-f", bad, "-f", good).stdout
    strict = run("simulate", "-f", bad, "-f", good, "--strict")
    assert (strict.exit_code, "document 2: neither YAML" in strict.stderr) == (2, True)
    # Where nothing can be read there is nothing to answer about.
    bad.write_text("kind: [")
    for command in ("simulate", "audit"):
        alone = run(command, "-f", bad)
        assert alone.exit_code == 2
        assert alone.stderr.startswith(f"{bad}: neither YAML nor JSON")


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
