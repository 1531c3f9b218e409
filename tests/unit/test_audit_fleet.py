"""The fleet on the audit's page: every node and every pod that waits is a cell with a name."""

import html
import re

from scheduler.api import names
from scheduler.audit import words
from scheduler.audit.page import page, parts
from scheduler.audit.page.parts import Bar
from tests import make
from tests.unit.test_audit_findings import EVIL, audit, plain, read, shown_at


def test_the_fleet_has_a_cell_and_a_name_for_every_node_worst_kind_first() -> None:
    nodes = [
        make.hami_node(name="full", cards=1, cpu=4),
        make.hami_node(name="idle", cards=1, cpu=9),
    ]
    nodes += [
        make.hami_node(name="lost", cards=2, cpu=4),
        make.hami_node(name="shut", unschedulable=True),
    ]
    nodes += [make.node(name="plain", cpu=4), make.node(name=f"{EVIL}-3", cpu=4)]
    used = {names.HAMI_NODE: "full", names.HAMI_ALLOCATED: f"full-GPU-0,NVIDIA,{make.T4_MIB},100:;"}
    pods = [
        make.pod(name="a", node="full", cpu=4, gpu=1, annotations=used),
        plain("b", "lost", 4, "1Gi"),
    ]  # fmt: skip
    text = page.render_page(audit(nodes, pods))
    for name in ("full", "idle", "lost", "shut", "plain"):
        assert re.search(rf'title="[A-Z][12] {name}: ', text)
    assert f"{html.escape(EVIL)}-3: " in text
    kinds = ("s3", "idle", "full", "closed")
    places = [
        text.index(f'<i class="{kind}" title="{letter}1 {name}: ')
        for letter, kind, name in zip("ABCD", kinds, ("lost", "idle", "full", "shut"), strict=True)
    ]
    assert places == sorted(places)
    # What a cell is called stands in it, on hover, and in the list of names.
    for letter, name in zip("ABCD", ("lost", "idle", "full", "shut"), strict=True):
        assert f"<li>{letter}1 {name}</li>" in text
    words = read(text).words
    assert "1 node: half or more stranded" in words
    assert "D. 1 node: out of service: cordoned or unhealthy" in words


def test_pods_that_wait_are_cells_by_what_they_request() -> None:
    nodes = [make.hami_node(name="n", cards=1, cpu=4)]
    pods = [make.pod(name=f"big-{i}", gpu=8, cpu=1, memory="1Gi") for i in range(2)]
    pods += [make.pod(name=f"small-{i:03}", gpu=2, cpu=1, memory="1Gi") for i in range(300)]
    pods += [make.pod(name=f"odd-{i}", cpu=100 + i, memory="1Gi") for i in range(20)]
    found = audit(nodes, pods, modes=())
    text = page.render_page(found)
    shown = read(text).words
    assert "B. 2 pods: 8 GPUs, 1 core, 1 GiB" in shown
    assert "C. 300 pods: 2 GPUs, 1 core, 1 GiB (200 shown)" in shown
    assert "10 pods: other requests" in shown
    assert text.count('class="waits"') == 2 + 200 + 20
    assert 'title="B2 default/big-1 waits"' in text
    assert "<li>B2 default/big-1</li>" in text
    assert words.describe_waiting(found) in html.unescape(text)
    # Above what follows the fleet, and not among the notes at the end.
    assert text.index("Pods that wait") < text.index("In total")
    assert words.describe_waiting(found) not in words.describe_demand(found)


def test_a_cause_that_nodes_share_is_told_once() -> None:
    nodes = [make.hami_node(name=f"lost-{i}", cards=2, cpu=4) for i in range(5)]
    found = audit(
        nodes, [plain(f"b{i}", f"lost-{i}", 4, "1Gi") for i in range(5)], modes=(), worst=5
    )
    [why] = {node["why"]["cause"] for node in found["nodes"]}
    for node in found["nodes"]:
        assert node["reason"].startswith(f"{node['why']['left']}: {why}")
    shown = read(page.render_page(found)).words
    assert shown.count(f"{why[0].upper()}{why[1:]}") == 1
    assert why not in shown
    assert len(found["worst"]) > 1
    assert shown.count(found["nodes"][0]["why"]["left"]) == len(found["worst"])
    text = " ".join(" ".join(shown_at(80, found)).split())
    left = found["nodes"][0]["why"]["left"]
    assert "5 nodes (lost-0, lost-1, lost-2 and 2 more; " in text
    assert f" a month): {why}. lost-0: {left}" in text
    assert text.count(why) == text.count(left) == 1


def test_a_bar_says_in_plain_words_what_its_parts_are() -> None:
    drawn = parts.draw_bars("t", [Bar("n", [("closed", 2.0)], "2")], [("closed", "out of service")])
    assert 'title="out of service: 2.0"' in drawn
