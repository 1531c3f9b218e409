"""Files that are no Kubernetes objects: each command names the file, what it is, and what is wanted."""

import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from scheduler import cli
from scheduler.documents import writing
from tests.prose import unwrapped
from tests.unit.test_simulate_what_if import node, pod

Json = dict[str, Any]
CHART = {"apiVersion": "v2", "name": "web", "version": "0.1.0"}
VALUES = {"replicaCount": 3, "image": {"repository": "nginx"}}
COMPOSE = {"services": {"web": {"image": "nginx"}}}
KUBECONFIG = {"apiVersion": "v1", "kind": "Config", "clusters": [], "contexts": []}
KUSTOMIZATION = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
SIMULATED = {"schemaVersion": 1, "pods": [], "summary": {}, "passedOver": {}}


def run(*arguments: str | Path, stdin: str = "") -> Result:
    return CliRunner().invoke(cli.app, list(map(str, arguments)), input=stdin)


def refused(*arguments: str | Path, stdin: str = "") -> str:
    result = run(*arguments, stdin=stdin)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    return unwrapped(result.stderr).strip()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A chart, a kustomization and others, as people have them."""
    files: dict[str, Any] = {
        "chart/Chart.yaml": CHART,
        "chart/values.yaml": VALUES,
        "chart/prod.yaml": VALUES,
        "values-prod.yaml": VALUES,
        "kust/kustomization.yaml": KUSTOMIZATION,
        "bare/kustomization.yml": {"namePrefix": "a-"},
        "compose.yaml": COMPOSE,
        "config": KUBECONFIG,
        "simulated.json": SIMULATED,
    }
    for name, body in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(writing.dump(body), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("chart", "is a Helm chart: use `helm template {}/chart | evenkeel simulate -f -`"),
        ("chart/Chart.yaml", "describes a Helm chart: use `helm template {}/chart | evenkeel simulate -f -`"),
        ("chart/values.yaml", "has the values of a Helm chart: use `helm template {}/chart | evenkeel simulate -f -`"),
        ("chart/prod.yaml", "has the values of a Helm chart: use `helm template {0}/chart -f {0}/chart/prod.yaml | evenkeel simulate -f -`"),
        ("values-prod.yaml", "has the values of a Helm chart: use `helm template DIR -f {}/values-prod.yaml | evenkeel simulate -f -`"),
        ("kust", "is a kustomization: use `kubectl kustomize {}/kust | evenkeel simulate -f -`"),
        ("kust/kustomization.yaml", "is a kustomization: use `kubectl kustomize {}/kust | evenkeel simulate -f -`"),
        ("bare", "is a kustomization: use `kubectl kustomize {}/bare | evenkeel simulate -f -`"),
        ("bare/kustomization.yml", "is a kustomization: use `kubectl kustomize {}/bare | evenkeel simulate -f -`"),
        ("compose.yaml", "is a Docker Compose file: use `kompose convert -f {}/compose.yaml --stdout | evenkeel simulate -f -`"),
        ("config", "is a kubeconfig: to read its cluster, use `evenkeel simulate --kubeconfig {}/config`"),
        ("simulated.json", "is the answer of `evenkeel simulate`: Kubernetes objects in YAML or JSON are wanted, such as those from which that answer was made"),
    ],
)  # fmt: skip
def test_what_is_given_instead_of_objects_is_named_with_the_command_that_prints_them(
    folder: Path, name: str, said: str
) -> None:
    path = folder / name
    assert refused("simulate", "-f", path) == f"{path}: {said.format(folder)}"
    for command in ("audit",), ("explain", "pod", "p"):
        theirs = said.format(folder).replace(
            "evenkeel simulate -", f"evenkeel {' '.join(command)} -"
        )
        assert refused(*command, "-f", path) == f"{path}: {theirs}"


def test_in_a_pipe_the_folder_is_not_known() -> None:
    for body, said in (
        (CHART, "describes a Helm chart: use `helm template DIR | evenkeel simulate -f -`"),
        (KUSTOMIZATION, "is a kustomization: use `kubectl kustomize DIR | evenkeel simulate -f -`"),
        ({"resources": ["a.yaml"]}, "is a kustomization: use `kubectl kustomize DIR | evenkeel simulate -f -`"),
        (COMPOSE, "is a Docker Compose file: use `kompose convert -f FILE --stdout | evenkeel simulate -f -`"),
        (KUBECONFIG, "is a kubeconfig: to read its cluster, use `evenkeel simulate --kubeconfig FILE`"),
    ):  # fmt: skip
        assert refused("simulate", "-f", "-", stdin=writing.dump(body)) == f"-: {said}"


def test_among_good_objects_it_is_one_mistake(folder: Path) -> None:
    stdin = writing.dump_all([node("a"), KUSTOMIZATION, pod("p")])
    result = run(
        "simulate", "-f", "-", "-f", folder / "chart/values.yaml", "-o", "json", stdin=stdin
    )
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert found["summary"]["scheduled"] == 1
    assert [(one["file"], one["place"]) for one in found["mistakes"]] == [
        ("-", "document 2"), (str(folder / "chart/values.yaml"), ""),
    ]  # fmt: skip
    # Flux has a kind of the same name, which clusters hold.
    flux = KUSTOMIZATION | {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "metadata": {"name": "f"},
    }
    assert run("simulate", "-f", "-", stdin=writing.dump_all([node("a"), flux])).exit_code == 0


def test_an_empty_file_holds_no_objects(tmp_path: Path) -> None:
    for text in ("", "\n", "# nothing\n---\n"):
        path = tmp_path / "empty.yaml"
        path.write_text(text, encoding="utf-8")
        said = f"{path}: holds no Kubernetes object: it is empty, or has comments only"
        assert refused("simulate", "-f", path) == said
        assert refused("audit", "-f", path) == said
    objects = writing.dump_all([node("a"), pod("p")])
    result = run("simulate", "-f", "-", "-f", path, stdin=objects)
    assert result.exit_code == 3
    assert unwrapped(result.stderr).startswith(f"{said}\nwarning: standard input is taken as")
    said = "holds no BalancePolicy: it is empty, or has comments only"
    assert (
        refused("simulate", "-f", "-", "--policy", path, stdin=objects)
        == f"--policy {path}: {said}"
    )


def test_archives_and_other_bytes_are_named(folder: Path) -> None:
    tmp_path = folder
    objects = writing.dump_all([node("a"), pod("p")])
    (tmp_path / "objects.yaml").write_text(objects, encoding="utf-8")
    for name, inside in (("x.tar.gz", "objects.yaml"), ("web-0.1.0.tgz", "chart")):
        with tarfile.open(tmp_path / name, "w:gz") as archive:
            archive.add(tmp_path / inside, arcname=inside)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a", "b")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(objects.encode())[:-9])
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 4)
    (tmp_path / "page.html").write_text("<!DOCTYPE html><html></html>", encoding="utf-8")
    chart = tmp_path / "web-0.1.0.tgz"
    for name, said in (
        ("x.tar.gz", "is a tar archive: unpack it and give the YAML or JSON files in it"),
        ("web-0.1.0.tgz", f"is a packed Helm chart: use `helm template {chart} | evenkeel simulate -f -`"),
        ("x.zip", "is a zip archive: unpack it and give the YAML or JSON files in it"),
        ("binary", "is a binary file: Kubernetes objects in YAML or JSON are wanted"),
        ("page.html", "is HTML or XML: Kubernetes objects in YAML or JSON are wanted"),
    ):  # fmt: skip
        assert refused("simulate", "-f", tmp_path / name) == f"{tmp_path / name}: {said}"
    assert "cut.gz: is a damaged gzip file: " in refused("simulate", "-f", tmp_path / "cut.gz")


def test_what_gzip_has_packed_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json.gz"
    path.write_bytes(
        gzip.compress(json.dumps({"kind": "List", "items": [node("a"), pod("p")]}).encode())
    )
    for arguments in (("-f", path), ("--baseline", path)):
        result = run("simulate", *arguments)
        assert result.stdout.splitlines()[-1] == "1 of 1 pod scheduled on 1 node", result.output


def test_replay_and_rerun_name_what_they_are_given_instead(folder: Path) -> None:
    audited = folder / "audited.json"
    audited.write_text(json.dumps({"schemaVersion": 1, "demand": {}, "total": {}}, indent=2))
    objects = folder / "objects.yaml"
    objects.write_text(writing.dump(node("a")), encoding="utf-8")
    packed = folder / "log.gz"
    packed.write_bytes(gzip.compress(b"{}"))
    empty = folder / "empty"
    empty.touch()
    trace = "a trace is a folder with nodes.csv and pods.csv, or openb_node_list_gpu_node.csv"
    log = "`evenkeel rerun` reads what `evenkeel run --record` writes"
    for path, what in (
        (audited, "is the answer of `evenkeel audit`"),
        (folder / "simulated.json", "is the answer of `evenkeel simulate`"),
        (objects, "holds Kubernetes objects"),
        (packed, "is a gzip file"),
    ):
        assert refused("replay", path) == f"{path}: {what}: {trace}"
        # A log may be packed.
        first = ": unpack it first" if path == packed else ""
        assert refused("rerun", path) == f"{path}: {what}{first}; {log}"
    assert refused("replay", empty) == f"{empty}: is a file: {trace}"
    assert refused("rerun", empty) == f"{empty}: has no complete line; {log}"
    assert refused("rerun", folder) == f"{folder}: is a folder, not a file"
    gone = folder / "gone"
    assert refused("replay", gone) == f"{gone}: there is no such folder"
    assert refused("rerun", gone) == f"{gone}: there is no such file"


def test_every_answer_of_ours_is_known_by_its_schema() -> None:
    """The keys by which an answer is recognized are keys that its schema requires, and no other schema has."""
    from scheduler.documents import foreign  # noqa: PLC0415

    schemas = Path(__file__).parents[2] / "docs/schemas"
    source = foreign.Source(None, "simulate")
    for name, command in (
        ("simulate", "simulate"), ("explain", "explain"), ("audit", "audit"), ("replay", "replay"),
        ("showback", "audit --by"),
    ):  # fmt: skip
        schema = json.loads((schemas / f"{name}.json").read_text(encoding="utf-8"))
        for form in schema.get("oneOf", [schema]):
            found = foreign.recognize_document(dict.fromkeys(form["required"]), source)
            assert found is not None
            assert found.what == f"is the answer of `evenkeel {command}`"


def test_a_stream_of_bytes_is_looked_at_as_a_file_is() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a", "b")
    result = CliRunner().invoke(cli.app, ["simulate", "-f", "-"], input=packed.getvalue())
    assert result.stderr.startswith("-: is a zip archive: ")


@pytest.mark.parametrize("write", [json.dumps, writing.dump])
def test_a_bare_array_of_objects_is_read(write: Any) -> None:
    """``kubectl get -o json | jq .items`` prints one."""
    result = run("simulate", "-f", "-", "-o", "json", stdin=write([node("a"), pod("p")]))
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["summary"]["scheduled"] == 1
    nameless = [node("a"), pod("p"), {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": 7}}]
    said = unwrapped(run("simulate", "-f", "-", stdin=write(nameless)).stderr)
    assert "-: document 1, item 3: " in said
    said = "-: is a list, not a Kubernetes object: put the list under `items:` of a `kind: List`"
    assert refused("simulate", "-f", "-", stdin=write([1, 2])) == said


@pytest.mark.parametrize("name", ["${NAME}", "web-$TAG", "{name}"])
def test_a_name_that_nobody_filled_in_is_a_mistake(name: str) -> None:
    body = pod("p")
    body["metadata"]["name"] = name
    result = run("simulate", "-f", "-", stdin=writing.dump_all([node("a"), body]))
    assert result.exit_code == 3
    said = unwrapped(result.stderr)
    assert (
        f"Pod default/{name}: metadata.name: '{name}' is not a name that an API server takes"
        in said
    )


@pytest.mark.parametrize(("field", "code"), [("apiVersion", 0), ("kind", 3)])
@pytest.mark.parametrize("wrong", [[], {}, [None], 7, True])
def test_a_version_that_is_no_text_is_as_good_as_none_and_such_a_kind_is_a_mistake(
    field: str, code: int, wrong: Any
) -> None:
    objects = [node("a"), node("b") | {field: wrong}]
    result = run("simulate", "-f", "-", stdin=writing.dump_all(objects))
    assert result.exit_code == code, result.output
