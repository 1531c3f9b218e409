"""One's own files beside a dump or a cluster: whose pods count, come first, and are ours."""

import io
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from scheduler import cli
from scheduler.config import Config
from scheduler.documents import writing
from scheduler.simulate import command
from scheduler.simulate.reading.gathering import Live
from tests.prose import unwrapped
from tests.unit.test_simulate_what_if import node, pod, workload

Json = dict[str, Any]


def elsewhere(name: str, **figures: Any) -> Json:
    """A pod that names no scheduler."""
    body = pod(name, **figures)
    del body["spec"]["schedulerName"]
    return body


def run(folder: Path, *arguments: str, **files: list[Json]) -> Result:
    given = []
    for name, objects in files.items():
        path = folder / f"{name}.yaml"
        path.write_text(writing.dump_all(objects))
        given += ["-f", str(path)]
    return CliRunner().invoke(cli.app, ["simulate", *given, *arguments])


def named(result: Result) -> dict[str, tuple[str | None, bool]]:
    found: Json = json.loads(result.stdout)
    return {one["name"]: (one["node"], one["own"]) for one in found["pods"]}


DUMP = [node("a", cpu=4), pod("runs", node="a"), pod("old", cpu=9), elsewhere("foreign")]


def test_only_ours_leaves_no_pod_of_a_file_of_ones_own_out(tmp_path: Path) -> None:
    job = workload("Job", "job")
    result = run(tmp_path, "--only-ours", "-o", "json", dump=DUMP, mine=[elsewhere("mine"), job])
    found = named(result)
    made = next(name for name in found if name.startswith("job-"))
    assert found == {"old": (None, False), "mine": ("a", True), made: ("a", True)}
    # A dump alone is nobody's own file.
    assert named(run(tmp_path, "--only-ours", "-o", "json", dump=DUMP)) == {"old": (None, False)}
    # Names of other schedulers do not matter there either.
    other = pod("other") | {"spec": pod("other")["spec"] | {"schedulerName": "volcano"}}
    assert named(run(tmp_path, "--only-ours", "-o", "json", dump=DUMP, mine=[other]))["other"] == (
        "a", True,
    )  # fmt: skip


def with_baseline(folder: Path, *arguments: str, baseline: list[Json], mine: list[Json]) -> Result:
    """A dump by ``--baseline``, and one's own objects by a pipe."""
    path = folder / "baseline.yaml"
    path.write_text(writing.dump_all(baseline))
    given = ["--baseline", str(path), "-f", "-", *arguments]
    return CliRunner().invoke(cli.app, ["simulate", *given], input=writing.dump_all(mine))


def test_what_a_baseline_holds_is_not_ones_own_and_one_stream_is_never_divided(
    tmp_path: Path,
) -> None:
    mine = [elsewhere("mine"), workload("Job", "job")]
    found = named(with_baseline(tmp_path, "--only-ours", "-o", "json", baseline=DUMP, mine=mine))
    made = next(name for name in found if name.startswith("job-"))
    # One's own pods come first in JSON, too, whatever was decided first.
    assert list(found.items())[-1] == ("old", (None, False))
    assert found == {"old": (None, False), "mine": ("a", True), made: ("a", True)}
    # Beside a baseline even nodes and running pods are one's own.
    more = [node("b", cpu=9), *mine]
    found = named(with_baseline(tmp_path, "-o", "json", baseline=DUMP, mine=more))
    assert {name for name, (_, own) in found.items() if own} == {"mine", made}
    assert found["old"] == ("b", False)
    stream = writing.dump_all([*DUMP, *mine])
    result = CliRunner().invoke(cli.app, ["simulate", "-f", "-", "-o", "json"], input=stream)
    assert not any(own for _, own in named(result).values())
    assert "--baseline" not in result.stderr
    for option in ("--only-ours", "--fail-if-pending"):
        given = ["simulate", "-f", "-", option]
        said = unwrapped(CliRunner().invoke(cli.app, given, input=stream).stderr)
        assert "warning: standard input holds running pods, and no other file holds pods" in said
        beside = with_baseline(tmp_path, option, baseline=DUMP, mine=mine)
        assert "--baseline" not in beside.stderr


@pytest.mark.parametrize(
    ("baseline", "mine", "arguments", "code"),
    [
        (DUMP, [pod("mine")], [], 0),
        (DUMP, [pod("mine", cpu=9)], [], 1),
        # Pods that a workload of the baseline lacks are not one's own.
        ([*DUMP, workload("Deployment", "lags", replicas=9)], [pod("mine")], [], 0),
        ([*DUMP, workload("Deployment", "lags", replicas=1)], [pod("mine")], ["--scale", "deploy/lags=9"], 1),
        ([*DUMP, workload("DaemonSet", "agents")], [pod("mine")], ["--cordon", "a"], 1),
        # A mistake in the baseline is named, and does not count; one's own does.
        ([*DUMP, node("odd", cpu="x")], [pod("mine")], [], 0),
        (DUMP, [pod("mine"), node("odd", cpu="x")], [], 3),
        # What renders no pods does not make old pods count.
        (DUMP, [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}], [], 0),
    ],
)  # fmt: skip
def test_beside_a_baseline_only_ones_own_pods_and_those_of_a_change_decide_how_it_ends(
    tmp_path: Path, baseline: list[Json], mine: list[Json], arguments: list[str], code: int
) -> None:
    result = with_baseline(tmp_path, "--fail-if-pending", *arguments, baseline=baseline, mine=mine)
    assert result.exit_code == code, result.output
    # The same beside a cluster.
    if not arguments:
        (tmp_path / "mine.yaml").write_text(writing.dump_all(mine))
        asked = command.Request(
            config=Config(), files=[str(tmp_path / "mine.yaml")], fail_if_pending=True
        )
        live = Live(baseline)
        assert command.simulate(asked, live, io.StringIO(), lambda *_: None).code == code


def test_a_comment_on_a_pull_request_is_about_ones_own_pods(tmp_path: Path) -> None:
    lines = with_baseline(
        tmp_path, "-o", "markdown", baseline=DUMP, mine=[pod("mine"), pod("big", cpu=8)]
    ).stdout.splitlines()
    assert lines[0] == "### :x: 1 of 2 pods of your files does not fit"
    assert "`default/big`" in lines[4]
    others = "<details><summary>1 other pod pending, 1 fit</summary>"
    assert others in lines[5:]


def test_a_daemon_set_fails_only_on_a_node_that_is_added(tmp_path: Path) -> None:
    new = tmp_path / "new.yaml"
    new.write_text(writing.dump(node("new", cpu=0.5)))
    baseline = [*DUMP, node("small", cpu=0.5), workload("DaemonSet", "agents")]
    for arguments, code in ((), 0), (("--add-node", str(new)), 1):
        result = with_baseline(
            tmp_path, "--fail-if-pending", *arguments, baseline=baseline, mine=[pod("mine", cpu=0)]
        )
        assert result.exit_code == code, result.output


def test_a_baseline_of_several_files_is_alone_what_the_cluster_is(tmp_path: Path) -> None:
    paths = []
    for i, objects in enumerate(([DUMP[0]], DUMP[1:])):
        path = tmp_path / f"{i}.yaml"
        path.write_text(writing.dump_all(objects))
        paths += ["--baseline", str(path)]
    invoke = CliRunner().invoke
    alone = invoke(cli.app, ["simulate", *paths, "--fail-if-pending", "-o", "json"])
    # Nothing is asked beside it, so what waits there counts.
    assert (alone.exit_code, set(named(alone))) == (1, {"old", "foreign"})
    refused = invoke(cli.app, ["simulate", *paths, "--context", "c"])
    assert refused.exit_code == 2
    assert "--baseline: cannot be combined with --kubeconfig or --context" in refused.stderr
    refused = invoke(cli.app, ["simulate", *paths, "-f", paths[1]])
    assert refused.exit_code == 2
    assert (
        unwrapped(refused.stderr) == f"--baseline: {paths[1]} is also given with -f; give it once\n"
    )
    twice = invoke(cli.app, ["simulate", "--baseline", "-", "-f", "-"], input="kind: Pod")
    assert twice.stderr == "--baseline: standard input is also given with -f; give it once\n"


def test_in_a_shell_a_pipe_beside_a_baseline_ends_as_it_should(tmp_path: Path) -> None:
    dump, fits, waits = (tmp_path / name for name in ("dump.yaml", "fits.yaml", "waits.yaml"))
    for path, objects in ((dump, DUMP), (fits, [pod("mine")]), (waits, [pod("mine", cpu=9)])):
        path.write_text(writing.dump_all(objects))
    evenkeel = f"{shlex.quote(sys.executable)} -m scheduler simulate --fail-if-pending"
    for path, code in ((fits, 0), (waits, 1)):
        line = f"cat {path} | {evenkeel} --baseline {dump} -f - | cat; exit ${{PIPESTATUS[1]}}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert done.stdout.splitlines()[1].startswith("* default/mine  ")
        assert done.stdout.splitlines()[-1].startswith("* your own pods: ")


def test_a_file_beside_a_cluster_is_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(writing.dump_all([elsewhere("mine")]))
    asked = command.Request(config=Config(), files=[str(path)], only_ours=True)
    found = command.simulate(asked, Live(DUMP), io.StringIO(), lambda *_: None).results[""]
    assert {one["name"]: one["own"] for one in found["pods"]} == {"old": False, "mine": True}


@pytest.mark.parametrize(
    ("mine", "arguments", "code"),
    [
        ([pod("mine")], [], 0),
        ([pod("mine", cpu=9)], [], 1),
        (None, [], 1),
        (None, ["--cordon", "a"], 0),
        (None, ["--without-node", "a"], 1),
        ([workload("Job", "mine")], ["--cordon", "a"], 1),
    ],
)
def test_what_waits_in_a_dump_is_the_baseline(
    tmp_path: Path, mine: list[Json] | None, arguments: list[str], code: int
) -> None:
    files = {"dump": DUMP} | ({"mine": mine} if mine else {})
    result = run(tmp_path, "--fail-if-pending", *arguments, **files)
    assert result.exit_code == code, result.output


def test_a_dump_in_several_files_is_a_dump(tmp_path: Path) -> None:
    files = {"nodes": [DUMP[0]], "pods": DUMP[1:], "mine": [pod("mine")]}
    result = run(tmp_path, "--fail-if-pending", "-o", "json", **files)
    assert result.exit_code == 0
    assert named(result)["mine"] == ("a", True)
    assert named(result)["old"] == (None, False)


def test_ones_own_pods_come_first_and_are_marked(tmp_path: Path) -> None:
    result = run(tmp_path, dump=DUMP, mine=[pod("mine"), pod("mine-too", cpu=9)])
    lines = result.stdout.splitlines()
    assert [line.split("  ")[0] for line in lines[1:5]] == [
        "* default/mine", "* default/mine-too", "default/foreign", "default/old",
    ]  # fmt: skip
    assert lines[-1] == "* your own pods: 1 of 2 pods scheduled"
    alone = run(tmp_path, dump=DUMP).stdout
    assert "*" not in alone


def test_without_own_pods_what_the_baseline_waits_for_is_not_yours(tmp_path: Path) -> None:
    mine: list[Json] = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}]
    said = with_baseline(tmp_path, "--fail-if-pending", "-o", "markdown", baseline=DUMP, mine=mine)
    lines = said.stdout.splitlines()
    assert said.exit_code == 0
    assert lines[0] == "### :white_check_mark: Your files bring no new pod"
    assert lines[2] == "<details><summary>1 other pod pending, 1 fit</summary>"
    table = with_baseline(tmp_path, baseline=DUMP, mine=mine).stdout.splitlines()
    assert table[-2] == "* your own pods: 0 of 0 pods scheduled"
    # A mistake of the baseline is no mistake of yours.
    odd = [*DUMP, node("odd", cpu="x")]
    said = with_baseline(tmp_path, "-o", "markdown", baseline=odd, mine=mine)
    assert said.stdout.startswith("### :white_check_mark: Your files bring no new pod\n")
    assert "| Mistake in |" in said.stdout


def test_pods_of_a_change_come_first_with_a_mark_and_a_line_of_their_own(tmp_path: Path) -> None:
    moving = pod("moves", cpu=3, node="b")
    baseline = [*DUMP, node("b", cpu=4), moving, workload("Deployment", "lags", replicas=1)]
    mine = [pod("mine")]
    arguments = ["--without-node", "b", "--scale", "deploy/lags=2", "--fail-if-pending"]
    result = with_baseline(tmp_path, *arguments, baseline=baseline, mine=mine)
    lines = result.stdout.splitlines()
    marks = [line[:2] for line in lines[1:] if line and not line.startswith(" ")]
    assert marks[:5] == ["* ", "+ ", "+ ", "+ ", "de"]
    assert "+ default/moves" in result.stdout
    assert lines[-2:] == [
        "* your own pods: 1 of 1 pod scheduled", "+ pods of the change: 1 of 3 pods scheduled",
    ]  # fmt: skip
    assert result.exit_code == 1
    comment = with_baseline(
        tmp_path, *arguments, "-o", "markdown", baseline=baseline, mine=mine
    ).stdout
    assert comment.startswith("### :x: 2 of 4 pods of your files and the change do not fit\n")
    alone = run(tmp_path, "--cordon", "a", "-o", "markdown", dump=DUMP).stdout
    assert alone.startswith("### :white_check_mark: The change moves no pod\n")


def test_a_baseline_without_a_cluster_in_it_is_refused_with_the_command_that_dumps_one(
    tmp_path: Path,
) -> None:
    (tmp_path / "chart").mkdir()
    (tmp_path / "chart" / "Chart.yaml").write_text("{apiVersion: v2, name: c, version: 0.1.0}")
    (tmp_path / "mine.yaml").write_text(writing.dump(pod("mine")))
    for name, text, what in (
        ("empty.yaml", "# nothing", "holds no Kubernetes object"),
        ("broken.yaml", "a: [", "neither YAML nor JSON"),
        ("chart/values.yaml", "replicaCount: 3", "has the values of a Helm chart"),
        ("pods.yaml", writing.dump(pod("p")), "holds no node"),
        ("chart", None, "is a Helm chart"),
        ("missing.yaml", None, "there is no such file"),
    ):
        path = tmp_path / name
        if text is not None:
            path.write_text(text)
        given = ["simulate", "--baseline", str(path), "-f", str(tmp_path / "mine.yaml")]
        result = CliRunner().invoke(cli.app, given)
        assert result.exit_code == 2, result.output
        said = unwrapped(result.stderr)
        assert said.startswith(f"--baseline {path}: {what}")
        if name not in {"broken.yaml", "missing.yaml"}:
            assert (
                "a baseline is a dump of a cluster, with its nodes: use `kubectl get nodes," in said
            )
        assert "helm template" not in said


def test_a_file_that_becomes_the_baseline_is_named_with_how_many_pods_no_longer_count(
    tmp_path: Path,
) -> None:
    dump = [node("n", cpu=4), pod("big", cpu=40)]
    alone = run(tmp_path, "--fail-if-pending", dump=dump)
    assert (alone.exit_code, "baseline" in alone.stderr) == (1, False)
    beside = run(tmp_path, "--fail-if-pending", dump=dump, mine=[pod("mine")])
    assert beside.exit_code == 0
    said = (
        f"{tmp_path / 'dump.yaml'} is taken as the baseline, because it holds nodes or running pods: 1 pod that waits "
        "there does not count for the exit code, as only pods of the other files do"
    )
    assert f"warning: {said}" in unwrapped(beside.stderr)
    comment = run(tmp_path, "-o", "markdown", dump=dump, mine=[pod("mine")]).stdout
    assert "is taken as the baseline" in comment
    found = json.loads(run(tmp_path, "-o", "json", dump=dump, mine=[pod("mine")]).stdout)
    assert said in found["warnings"]
    assert found["ownFiles"] == [str(tmp_path / "mine.yaml")]


def agent(name: str, **labels: str) -> Json:
    body = workload("DaemonSet", name)
    body["spec"]["template"]["spec"]["nodeSelector"] = labels
    return body


def test_a_daemon_set_of_ones_own_that_suits_no_node_is_a_warning_in_the_first_line(
    tmp_path: Path,
) -> None:
    baseline, mine = [*DUMP, agent("old", no="such")], [agent("mine", no="such")]
    sentence = "DaemonSet default/mine suits no node: no node has the label no=such"
    options = ("--fail-if-pending", "--only-ours")
    comment = with_baseline(
        tmp_path, "-o", "markdown", *options, baseline=baseline, mine=mine
    )  # fmt: skip
    # No pod waits, so a gate passes.
    assert comment.exit_code == 0
    first, *rest = comment.stdout.splitlines()
    assert first == f"### :warning: Your files bring no new pod; {sentence}"
    assert sum("default/mine" in line for line in rest) == 0
    (others,) = (line for line in rest if line.startswith("- refused by every node"))
    assert others.endswith("1 DaemonSet of the baseline (default/old)")
    printed = with_baseline(tmp_path, *options, baseline=baseline, mine=mine).stdout
    lines = unwrapped(printed)
    assert lines.index(f"* {sentence}") < lines.index("1 DaemonSet of the baseline (default/old)")
    # Beside pods that fit, or that wait, it is named too.
    for more, start in (
        (pod("fits"), "### :warning: The pod of your files fits; "),
        (pod("big", cpu=99), "### :x: 1 of 1 pod of your files does not fit; "),
    ):
        said = with_baseline(
            tmp_path, "-o", "markdown", baseline=baseline, mine=[*mine, more]
        ).stdout
        assert said.splitlines()[0] == f"{start}{sentence}"
    (one,) = json.loads(with_baseline(tmp_path, "-o", "json", baseline=baseline, mine=mine).stdout)[
        "ownUnsuited"
    ]
    assert one["name"] == "mine"


def claiming(name: str, claim: str, **spec: str) -> list[Json]:
    """A pod and its claim."""
    stored = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    body = {"accessModes": ["ReadWriteOnce"], **spec}
    kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    meta = {"name": claim, "namespace": "default"}
    return [pod(name, spec={"volumes": stored}), {**kind, "metadata": meta, "spec": body}]


def test_missing_storage_of_ones_own_pods_comes_first_and_that_of_the_baseline_is_one_warning(
    tmp_path: Path,
) -> None:
    baseline = [
        *DUMP,
        *claiming("o1", "c1", storageClassName="gone"),
        *claiming("o2", "c2", storageClassName="gone"),
        *claiming("o3", "c3", volumeName="nope"),
    ]
    mine = claiming("mine", "c4", storageClassName="gone")
    printed = with_baseline(tmp_path, "-o", "json", baseline=baseline, mine=mine).stdout
    first, *_, last = json.loads(printed)["warnings"]
    assert first.startswith(
        "StorageClass gone is not among the objects: pods whose claims name it wait: default/mine;"
    )
    assert last == (
        "in the baseline, pods wait for storage that is not among the objects: StorageClass gone (2 pods), "
        "PersistentVolume nope (1 pod)"
    )
    assert "default/o1" not in " ".join(json.loads(printed)["warnings"])
    # A dump alone has nothing else to say.
    alone = json.loads(run(tmp_path, "-o", "json", dump=baseline).stdout)["warnings"]
    assert sum("default/o1" in text for text in alone) == 1
