"""``evenkeel audit`` as a user types it, from files: what goes in, what comes out, how mistakes are told."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from typer.testing import CliRunner, Result

from scheduler import cli
from scheduler.cli import sources
from scheduler.documents import writing
from tests import make
from tests.prose import unwrapped

Json = dict[str, Any]


def node(name: str = "n") -> Json:
    body: Json = msgspec.to_builtins(make.node(name=name, cpu=64, memory="64Gi"))
    return body | {"apiVersion": "v1", "kind": "Node"}


def pod(name: str = "p", **figures: Any) -> Json:
    given: Json = {"name": name, "node": "n", "cpu": 1, "memory": "2Gi"} | figures
    body: Json = msgspec.to_builtins(make.pod(**given))
    return body | {"apiVersion": "v1", "kind": "Pod"}


def specified(**spec: Any) -> Json:
    body = pod()
    return body | {"spec": body["spec"] | spec}


def run(*arguments: str | Path, objects: Any = ()) -> Result:
    stdin = writing.dump_all(objects)
    return CliRunner().invoke(cli.app, ["audit", *map(str, arguments)], input=stdin)


def refused(*arguments: str | Path, objects: Any = ()) -> str:
    result = run(*arguments, objects=objects)
    assert result.exit_code == 2, result.output
    assert not result.stdout
    return unwrapped(result.stderr).strip()


FULL = [node(), *(pod(f"p{i}") for i in range(32))]


def test_without_a_node_there_is_nothing_to_judge() -> None:
    assert refused("-f", "-", objects=[pod("waits", node="")]) == (
        "standard input: no Node found; the audit needs at least one"
    )


def test_a_table_names_the_worst_node_and_says_it_is_no_promise() -> None:
    result = run("-f", "-", objects=[*FULL, pod("waits", node="")])
    assert result.exit_code == 0, result.output
    words = " ".join(result.stdout.split())
    assert "32.0" in words
    assert "Typical pods without GPUs: measured from 33 pods of the cluster." in words
    assert "1 pod waits and requests 0 GPUs and 1 core in all." in words
    assert "no promise" in words
    assert "most-allocated" in words


def test_json_carries_the_prices_and_modes_asked_for(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text("cpu-core: 10\n", encoding="utf-8")
    manifest = tmp_path / "cluster.yaml"
    manifest.write_text(writing.dump_all(FULL), encoding="utf-8")
    result = run(
        "-f", manifest, "--prices", tmp_path / "prices.yaml", "--price", "gpu=1",
        "--mode", "keel,fgd", "--mode", "keel", "--worst", "0", "-o", "json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["prices"] == {"cpu-core": 10, "memory-gib": 4.31, "gpu": 1, "gpu-memory-gib": 50}
    assert found["total"]["stranded"]["cpu"] == 32
    assert found["total"]["money"] == 320
    assert found["worst"] == []
    assert [one["mode"] for one in found["replay"]["modes"]] == ["keel", "fgd"]


def test_page_and_table_go_to_a_file(tmp_path: Path) -> None:
    for output, begins in (("html", "<!DOCTYPE html>"), ("table", "")):
        path = tmp_path / output
        result = run("-f", "-", "-o", output, "--output-file", path, objects=FULL)
        assert (result.exit_code, result.stdout) == (0, "")
        text = path.read_text(encoding="utf-8")
        assert text.startswith(begins)
        assert "oo little memory" in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--mode", "random"], '--mode: "random" is not one of default, keel'),
        (["--worst", "-1"], "--worst: -1 is not 0 or more"),
        (["--price", "cpu"], '--price: "cpu" is not name=price'),
        (["--orders", "0"], "--orders: 0 is not within 1..100"),
        (["--output-file", "/nowhere/x"], "--output-file: /nowhere/x cannot be written: No such"),
        (["--context", "x"], "--filename: cannot be combined with --kubeconfig or --context"),
    ],
)
def test_a_wrong_flag_is_refused_before_anything_is_read(arguments: list[str], told: str) -> None:
    assert refused("-f", "/no/such/file", *arguments).startswith(told)


def test_a_form_that_there_is_none_of_is_refused_with_those_that_there_are() -> None:
    said = refused("-f", "/none", "-o", "xml")
    assert "'xml' is not one of 'table', 'json', 'yaml', 'html', 'csv'" in said


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (pod(node="", cpu="1x"), "Pod default/p: spec.containers[0].resources.requests[cpu]: "),
        (node() | {"metadata": {}}, "-: document 3: Node (no name): metadata.name: is missing"),
        (node(), "-: Node n: metadata.name: the object is given twice"),
        (
            specified(containers=3),
            "-: Pod default/p: spec.containers: must be a list, is a whole number",
        ),
        (specified(containers=[]), "-: Pod default/p: spec.containers: at least one container"),
        ("text", "-: document 3: (no kind) (no name): kind: is missing"),
        ({"metadata": {"name": "odd"}}, "-: (no kind) odd: kind: is missing"),
    ],
)
def test_a_malformed_object_is_left_out_and_told_with_its_field_and_the_rest_is_audited(
    body: Any, told: str
) -> None:
    result = run("-f", "-", objects=[node(), pod("sound"), body])
    assert result.exit_code == 3, result.output
    assert "1 object has mistakes and is left out:\n" + f"  {told}" in result.stdout
    answer = run("-f", "-", "-o", "json", objects=[node(), pod("sound"), body])
    found = json.loads(answer.stdout)
    assert [one["effect"] for one in found["mistakes"]] == ["left out"]
    assert found["total"]["used"]["cpu"] == 1
    assert found["waiting"] == []


def test_a_bound_pod_that_asks_what_nobody_reads_stays_with_what_can_be_read() -> None:
    result = run("-f", "-", objects=[node(), pod("sound"), pod("odd", cpu="1x")])
    assert result.exit_code == 3, result.output
    assert "1 pod has mistakes and stays on its node with what can be read of it:" in result.stdout
    assert "  Pod default/odd: spec.containers[0].resources.requests[cpu]: " in result.stdout
    assert "1 pod stays on its node: 1 with a mistake in the requests." in result.stdout


def test_a_malformed_node_is_left_out_and_its_pods_stay() -> None:
    bad = node("bad")
    bad["status"]["allocatable"]["cpu"] = "1x"
    result = run("-f", "-", "-o", "json", objects=[bad, node(), pod(node="bad"), pod("q")])
    found = json.loads(result.stdout)
    assert result.exit_code == 3
    assert found["leftOut"] == ["bad"]
    assert [one["object"] for one in found["mistakes"]] == ["Node bad"]
    assert found["total"]["capacity"]["cpu"] == 64


def test_only_so_many_mistakes_are_told_in_words_and_all_in_json() -> None:
    objects = [node(), *(pod(f"p{i}", node="", cpu="1x") for i in range(12))]
    told = run("-f", "-", objects=objects).stdout
    assert "12 objects have mistakes and are left out:" in told
    assert "  and 2 more; -o json lists all." in told
    assert len(json.loads(run("-f", "-", "-o", "json", objects=objects).stdout)["mistakes"]) == 12


def test_a_priority_class_that_is_not_there_does_not_matter() -> None:
    assert run("-f", "-", objects=[node(), specified(priorityClassName="x")]).exit_code == 0


def test_what_is_no_node_or_pod_is_passed_over_and_counted() -> None:
    def deployment(name: str) -> Json:
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}}

    others = [deployment("a"), deployment("b"), {"kind": "ConfigMap", "metadata": {"name": "c"}}]
    result = run("-f", "-", objects=[node(), pod(), *others])
    assert result.exit_code == 0, result.output
    told = "Ignored: 1 ConfigMap, 2 Deployment. Only nodes and existing pods count."
    assert told in result.stdout.splitlines()


def test_a_priority_class_may_come_after_its_pods_and_finished_pods_do_not_count() -> None:
    late = {"kind": "PriorityClass", "metadata": {"name": "x"}, "value": 7}
    done = pod("done", phase="Succeeded")
    objects = [node(), specified(priorityClassName="x"), done, late]
    result = run("-f", "-", "-o", "json", objects=objects)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["total"]["used"]["cpu"] == 1


def test_a_kubeconfig_that_is_not_there_is_refused() -> None:
    assert refused("--kubeconfig", "/no/such/kubeconfig").startswith("--kubeconfig /no/such/")


def test_in_a_pipe_rows_are_whole_prose_is_wrapped_and_its_source_is_said() -> None:
    """Lines had 444 characters."""
    name = "n" * 120
    lines = run("-f", "-", objects=[*FULL, node(name)]).stdout.splitlines()
    assert lines[0].startswith("standard input, ")
    at = next(
        i for i, line in enumerate(lines) if line.startswith("Placing the present pods again")
    )
    assert " ".join(lines[at:]).endswith("leave nodes empty.")
    assert len(lines) - at > 3
    assert max(len(line) for line in lines if line[:1].isalpha() and name not in line) <= 80
    assert not any(line != line.rstrip() for line in lines)
    rows = run("-f", "-", "--nodes", objects=[*FULL, node(name)]).stdout.splitlines()
    assert any(line.split()[:1] == [name] for line in rows)


def test_models_are_priced_and_orders_tried_as_asked() -> None:
    gpu_node = msgspec.to_builtins(make.hami_node(name="g", cards=2)) | {"kind": "Node"}
    arguments = ("--price", "Tesla T4=77", "--orders", "2", "--mode", "default,keel", "-o", "json")
    result = run("-f", "-", *arguments, objects=[*FULL, gpu_node])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [(one["gpus"], one["price"]) for one in found["gpuModels"]] == [(2, 77.0)]
    assert found["replay"]["orders"] == 2
    assert [len(one["inOrders"]["gpus"]) for one in found["replay"]["modes"]] == [2, 2]


def test_a_cluster_is_told_by_its_context_and_server_and_never_by_a_secret() -> None:
    url = "https://me:secret@cluster.example:6443/path?token=secret"
    assert sources.describe_cluster(url, None) == "https://cluster.example:6443"
    assert sources.describe_cluster(url, "prod") == "context prod at https://cluster.example:6443"


@pytest.mark.parametrize("command", ["audit", "simulate"])
def test_no_secret_is_told_of_a_cluster_that_cannot_be_read(command: str, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "k"
    server = {"name": "c", "cluster": {"server": "http://me:secret@127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    users = [{"name": "u", "user": {}}]
    kubeconfig.write_text(
        writing.dump(
            {"current-context": "c", "clusters": [server], "contexts": [context], "users": users}
        )
    )
    result = CliRunner().invoke(cli.app, [command, "--kubeconfig", str(kubeconfig)])
    assert result.exit_code == 2
    assert unwrapped(result.stderr).startswith("http://127.0.0.1:1: ")
    assert "secret" not in result.output


def test_all_nodes_are_a_table_with_their_cards_and_what_is_in_use() -> None:
    gpu_node = make.raw(make.hami_node(name="g", cards=2, cpu=8)) | {"kind": "Node"}
    whole = make.raw(make.node(name="w", gpus=4, labels={"nvidia.com/gpu.product": "NVIDIA-L4"}))
    objects = [
        node(), gpu_node, whole | {"kind": "Node"}, pod("p0"),
        make.raw(make.pod(name="one", node="w", cpu=2, gpu=1)) | {"kind": "Pod"},
    ]  # fmt: skip
    result = run("-f", "-", "--nodes", objects=objects)
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["g", "Tesla-T4", "2", "0", "0", "0", "0", "0", "0.0"] in rows
    assert ["w", "L4", "4", "1", "25", "0", "25", "-", "0.0"] in rows
    (plain,) = [row for row in rows if row[:1] == [node()["metadata"]["name"]]]
    assert plain[1:4] == plain[-1:] * 3 == ["-"] * 3
    assert "Advice" not in result.stdout
    assert refused("-f", "-", "--nodes", "-o", "html", objects=FULL) == (
        "--nodes: does not support -o html; use -o table, csv, json or yaml"
    )
    in_csv = run("-f", "-", "--nodes", "-o", "csv", objects=objects).stdout
    by_name = {row["node"]: row for row in csv.DictReader(io.StringIO(in_csv))}
    assert list(by_name) == ["g", "n", "w"]
    assert by_name["w"]["models"] == "L4"
    figures = ("pods", "gpuComputeCapacity", "gpuComputeUsed", "gpuComputeStranded", "cpuUsed")
    assert [float(by_name["w"][key]) for key in figures] == [1, 4, 1, 0, 2]
    for form, load in (("json", json.loads), ("yaml", yaml.safe_load)):
        found = load(run("-f", "-", "--nodes", "-o", form, objects=objects).stdout)
        assert {row["name"] for row in found["nodes"]} == set(by_name)
        assert found["replay"]["modes"] == []


def test_rows_of_the_total_are_in_plain_words_and_explained_below_it() -> None:
    cordoned = node() | {"spec": {"unschedulable": True}}
    cordoned["metadata"] = {"name": "cordoned"}
    text = run("-f", "-", "--mode", "default", objects=[*FULL, cordoned]).stdout
    page = run("-f", "-", "--mode", "default", "-o", "html", objects=[*FULL, cordoned]).stdout
    every = run("-f", "-", "--nodes", objects=[*FULL, cordoned]).stdout
    for said in (text, page):
        for private in ("spare", "of which dead", "closed"):
            assert not re.search(rf"[>\n ]{private}\b", said, re.IGNORECASE), private
        plain = " ".join(said.split())
        for title in ("No pod can use", "No loss", "Out of service"):
            assert title.lower() in said
            assert f"{title}: " in plain
    # The meaning stands by the figures.
    assert text.index("Out of service: ") < text.index("Typical pods")
    assert page.index("Out of service: ") < page.index("Dollars a month, by resource")
    assert re.search(r"cordoned .* out\n", every)
    assert "out: the node is out of service, cordoned or unhealthy." in " ".join(every.split())


def test_yaml_says_what_json_says() -> None:
    arguments = ("-f", "-", "--mode", "default")
    in_json, in_yaml = (
        run(*arguments, "-o", form, objects=FULL).stdout for form in ("json", "yaml")
    )
    left, right = json.loads(in_json), yaml.safe_load(in_yaml)
    left["about"].pop("made"), right["about"].pop("made")
    assert left == right


def test_the_default_mode_and_keel_are_one_row_where_they_place_alike() -> None:
    text = run("-f", "-", "--mode", "default,keel,best-fit", "--orders", "2", objects=FULL[:-1])
    rows = [line.split() for line in text.stdout.splitlines()]
    assert sum(row[:2] == ["default", "(keel)"] for row in rows) == 2
    assert not any(row[:1] == ["keel"] for row in rows)
    assert sum(row[:1] == ["best-fit"] for row in rows) == 2


def test_the_table_of_nodes_has_80_columns() -> None:
    objects = [
        {"apiVersion": "v1", "kind": "Node", **make.raw(make.hami_node(
            name="cordoned-0", cards=[make.card(model="NVIDIA-H100 80GB HBM3")]
        ))}
    ]  # fmt: skip
    rows = run("-f", "-", "--nodes", objects=objects).stdout.splitlines()
    assert any("H100-80GB-HBM3" in row for row in rows)
    assert max(map(len, rows)) <= 80


def gpu_node(name: str, labels: dict[str, str], **offered: int) -> Json:
    labels = {"nvidia.com/gpu.present": "true", **labels}
    body: Json = make.raw(make.node(name=name, cpu=8, labels=labels, allocatable=offered))
    return body | {"apiVersion": "v1", "kind": "Node"}


def test_gpus_that_cannot_be_counted_are_told_beside_the_money_and_in_the_table_of_nodes() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8"}
    silent = [gpu_node(f"silent-{i}", labels) for i in range(2)]
    other = gpu_node("other", labels | {"nvidia.com/gpu.count": "4"})
    odd = gpu_node(
        "odd",
        {"nvidia.com/gpu.count": "many"},
        **{"nvidia.com/gpu.shared": 14, "nvidia.com/gpu": 0},
    )
    few = run("-f", "-", "--mode", "default", objects=[*FULL, *silent]).stdout
    assert "Not counted: the GPUs of 2 more nodes, 16 GPUs by their labels." in " ".join(
        few.split()
    )
    objects = [*FULL, *silent, other, odd]
    for form in ("table", "html"):
        text = run("-f", "-", "--mode", "default", "-o", form, objects=objects).stdout
        assert (
            "Not counted: the GPUs of 4 more nodes, 20 GPUs by their labels and an unknown number on 1 node."
        ) in " ".join(text.split())
    rows = {
        line.split()[0]: line.split()[1:5]
        for line in run("-f", "-", "--nodes", objects=objects).stdout.splitlines()
        if line.startswith(" ")
    }
    assert rows["silent-0"] == ["H100-80GB-HBM3", "8", "(not", "counted)"]
    assert rows["other"] == ["H100-80GB-HBM3", "4", "(not", "counted)"]
    assert rows["odd"] == ["-", "?", "(not", "counted)"]


def test_parts_that_a_plugin_offers_are_counted_and_paid_as_parts() -> None:
    product = "NVIDIA-H100-80GB-HBM3"
    mixed = {
        "nvidia.com/gpu.product": product,
        "nvidia.com/mig-3g.40gb.memory": "40448",
        "nvidia.com/mig-1g.10gb.memory": "9856",
    }
    sliced = {
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.replicas": "4",
        "nvidia.com/gpu.memory": "81559",
    }
    nodes = [
        gpu_node("mixed", mixed, **{"nvidia.com/mig-3g.40gb": 2, "nvidia.com/mig-1g.10gb": 1}),
        gpu_node("sliced", sliced, **{"nvidia.com/gpu.shared": 8}),
        gpu_node("whole", {"nvidia.com/gpu.product": product}, **{"nvidia.com/gpu": 3}),
    ]
    pods = [pod("a", node="mixed", requests={"nvidia.com/mig-3g.40gb": 1})]
    pods += [pod("b", node="sliced", requests={"nvidia.com/gpu.shared": 3})]
    text = run("-f", "-", "-o", "json", "--price", f"{product}=700", objects=[*nodes, *pods]).stdout
    found = json.loads(text)
    total = found["total"]
    assert total["capacity"]["gpuCompute"] == pytest.approx(1 + 2 + 3)
    assert total["used"]["gpuCompute"] == pytest.approx(3 / 7 + 3 / 4)
    gib = (2 * 40448 + 9856 + 8 * (81559 // 4)) / 1024
    assert total["capacity"]["gpuMemory"] == pytest.approx(gib)
    assert total["used"]["gpuMemory"] == pytest.approx((40448 + 3 * (81559 // 4)) / 1024)
    (model,) = found["gpuModels"]
    assert (model["gpus"], model["parts"], model["price"]) == (6, 14, 700)
    assert found["uncounted"] == []
