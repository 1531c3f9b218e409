"""Pages lead to what is there: links, commands, flags and targets that exist."""

import re
import tomllib
from pathlib import Path

import pytest
import typer.main
import yaml

from scheduler.api import kinds
from scheduler.cli.app import app
from tests.controlplane import build
from tests.docs import blocks

README = blocks.ROOT / "README.md"
README_LINES_MAX = 150
INDEX = blocks.ROOT / "docs/README.md"
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
FLAGS = {
    name: {flag for p in command.params for flag in (*p.opts, *p.secondary_opts)} | {"--help"}
    for name, command in COMMANDS.items()
}
# What stands before a command.
OF_ALL = {flag for p in typer.main.get_command(app).params for flag in p.opts}
BENCH = (blocks.ROOT / "bench/__main__.py").read_text(encoding="utf-8")
DIFFERENTIAL = (blocks.ROOT / "tests/differential/__main__.py").read_text(encoding="utf-8")
# What takes arguments behind ``make``.
PROGRAMS = "".join(
    (blocks.ROOT / room / "__main__.py").read_text(encoding="utf-8")
    for room in ("bench", "tests/conformance", "tests/differential", "tests/differential/queues")
)
# Of programs that are not Evenkeel's, such as cluster-autoscaler, and of those behind ``make``.
OTHERS = {
    "--editable",
    "--server-side",
    "--set",
    "--allowed-scheduler-names",
    "--bypassed-scheduler-names",
    "--expendable-pods-priority-cutoff",
    "--leader-elect",
    *re.findall(r"add_argument\(\s*\"(--[a-z]+)\"", PROGRAMS),
}
# ``Added in`` lists what is gone too.
TODAY = [page for page in blocks.PAGES if page.name != "CHANGELOG.md"]


def prose(page: Path) -> str:
    """A page without its fences."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)


def links(page: Path) -> set[str]:
    """Where a page's relative links lead, with their anchors; pictures too."""
    found = re.findall(r"\]\(([^)\s]+)\)|<img[^>]* src=\"([^\"]+)\"", prose(page))
    flat = {one or other for one, other in found}
    return {link for link in flat if not re.match(r"[a-z]+:", link)}


def anchors(page: Path) -> set[str]:
    """What GitHub calls the headings of a page."""
    heads = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def inline(page: Path) -> list[str]:
    """What a page's prose shows as code."""
    return re.findall(r"`([^`\n]+)`", prose(page))


@pytest.mark.parametrize("page", blocks.PAGES, ids=lambda page: str(page.relative_to(blocks.ROOT)))
def test_a_link_leads_to_what_is_there(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), link
        assert not anchor or anchor in anchors(there), link


def test_every_page_is_in_the_index_and_found_from_the_readme() -> None:
    listed = links(INDEX)
    pages = [page for page in blocks.PAGES if page.is_relative_to(INDEX.parent) and page != INDEX]
    assert {str(page.relative_to(INDEX.parent)) for page in pages} - listed == set()
    assert "docs/README.md" in links(README)


def test_a_newcomer_reads_the_readme_in_five_minutes() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= README_LINES_MAX


@pytest.mark.parametrize("page", TODAY, ids=lambda page: str(page.relative_to(blocks.ROOT)))
def test_commands_and_flags_in_the_text_exist(page: Path) -> None:
    for code in inline(page):
        words = code.split()
        flags = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        if words[0] == "evenkeel" and len(words) > 1 and words[1] in OF_ALL:
            continue
        if words[0] == "evenkeel" and len(words) > 1:
            assert words[1] in COMMANDS, code
            assert flags <= FLAGS[words[1]], code
        elif words[0] in COMMANDS:
            assert flags <= FLAGS[words[0]], code
        elif words[0].startswith("--"):
            assert flags <= OTHERS.union(OF_ALL, *FLAGS.values()), code
        elif words[0] == "make":
            targets(code)


def targets(code: str) -> None:
    """Every word of a call of make is a target, a variable, or part of an argument to one."""
    makefile = (blocks.ROOT / "Makefile").read_text(encoding="utf-8")
    known = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    arguments = re.sub(r"\w+=(\"[^\"]*\"|\S+)", "", code.removeprefix("make").partition("#")[0])
    assert set(arguments.split()) <= known, code
    for part in re.findall(r"ARGS=\"?([a-z-]+)", code):
        assert f'    "{part}": (' in BENCH or f'["{part}"]' in DIFFERENTIAL, code
    for flag in re.findall(r" (--[a-z]+)", code):
        assert flag in OTHERS, code


def test_the_kinds_of_words_are_found() -> None:
    """Else the test above would pass over all."""
    found = [code for page in TODAY for code in inline(page)]
    for start in ("evenkeel ", "simulate", "--", "make "):
        assert any(code.startswith(start) for code in found), start


def test_the_versions_that_are_told_are_those_of_the_tests_and_the_chart() -> None:
    told = (blocks.ROOT / "docs/versions.md").read_text(encoding="utf-8")
    assert f"kube-apiserver {build.kubernetes_version().removeprefix('v')}," in told
    chart = yaml.safe_load((blocks.ROOT / "manifests/chart/Chart.yaml").read_text())
    oldest = re.search(r"\d+\.\d+", chart["kubeVersion"])
    assert oldest is not None
    assert f"before {oldest[0]} | the chart refuses" in told
    project = tomllib.loads((blocks.ROOT / "pyproject.toml").read_text())["project"]
    assert f"Python {project['requires-python'].removeprefix('>=')} or newer" in told


@pytest.mark.parametrize("page", ["README.md", "docs/user-guide.md"])
def test_a_dump_has_every_kind_that_is_read_and_no_other(page: str) -> None:
    """Kinds that an API server may lack are left out by their own command: kubectl refuses a list with one of them."""
    shown = [one for one in blocks.of(blocks.ROOT / page) if one.language == "console"]
    commands = [step.command for block in shown for step in block.steps]
    [always] = [one for one in commands if one.startswith("kubectl get nodes,pods,")]
    [some] = [one for one in commands if "kubectl api-resources" in one]
    named = always.replace("\\\n", "").split()[2].split(",")
    assert sorted(named) == sorted(kind.plural for kind in kinds.TABLE if not kind.absent)
    # Several API groups have kinds of one name.
    named = [one for part in re.findall(r"\^\((.+?)\)", some) for one in part.split("|")]
    assert sorted(named) == sorted({kind.plural for kind in kinds.TABLE if kind.absent})
