"""The audit's page in a real browser: on a desktop, on a phone and on paper, with few nodes and with 5,000."""

from functools import cache
from pathlib import Path

import pytest

from scheduler.audit import findings
from scheduler.audit.findings import About, Question
from scheduler.audit.page import page
from scheduler.audit.prices import book
from scheduler.config import Config
from tests import make
from tests.unit import browser

SIZES = (1, 5, 200, 5000)
WIDTHS = {"desktop": 1280, "phone": 390}
# Of A4 within the margins that the page asks for.
PAPER = {"paper": 703}
SMALLEST_PX = 11
# Nothing in it could be too wide.
NARROW = "<!DOCTYPE html><style>@page{margin:12mm}body{background:#fff}</style><body>x"
# What a cluster may hold: Kubernetes allows names of 253 characters.
LONG = "ip-10-0-0-1." + "a" * 200 + ".internal"


@cache
def rendered(n: int) -> str:
    nodes = [
        make.hami_node(name=LONG if i == 0 else f"gpu-{i:04}", cards=1 + i % 4, cpu=8)
        for i in range(n)
    ]
    pods = [
        make.pod(name=f"p{i}", node=node.metadata.name, cpu=7, memory="1Gi")
        for i, node in enumerate(nodes[: n // 2 + 1])
    ]
    pods += [make.pod(name=f"waits-{i}", gpu=1 + i % 5, cpu=i % 3) for i in range(n // 2)]
    question = Question(
        config=Config(), modes=(None,), prices=book.read_packaged(), worst=10, orders=1,
        about=About(made="2026-01-01 00:00 UTC", source=LONG, version="1.2.3"),
    )  # fmt: skip
    return page.render_page(findings.audit_cluster(nodes, pods, question))


@pytest.mark.parametrize("n", SIZES)
def test_the_page_fits_its_window_and_its_text_can_be_read(n: int, tmp_path: Path) -> None:
    found = browser.measure(rendered(n), WIDTHS, tmp_path)
    assert found.keys() == WIDTHS.keys()
    for name, one in found.items():
        assert one["width"] == WIDTHS[name]
        assert (one["scrolls"], one["wide"], one["cut"]) == (0, [], []), name
        assert one["texts"] > 30
        assert one["smallest"] >= SMALLEST_PX, one["small"]


@pytest.mark.parametrize("n", SIZES)
def test_the_page_is_printed_whole_and_not_shrunk(n: int, tmp_path: Path) -> None:
    found = browser.measure(rendered(n), PAPER, tmp_path, on_paper=True)["paper"]
    assert (found["scrolls"], found["wide"], found["cut"]) == (0, [], [])
    assert (found["torn"], found["stiff"]) == ([], [])
    assert found["smallest"] >= SMALLEST_PX, found["small"]
    on_paper = browser.printed(rendered(n), tmp_path)
    assert on_paper.scale == browser.printed(NARROW, tmp_path).scale
    # The last sheet ends where the page ends.
    assert all(2 / 3 <= part <= 1.01 for part in on_paper.filled[:-1]), on_paper.filled


def test_every_one_of_5000_nodes_has_a_cell_and_the_page_stays_small() -> None:
    text = rendered(5000)
    assert text.count("stranded, ") >= 5000
    assert len(text) < 1_000_000


def test_what_is_too_wide_too_small_or_cut_is_noticed(tmp_path: Path) -> None:
    """Else the tests above could not fail."""
    bad = (
        "<!DOCTYPE html><style>@page{margin:12mm}body{background:#fff}@media print{}</style><body>"
        '<p style="width:2000px">wide</p><p style="font-size:9px">small</p>'
        '<p style="overflow:hidden;width:50px;white-space:nowrap">cut off at the end</p>'
        "<table><tr><td>torn</td></tr></table>"
        '<figure style="break-inside:avoid;height:600px">stiff</figure>'
        '<svg viewBox="0 0 1000 10" width="300"><text y="9" style="font-size:20px">shrunk</text></svg>'
    )
    found = browser.measure(bad, WIDTHS, tmp_path)["phone"]
    assert found["scrolls"] > 0
    assert found["wide"]
    assert any("torn" in one for one in found["torn"])
    assert any("stiff" in one for one in found["stiff"])
    assert any("cut off" in one for one in found["cut"])
    assert found["smallest"] == pytest.approx(6)
    shrunk, unshrunk = (browser.printed(one, tmp_path) for one in (bad, NARROW))
    assert shrunk.scale < unshrunk.scale
    stiff = (
        "<p>above</p>"
        + '<div style="break-inside:avoid"><p style="height:700px">stiff</p></div>' * 2
    )
    assert browser.printed(NARROW + stiff, tmp_path).filled[0] < 2 / 3


def test_without_a_browser_nothing_passes_for_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(browser.NoBrowserError, match="apt-get install chromium"):
        browser.measure(NARROW, WIDTHS, tmp_path)
