"""Times, extended resources and apps in our own format: read, and every mistake told."""

import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from scheduler import cli
from scheduler.errors import BadInput
from scheduler.replay import traces
from scheduler.replay.experiment import TraceNode, TracePod

NODES = """\
name,resource:example.com/iops,cpu,memory,resource:a.b/c-d_e
n1,5000,8,16Gi,0
n2,,8,16Gi,3
"""
PODS = """\
name,cpu,memory,resource:a.b/c-d_e,resource:example.com/iops,app,max_per_node,arrival,departure
db,2,4Gi,1,700,db,1,,
web-1,1,1Gi,0,,web,2,0.5,90
web-2,1,1Gi,,0,web,2,1700000000,1700000000.001
solo,1,0,,,lone,,30,
bare,1,0,,,,,10.25,11
"""


def folder(path: Path, nodes: str = NODES, pods: str = PODS) -> Path:
    (path / "nodes.csv").write_text(nodes, encoding="utf-8")
    (path / "pods.csv").write_text(pods, encoding="utf-8")
    return path


def refused(path: Path) -> str:
    with pytest.raises(BadInput) as caught:
        traces.read_trace(path, strict=True)
    return str(caught.value)


def test_all_that_a_trace_may_tell_is_read(tmp_path: Path) -> None:
    trace = traces.read_trace(folder(tmp_path))
    assert trace.is_recorded
    assert not trace.has_gpus
    iops, other = "example.com/iops", "a.b/c-d_e"
    assert trace.nodes == (
        TraceNode("n1", 8000, 16384, 0, "", ((iops, 5000),)),
        TraceNode("n2", 8000, 16384, 0, "", ((other, 3),)),
    )
    tick = 1 / 1024
    assert trace.pods == (
        TracePod("db", 2000, 4096, 0, 0, (), 0, ((other, 1), (iops, 700)), "db", 1),
        TracePod("web-1", 1000, 1024, 0, 0, (), 0, (), "web", 2, 0.5, 90.0),
        TracePod("web-2", 1000, 1024, 0, 0, (), 0, (), "web", 2, 1.7e9, 1.7e9 + tick),
        TracePod("solo", 1000, 0, 0, 0, (), 0, (), "lone", 0, 30.0, math.inf),
        TracePod("bare", 1000, 0, 0, 0, (), 0, (), "", 0, 10.25, 11.0),
    )


def test_times_are_kept_so_that_a_stay_ends_exactly_when_it_did(tmp_path: Path) -> None:
    """0.1 + (0.3 - 0.1) is no 0.3 in doubles, and who came at 0.3 would find the node taken."""
    pods = "name,cpu,memory,arrival,departure\n" + "".join(
        f"p{i},1,0,{i / 10:.1f},{i / 10 + 0.2:.1f}\n" for i in range(100)
    )
    for one in traces.read_trace(folder(tmp_path, pods=pods)).pods:
        assert one.arrival + (one.departure - one.arrival) == one.departure


def test_a_trace_without_times_says_so(tmp_path: Path) -> None:
    assert not traces.read_trace(folder(tmp_path, pods="name,cpu,memory\np,1,0\n")).is_recorded
    departure = "name,cpu,memory,departure\np,1,0,5\n"
    assert not traces.read_trace(folder(tmp_path, pods=departure)).is_recorded


@pytest.mark.parametrize(
    ("what", "instead", "said"),
    [
        (",90", ",0.5", 'pods.csv, line 3, column departure: "0.5" is not after the arrival, 0.5'),
        ("1700000000.001", "1700000000.0001", "pods.csv, line 4, column departure"),
        ("10.25", "-1", 'pods.csv, line 6, column arrival: "-1" is not a time from 0 to 100000000000 seconds'),
        ("10.25", "1e3", 'column arrival: "1e3" is not a time'),
        ("10.25", "nan", 'column arrival: "nan" is not a time'),
        ("10.25", "1700000000000", 'column arrival: "1700000000000" is not a time'),
        ("db,1,,", "db,0,,", 'pods.csv, line 2, column max_per_node: "0" is not a whole number from 1'),
        ("db,1,,", "db,two,,", 'column max_per_node: "two" is not a whole number'),
        ("db,1,,", ",1,,", "pods.csv, line 2, column app: max_per_node needs a value in the column app"),
        ("db,1,,", "d b,1,,", "pods.csv, line 2, column app: 'd b' is not a label's value"),
        ("web,2,17", "web,3,17", 'pods.csv, line 4, column max_per_node: "3": all lines of an app must have the same value, and an earlier line has "2" for web'),
        ("web,2,17", "web,,17", 'pods.csv, line 4, column max_per_node: "": all lines of an app must have the same value, and an earlier line has "2"'),
        ("lone,,", "web,,", 'pods.csv, line 5, column max_per_node: ""'),
        (",700,", ",7.5,", 'pods.csv, line 2, column resource:example.com/iops: "7.5" is not a whole number from 0'),
        (",700,", ",-7,", 'column resource:example.com/iops: "-7" is not a whole number'),
        ("resource:a.b/c-d_e", "resource:iops", 'pods.csv, line 1, column "resource:iops": is not a resource: write its name with a domain, such as resource:example.com/iops'),
        ("resource:a.b/c-d_e", "resource:A.b/c", 'pods.csv, line 1, column "resource:A.b/c": is not a valid resource name in Kubernetes'),
        ("resource:a.b/c-d_e", "resource:a.b/-", "is not a valid resource name in Kubernetes"),
        ("resource:a.b/c-d_e", "resource:nvidia.com/gpu", 'column "resource:nvidia.com/gpu": is a resource of GPUs: write requested GPUs in the column gpus'),
        ("resource:a.b/c-d_e", "resource:nvidia.com/gpumem", "is a resource of GPUs"),
        ("resource:a.b/c-d_e", "resource:amd.com/gpu", "is a resource of GPUs"),
        ("resource:a.b/c-d_e", "resource:example.com/iops", "column resource:example.com/iops: appears more than once"),
        ("resource:a.b/c-d_e", "resources:a.b/c", 'pods.csv, line 1, column "resources:a.b/c": is unknown: needed are name, cpu, memory; allowed besides gpus, gpu_share, models, gpu_memory, app, max_per_node, arrival, departure, group, run_time, queue, resource:example.com/iops'),
        ("resource:a.b/c-d_e", "resource:a.b/other", "pod db requests a.b/other, but no node has any"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_file_line_and_column(
    tmp_path: Path, what: str, instead: str, said: str
) -> None:
    assert PODS.count(what) == 1
    assert said in refused(folder(tmp_path, pods=PODS.replace(what, instead)))


def test_what_cannot_be_meant_is_taken_in_the_smallest_sense_counted_and_named(
    tmp_path: Path,
) -> None:
    pods = "name,cpu,memory,app,max_per_node,arrival,departure\n" + "".join(
        f"p{i},1,1Gi,{app},{most},5,{departure}\n"
        for i, (app, most, departure) in enumerate(
            [("a", "3", "9"), ("a", "", "9"), ("a", "2", "5"), ("b", "", "5.0001"), ("c", "1", ""), ("a", "4", "9")]
        )
    )  # fmt: skip
    path = folder(tmp_path, nodes="name,cpu,memory\nn,8,16Gi\n", pods=pods)
    trace = traces.read_trace(path)
    assert [one.max_per_node for one in trace.pods] == [2, 2, 2, 0, 1, 2]
    tick = 1 / 1024
    assert [one.departure for one in trace.pods] == [9, 9, 5 + tick, 5 + tick, math.inf, 9]
    assert trace.readings == (
        "pods.csv: 2 pods leave in the second of arrival; the replay lets them run for 1/1024 of a second: p2, p3",
        "pods.csv: 1 app has lines with different values of max_per_node; the smallest counts: a (2)",
    )
    assert traces.read_trace(folder(tmp_path)).readings == ()
    many = "name,cpu,memory,arrival,departure\n" + "".join(f"p{i},1,0,7,7\n" for i in range(12))
    (said,) = traces.read_trace(folder(tmp_path, pods=many)).readings
    assert said.startswith("pods.csv: 12 pods leave")
    assert said.endswith("p0, p1, p2, p3, p4 and 7 more")


def test_a_departure_before_the_arrival_is_the_shortest_stay_unless_strict(tmp_path: Path) -> None:
    path = folder(tmp_path, pods=PODS.replace(",90", ",0.25"))
    trace = traces.read_trace(path)
    name = trace.pods[1].name
    assert trace.pods[1].departure == trace.pods[1].arrival + 1 / 1024
    (said,) = trace.readings
    assert said == (
        "pods.csv: 1 pod leaves before it arrives; the replay lets it run for 1/1024 of a second from its arrival: "
        f"{name}"
    )
    with pytest.raises(BadInput) as caught:
        traces.read_trace(path, strict=True)
    assert 'column departure: "0.25" is not after the arrival, 0.5' in str(caught.value)


def test_the_command_says_how_lines_were_taken_and_strict_refuses_them(tmp_path: Path) -> None:
    path = folder(tmp_path, pods=PODS.replace(",90", ",0.5"))
    command = ["replay", str(path), "--experiment", "recorded", "-o", "json"]
    taken = CliRunner().invoke(cli.app, command)
    assert taken.exit_code == 0, taken.output
    assert (
        "warning: pods.csv: 1 pod leaves in the second of arrival; the replay lets it run"
        in taken.stderr
    )
    # The warning had one line.
    assert "\n  " in taken.stderr
    assert max(map(len, taken.stderr.splitlines())) <= 80
    assert json.loads(taken.stdout)
    strict = CliRunner().invoke(cli.app, [*command, "--strict"])
    assert strict.exit_code == 2
    assert 'line 3, column departure: "0.5" is not after the arrival' in strict.stderr


def test_a_limit_without_the_column_of_apps_is_told_where_it_stands(tmp_path: Path) -> None:
    pods = "name,cpu,memory,max_per_node\np,1,0,2\n"
    said = "pods.csv, line 2, column max_per_node: max_per_node needs a value in the column app"
    assert said in refused(folder(tmp_path, pods=pods))


def test_a_wrong_resource_of_a_node_is_told_too(tmp_path: Path) -> None:
    nodes = NODES.replace("resource:a.b/c-d_e", "resource:nvidia.com/gpucores")
    assert (
        'nodes.csv, line 1, column "resource:nvidia.com/gpucores": is a resource of GPUs'
        in refused(folder(tmp_path, nodes))
    )


def test_how_a_resource_is_written_is_told_where_there_is_none(tmp_path: Path) -> None:
    nodes = "name,cpu,memory,iops\nn,1,1Gi,5\n"
    assert "allowed besides gpus, model, mig, resource:NAME" in refused(folder(tmp_path, nodes))


def openb(path: Path, times: str) -> Path:
    node = "sn,cpu_milli,memory_mib,gpu,model\nn,1000,1,2,A\n"
    pod = f"name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time\np,1,0,1,500,{times}\n"
    (path / "openb_node_list_gpu_node.csv").write_text(node, encoding="utf-8")
    (path / "openb_pod_list_default.csv").write_text(pod, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("times", "stay"),
    [("3,9", (3, 9)), (",9", (0, 9)), ("3,", (3, math.inf)), ("3,3", (3, 4))],
)
def test_times_of_openb_are_read(tmp_path: Path, times: str, stay: tuple[float, float]) -> None:
    trace = traces.read_trace(openb(tmp_path, times))
    assert trace.is_recorded
    assert (trace.pods[0].arrival, trace.pods[0].departure) == stay


def test_a_task_of_openb_that_leaves_before_it_comes_stays_for_a_second_unless_strict(
    tmp_path: Path,
) -> None:
    path = openb(tmp_path, "3,2")
    trace = traces.read_trace(path)
    assert trace.pods[0].departure == 4
    (said,) = trace.readings
    assert said.startswith("openb_pod_list_default.csv: 1 pod leaves before it arrives; the replay")
    assert said.endswith(" for 1 second from its arrival: p")
    with pytest.raises(BadInput) as caught:
        traces.read_trace(path, strict=True)
    said = 'openb_pod_list_default.csv, line 2, column deletion_time: "2" is before creation_time'
    assert said in str(caught.value)
