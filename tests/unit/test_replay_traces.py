"""Traces as files: both formats read, and every mistake told with file, line and column."""

import gzip
import lzma
from pathlib import Path

import pytest

from scheduler.errors import BadInput
from scheduler.replay import traces, workloads
from scheduler.replay.experiment import TraceNode, TracePod

OPENB = Path(__file__).parents[2] / "bench/data/openb"
NODES = "name,cpu,memory,gpus,model\na,96,384Gi,8,A100\nb,500m,0,0,\n"
PODS = """\
name,cpu,memory,gpus,gpu_share,models,gpu_memory
whole,12,16Gi,2,,B|A|B,
part,0.5,1Mi,1,0.25,,8Gi
host,250m,0,0,,,
"""


def folder(path: Path, nodes: str = NODES, pods: str = PODS) -> Path:
    (path / "nodes.csv").write_text(nodes, encoding="utf-8")
    (path / "pods.csv").write_text(pods, encoding="utf-8")
    return path


def refused(path: Path, variant: str = "default") -> str:
    with pytest.raises(BadInput) as caught:
        traces.read_trace(path, variant)
    return str(caught.value)


@pytest.mark.parametrize(
    ("variant", "n_pods", "percent"),
    [("default", 8152, 98.0), ("gpushare100", 8152, 63.6), ("multigpu50", 9061, 182.9)],
)
def test_the_trace_we_ship_is_the_published_one(variant: str, n_pods: int, percent: float) -> None:
    trace = traces.read_trace(OPENB, variant)
    assert (trace.name, len(trace.nodes), trace.capacity) == ("openb", 1213, 6_212_000)
    assert len(trace.pods) == n_pods
    asked = 100 * workloads.list_milli(trace).sum() / trace.capacity
    assert asked == pytest.approx(percent, abs=0.05)


def test_every_variant_of_the_paper_is_there_and_models_come_once() -> None:
    found = traces.list_variants(OPENB)
    assert len(found) == 17
    models = {pod.models for pod in traces.read_trace(OPENB, "gpuspec33").pods}
    assert ("V100M16", "V100M32") in models
    assert all(len(set(one)) == len(one) for one in models)


def test_our_own_format_is_read_in_its_units(tmp_path: Path) -> None:
    trace = traces.read_trace(folder(tmp_path))
    assert trace.nodes == (
        TraceNode("a", 96_000, 384 * 1024, 8, "A100"),
        TraceNode("b", 500, 0, 0, ""),
    )
    assert trace.pods == (
        TracePod("whole", 12_000, 16 * 1024, 2, 1000, ("A", "B")),
        TracePod("part", 500, 1, 1, 250, (), 8 * 1024),
        TracePod("host", 250, 0, 0, 0, ()),
    )


def test_columns_stand_in_any_order_optional_ones_may_miss_and_empty_lines_pass(
    tmp_path: Path,
) -> None:
    trace = traces.read_trace(
        folder(tmp_path, "gpus,name,memory,cpu\n\n4,a,1Gi,8\n", "name,cpu,memory,gpus\np,1,1Gi,2\n")
    )
    assert trace.nodes == (TraceNode("a", 8000, 1024, 4, ""),)
    assert trace.pods == (TracePod("p", 1000, 1024, 2, 1000, ()),)


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("xz", lzma.compress)])
def test_compressed_files_are_read(tmp_path: Path, ending: str, pack: type) -> None:
    plain = traces.read_trace(folder(tmp_path))
    for stem in ("nodes", "pods"):
        path = tmp_path / f"{stem}.csv"
        (tmp_path / f"{stem}.csv.{ending}").write_bytes(pack(path.read_bytes()))
        path.unlink()
    assert traces.read_trace(tmp_path) == plain


@pytest.mark.parametrize(
    ("nodes", "pods", "said"),
    [
        (NODES.replace("model", "colour"), PODS, 'nodes.csv, line 1, column "colour": is unknown'),
        (NODES.replace("cpu", "name", 1), PODS, "nodes.csv, line 1, column name: appears more"),
        (NODES.replace(",cpu", ",model").replace(",gpus,model", ",gpus,resource:x.y/z"), PODS, "column cpu: is missing: needed are name, cpu, memory"),
        (NODES + "c,1\n", PODS, "nodes.csv, line 4: has 2 cells where the header has 5"),
        (NODES.replace("384Gi", "384"), PODS, 'nodes.csv, line 2, column memory: "384" has no unit: write for example 384Mi'),
        (NODES.replace("96", "many"), PODS, 'line 2, column cpu: "many" is not a quantity'),
        (NODES.replace("96", "-1"), PODS, 'line 2, column cpu: "-1" is negative'),
        (NODES.replace("96", "1E"), PODS, 'line 2, column cpu: "1E" is too large'),
        (NODES.replace(",8,", ",8.5,"), PODS, 'line 2, column gpus: "8.5" is not a whole number from 0 to 64'),
        (NODES.replace(",8,", ",65,"), PODS, 'column gpus: "65" is not a whole number from 0 to 64'),
        (NODES.replace("b,", "a,"), PODS, "node a: appears more than once"),
        (NODES.replace("b,", ",", 1), PODS, "line 3, column name: is empty"),
        (NODES.replace(",8,", ",0,"), PODS, "pod whole requests gpu, but no node has any"),
        ("", PODS, "nodes.csv, line 1, column name: is missing"),
        (NODES, PODS.replace("0.25", "1.5"), 'pods.csv, line 3, column gpu_share: "1.5" is not a share of one GPU: write 0.001 to 1'),
        (NODES, PODS.replace("0.25", "nan"), 'column gpu_share: "nan" is not a share'),
        (NODES, PODS.replace("2,,", "2,0.5,"), 'pods.csv, line 2, column gpu_share: "0.5": a share is allowed with 1 GPU only, and 2 are requested'),
        (NODES, PODS.replace("B|A|B", "B||A"), 'line 2, column models: "B||A" is not a list'),
        (NODES, PODS.replace("0,0,,,", "0,0,,A,"), 'line 4, column models: "A": must be empty when gpus is 0'),
        (NODES, PODS.partition("whole")[0] + "p,0,0,0,,,\n", "no pod requests anything"),
        (NODES, PODS.partition("whole")[0], "no pod requests anything"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_file_line_and_column(
    tmp_path: Path, nodes: str, pods: str, said: str
) -> None:
    assert said in refused(folder(tmp_path, nodes, pods))


def test_a_share_of_several_gpus_in_openbs_format_is_told_too(tmp_path: Path) -> None:
    node = "sn,cpu_milli,memory_mib,gpu,model\nn,1000,1,2,A\n"
    pod = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,0,2,500\n"
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(node, encoding="utf-8")
    (tmp_path / "openb_pod_list_default.csv").write_text(pod, encoding="utf-8")
    assert 'openb_pod_list_default.csv, line 2, column gpu_milli: "500"' in refused(tmp_path)


def test_what_is_no_trace_or_no_variant_is_told_with_what_there_is(tmp_path: Path) -> None:
    assert (
        "is not a trace: it must contain nodes.csv and pods.csv, or openb_node_list_gpu_node.csv"
        in refused(tmp_path)
    )
    assert "only traces of openb have variants" in refused(folder(tmp_path), "gpuspec33")
    said = refused(OPENB, "../openb_pod_list_default")
    assert '"../openb_pod_list_default" is not in' in said
    assert "allowed are cpu050, cpu100" in said


def test_a_broken_archive_is_told(tmp_path: Path) -> None:
    folder(tmp_path)
    (tmp_path / "pods.csv").unlink()
    (tmp_path / "pods.csv.xz").write_bytes(b"not an archive")
    assert "pods.csv.xz: cannot be read" in refused(tmp_path)
