"""``evenkeel simulate -o markdown``: a comment on a pull request."""

import html
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from scheduler import cli
from scheduler.documents import writing
from scheduler.simulate import markdown
from tests.unit.test_simulate_what_if import gpu_node, node, pod, refused, simulate, workload

Json = dict[str, Any]
# What GitHub takes.
COMMENT_MAX = 65_536
EVIL = "a|b`c\\|d*e*<img src=x>[f](g)"


def comment(*arguments: str, objects: list[Json]) -> list[str]:
    result = simulate("-o", "markdown", *arguments, objects=objects)
    assert result.exit_code in {0, 3}, result.output
    assert len(result.stdout) <= COMMENT_MAX
    return result.stdout.splitlines()


def rows(lines: list[str], title: str) -> list[list[str]]:
    """The cells of the table whose second heading, or first, is this one."""
    at = next(i for i, line in enumerate(lines) if title in line.strip("| ").split(" | "))
    found = []
    for line in lines[at + 2 :]:
        if not line.startswith("|"):
            break
        found.append(cells(line))
    return found


def cells(line: str) -> list[str]:
    """As GitHub parts a row: at every bar that has no backslash before it."""
    assert line.startswith("| ")
    assert line.endswith(" |")
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line[1:-1])]


def result(pods: list[Json], **more: Any) -> Json:
    return {
        "pods": pods,
        "groups": [],
        "summary": {"nodes": 200, "pods": len(pods), "scheduled": 0, "pending": len(pods)},
        "warnings": [],
        "mistakes": [],
        "passedOver": {},
    } | more


def row(name: str, message: str = "", namespace: str = "default", **more: Any) -> Json:
    return {
        "namespace": namespace,
        "name": name,
        "owner": None,
        "displacedFrom": None,
        "node": None,
        "devices": [],
        "claims": [],
        "message": message,
        "unschedulable": message,
        "victims": [],
        "nominated": None,
        "group": None,
        "own": False,
    } | more


def test_what_does_not_fit_comes_first_with_its_reason_once_for_all_pods_of_a_workload() -> None:
    objects = [node("n", cpu=4), workload("Deployment", "web", replicas=3), pod("big", cpu=99), pod("huge", cpu=99)]  # fmt: skip
    lines = comment(objects=objects)
    assert lines[0] == "### :x: 2 of 5 pods do not fit"
    assert lines[2] == "| Pods | Pending | Reason |"
    ((pods, who, why),) = rows(lines, "Pending")
    assert (pods, who) == ("2", "`default/big`, `default/huge`")
    assert why.startswith("0/1 nodes are available: ")
    assert "<details><summary>3 pods scheduled on 1 node</summary>" in lines
    assert rows(lines, "Scheduled") == [["3", "Deployment `default/web`", "`n`&nbsp;×&nbsp;3", ""]]
    assert lines.index("| Pods | Pending | Reason |") < lines.index(
        "| Pods | Scheduled | Nodes | Cards of each pod |"
    )
    assert lines[-1] == "<sub>Simulated by Evenkeel on 1 node; nothing was changed.</sub>"


def test_a_reason_whose_figures_differ_is_one_row_with_those_of_the_first_pod() -> None:
    objects = [node("n", cpu=4), *(pod(f"big-{i}", cpu=90 + i) for i in range(3)), pod("p", node_selector={"a": "b"})]  # fmt: skip
    (many, one) = rows(comment(objects=objects), "Pending")
    # The number is in the first cell alone.
    assert many[:2] == ["3", "`default/big-…`"]
    assert "requested 90, " in many[2]
    assert many[2].endswith("(The figures are those of default/big-0.)")
    assert one[:2] == ["1", "`default/p`"]
    assert "figures are those" not in one[2]


def test_when_all_fit_the_heading_says_so_and_cards_are_counted_by_their_share() -> None:
    lines = comment(objects=[gpu_node("g", cards=4), pod("p", gpu=2, gpumem=1000)])
    assert lines[0] == "### :white_check_mark: The pod fits"
    assert rows(lines, "Scheduled") == [["1", "`default/p`", "`g`", "2 × 1,000 MiB"]]
    assert "Pending" not in "".join(lines)


def test_like_names_without_an_owner_are_one_row() -> None:
    names = ["train-0", "train-1", "web-7d4b9c6f5-x2x4z", "web-7d4b9c6f5-q9w8b", "chat-7b", "api"]
    lines = comment(objects=[node("n", cpu=8), *map(pod, names)])
    found = {cells[1]: cells[0] for cells in rows(lines, "Scheduled")}
    assert found == {
        "`default/train-…`": "2",
        "`default/web-…`": "2",
        "`default/chat-7b`": "1",
        "`default/api`": "1",
    }


def test_pods_of_your_files_are_what_the_heading_is_about(tmp_path: Path) -> None:
    dump, change = tmp_path / "dump.yaml", tmp_path / "change.yaml"
    old = [pod(f"old-{i}", cpu=50) for i in range(3)]
    dump.write_text(writing.dump_all([node("n", cpu=4), *old]), encoding="utf-8")
    change.write_text(writing.dump_all([pod("mine"), pod("new", cpu=99)]), encoding="utf-8")
    arguments = ["simulate", "-f", str(dump), "-f", str(change), "-o", "markdown"]
    done = CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "### :x: 1 of 2 pods of your files does not fit"
    assert rows(lines, "Pending")[0][1] == "`default/new`"
    rest = lines[lines.index("<details><summary>3 other pods pending, 0 fit</summary>") :]
    assert rows(rest, "Pending")[0][:2] == ["3", "`default/old-…`"]


def test_who_is_evicted_is_told_with_the_node_and_the_pod_that_needs_room() -> None:
    low = [pod(f"low-{i}", node="n", cpu=2) for i in range(2)]
    high = pod("high", cpu=4, priority=1000)
    lines = comment(objects=[node("n", cpu=4), *low, high])
    (row,) = rows(lines, "Evicted")
    assert row == ["2", "`default/low-0`, `default/low-1`", "`n`", "`default/high`"]


def test_modes_are_compared_in_a_table_before_their_sections() -> None:
    lines = comment("--mode", "keel,best-fit", objects=[node("n"), pod("p"), pod("q", cpu=99)])
    assert lines[0] == "### Modes compared"
    assert rows(lines, "Scheduled") == [["`keel`", "1", "1", "1"], ["`best-fit`", "1", "1", "1"]]
    assert [line for line in lines if line.startswith("## ")] == [
        "## Mode `keel`",
        "## Mode `best-fit`",
    ]


def test_mistakes_are_named_and_are_no_success() -> None:
    lines = comment(objects=[node("n"), pod("p"), workload("Deployment", "web", replicas="x|y")])
    assert lines[0] == "### :x: The pod fits; 1 mistake in objects"
    ((who, field, problem),) = rows(lines, "Mistake in")
    assert (who, field) == ("Deployment default/web", "spec.replicas")
    assert "x&#124;y" in problem


def test_what_strangers_wrote_draws_nothing_and_calls_nobody() -> None:
    pods = [row(EVIL, f"{EVIL} @octocat #12 $x$", namespace=EVIL)]
    placed = row("p", node=EVIL, owner={"kind": EVIL, "name": EVIL}, own=False)
    text = markdown.write_comment({"": result([*pods, placed], warnings=[f"{EVIL} @you"])})
    for line in text.splitlines():
        if line.startswith("|"):
            assert len(cells(line)) in {3, 4}
        bare = re.sub(r"</?(details|summary|sub|code)>|&#\d+;", "", line)
        assert not re.search(r"[<`*\[\]\\$]", bare), line
    assert EVIL in html.unescape(text)
    assert "@octocat" not in text
    assert " #12" not in text
    assert "octocat" in text


@pytest.mark.parametrize("name", ["plain-name.x", "a|b", "a`b", "a\\b", "``", "a\\|b"])
def test_a_name_is_code_and_reads_as_it_was_written(name: str) -> None:
    (cell, end) = cells(f"| {markdown.quote_code(name)} | x |")
    assert end == "x"
    inner = cell.removeprefix("<code>").removesuffix("</code>").strip("`")
    assert html.unescape(inner) == name


def test_a_comment_is_bounded_however_many_unlike_pods_there_are() -> None:
    long = "n" * 253
    pods = [row(f"{long}.{i}", "x" * i + " why" * 300, f"{'s' * 60}{i}") for i in range(1500)]  # fmt: skip
    placed = [row(f"{long}.p{i}", node=f"{long}{i}", namespace=f"t{i}") for i in range(1500)]
    mistakes = [{"object": f"Pod {i}", "field": "spec", "problem": "p" * 900} for i in range(500)]
    groups = [
        {"kind": "PodGroup", "namespace": f"t{i}", "name": long, "members": 1, "minimum": 1, "placed": 1, "state": "placed", "domain": {"label": "l" * 300, "values": ["v" * 63] * 9}}
        for i in range(1500)
    ]  # fmt: skip
    for one_pod, group in zip(placed, groups, strict=True):
        one_pod["group"] = f"PodGroup {group['namespace']}/{long}"
    one = result([*pods, *placed], groups=groups, warnings=["w" * 900] * 400, mistakes=mistakes)
    for results in ({"": one}, {f"mode-{i}": one for i in range(16)}):
        text = markdown.write_comment(results)
        assert len(text) <= COMMENT_MAX
        assert "more rows" in text
    shown = markdown.write_comment({"": one}).splitlines()
    counts = [int(cells[0].replace(",", "")) for cells in rows(shown, "Pending")]
    assert sum(counts) == 1500


def test_scores_of_every_node_are_no_part_of_a_comment() -> None:
    said = refused("-o", "markdown", "--explain", objects=[node("n"), pod("p")])
    assert (
        said
        == "--explain: lists every node, which is too long for -o markdown; use -o table, json or yaml"
    )
