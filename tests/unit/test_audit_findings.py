"""What an audit says: money, the worst nodes, the replay, JSON and the page."""

import html
import io
import json
import re
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest
from rich.console import Console

from scheduler.api import names, wire
from scheduler.api.placement import Mode
from scheduler.audit import findings, table, words
from scheduler.audit.findings import About, Question
from scheduler.audit.page import charts, page
from scheduler.audit.prices import book
from scheduler.config import Config
from tests import make

Json = dict[str, Any]
EVIL = "<script>alert('&\"')</script>"
MODES = (None, Mode.BEST_FIT, Mode.LEAST_ALLOCATED)
ABOUT = About(made="2026-01-01 00:00 UTC", source="cluster.yaml", version="1.2.3")


def audit(nodes: list[wire.Node], pods: list[wire.Pod], **changes: Any) -> Json:
    question: Json = {
        "config": Config(),
        "modes": MODES,
        "prices": book.read_packaged(),
        "worst": 3,
    }
    question |= {"orders": 2, "about": ABOUT}
    return findings.audit_cluster(nodes, pods, Question(**question | changes))


def plain(name: str, node: str, cpu: object, memory: object, **more: Any) -> wire.Pod:
    return make.pod(name=name, node=node, cpu=cpu, memory=memory, **more)


def two_nodes() -> tuple[list[wire.Node], list[wire.Pod]]:
    """On ``a`` all the memory is gone and 34 cores are free; ``b`` has one core's worth of everything."""
    nodes = [make.node(name=name, cpu=64, memory="64Gi") for name in "ab"]
    fat = [plain(f"fat-{i}", "a", 1, "2176Mi") for i in range(30)]
    lean = [plain(f"lean-{i}", "b", 2, "256Mi") for i in range(30)]
    return nodes, fat + lean


def owned(kind: str, pod: wire.Pod) -> wire.Pod:
    pod.metadata.owner_references = [wire.Owner(kind)]
    return pod


def test_money_is_what_is_stranded_times_its_price_and_the_dearest_node_is_first() -> None:
    nodes, pods = two_nodes()
    found = audit(nodes, pods, prices=book.read_flags(None, [f"{book.CPU_CORE}=10"]))
    assert [node["name"] for node in found["nodes"]] == ["a", "b"]
    node = found["nodes"][0]
    assert node["free"]["cpu"] == 34
    # A third of the cores asked is by fat pods, which need more memory than the quarter GiB that is left.
    assert node["stranded"]["cpu"] == pytest.approx(34 / 3)
    assert node["money"] == pytest.approx(340 / 3)
    assert found["worst"][0] == "a"


def test_the_total_is_the_sum_of_the_nodes() -> None:
    found = audit(*two_nodes())
    for figure in ("capacity", "used", "free", "closed", "stranded", "dead", "spare", "usable"):
        for dimension in findings.UNITS:
            values = [node[figure][dimension] for node in found["nodes"]]
            assert found["total"][figure][dimension] == pytest.approx(sum(values), abs=1e-5)
    assert found["total"]["money"] == pytest.approx(
        sum(node["money"] for node in found["nodes"]), abs=1e-5
    )
    assert found["total"]["money"] == pytest.approx(
        sum(found["total"]["moneyByDimension"].values()), abs=1e-5
    )


def test_json_has_the_documented_shape_to_the_key() -> None:
    nodes, pods = two_nodes()
    found = audit(nodes, [*pods, make.pod(name="waits", gpu=2, cpu=3, memory="1Gi")])
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    amounts = {"capacity", "used", "free", "closed", "stranded", "dead", "spare", "usable"}
    assert set(found) == {
        "about", "gpuModels", "prices", "priceSources", "pricesUnused", "units", "demand", "total", "worst", "nodes", "uncounted", "leftOut", "mistakes", "passedOver", "waiting", "next", "gangs", "devices", "replay"
    }  # fmt: skip
    assert found["units"] == {
        "cpu": "cores", "memory": "GiB", "gpuCompute": "GPUs", "gpuMemory": "GiB"
    }  # fmt: skip
    assert set(found["demand"]) == {"gpuPods", "otherPods", "askingNothing", "enough", "typical"}
    assert found["demand"]["gpuPods"] == {"seen": 1, "assumed": True}
    assert found["demand"]["otherPods"] == {"seen": 60, "assumed": False}
    assert set(found["demand"]["typical"][0]) == {
        "pods", "cpu", "memory", "gpus", "gpuMemoryMiB", "gpuMemoryPercent", "gpuCores"
    }  # fmt: skip
    money = {"moneyByDimension", "usableByDimension", "money", "value"}
    assert set(found["total"]) == amounts | money
    assert set(found["total"]["value"]) == amounts
    assert set(found["nodes"][0]) == amounts | {"name", "money", "usableMoney", "isClosed", "hasGpus", "models", "sharers", "reason", "why"}  # fmt: skip
    assert all(set(found["total"][figure]) == set(found["units"]) for figure in amounts)
    assert found["waiting"] == [{"pod": "default/waits", "cpu": 3.0, "memory": 1.0, "gpus": 2}]
    assert set(found["replay"]) == {
        "note", "moved", "stayed", "stays", "withoutController", "orders", "emptyNodes", "arrivals", "held", "modes", "advice"
    }  # fmt: skip
    assert [one["mode"] for one in found["replay"]["modes"]] == ["default", "best-fit", "least-allocated"]  # fmt: skip
    assert set(found["replay"]["modes"][0]) == {
        "mode", "stranded", "dead", "money", "saved", "emptyNodes", "unplaced", "inOrders", "held"
    }  # fmt: skip
    assert set(found["replay"]["modes"][0]["inOrders"]) == {"emptyNodes", "unplaced", "gpus", "money"}  # fmt: skip
    held = set(found["units"]) | {"pods"}
    assert set(found["replay"]["held"]) == set(found["replay"]["modes"][0]["held"]) == held
    assert set(found["replay"]["advice"]) == {"mode", "figure", "text"}
    assert found["about"] == {"made": ABOUT.made, "source": ABOUT.source, "evenkeel": "1.2.3"}


def test_the_same_pods_placed_level_strand_less() -> None:
    found = audit(*two_nodes())
    replayed = {one["mode"]: one for one in found["replay"]["modes"]}
    assert found["replay"]["moved"] == 60
    level = replayed["least-allocated"]
    assert level["unplaced"] == []
    assert level["money"] == 0
    assert level["saved"] == found["total"]["money"] > 0


def test_nodes_without_any_of_the_pods_placed_again_count_as_empty() -> None:
    nodes = [make.node(name=name) for name in "abc"]
    agents = [owned("DaemonSet", plain(f"agent-{name}", name, "100m", "1Gi")) for name in "abc"]
    pods = [plain("p", "a", 1, "1Gi"), plain("q", "b", 1, "1Gi")]
    replay = audit(nodes, agents + pods, modes=(Mode.BEST_FIT, Mode.LEAST_ALLOCATED))["replay"]
    assert replay["emptyNodes"] == 1
    assert [one["emptyNodes"] for one in replay["modes"]] == [2, 1]


def test_pods_that_belong_to_their_node_or_may_not_return_stay() -> None:
    nodes = [make.node(name="a"), make.node(name="old", unschedulable=True)]
    mirror = plain("mirror", "a", 1, "1Gi", annotations={names.MIRROR: "x"})
    leaving = plain("leaving", "a", 1, "1Gi")
    leaving.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    claims = plain("claims", "a", 1, "1Gi", spec={"resourceClaims": [{"name": "x"}]})
    pods = [
        owned("DaemonSet", plain("agent", "a", 1, "1Gi")),
        owned("Node", plain("static", "a", 1, "1Gi")),
        owned("ReplicaSet", plain("web", "a", 1, "1Gi")),
        mirror, leaving, claims,
        plain("on-old", "old", 1, "1Gi"),
        plain("nowhere", "gone", 1, "1Gi"),
    ]  # fmt: skip
    replay = audit(nodes, pods)["replay"]
    assert (replay["moved"], replay["stayed"]) == (1, 7)
    assert all(one["unplaced"] == [] for one in replay["modes"])


def test_pods_are_placed_oldest_first_and_those_left_over_are_named() -> None:
    """The node has shrunk below what runs there: one pod finds no place again, the youngest."""
    node = make.node(name="a", cpu=2)
    pods = [plain(name, "a", 1, "1Gi") for name in ("young", "old", "older")]
    for pod, year in zip(pods, (2026, 2025, 2024), strict=True):
        pod.metadata.creation_timestamp = f"{year}-01-01T00:00:00Z"
    found = audit([node], pods)
    assert [one["unplaced"] for one in found["replay"]["modes"]] == [["default/young"]] * 3
    assert found["nodes"][0]["used"]["cpu"] == 3
    assert found["nodes"][0]["free"]["cpu"] == 0


def test_pods_with_cards_are_placed_again_on_other_cards() -> None:
    nodes = [make.hami_node(name="g", cards=2), make.hami_node(name="h", cards=2)]
    pods = [
        make.pod(
            name=f"p{i}", node=node, cpu=1, gpu=1, gpumem=5000, gpucores=30,
            annotations={names.HAMI_ALLOCATED: f"{node}-GPU-{card},NVIDIA,5000,30:;"},
        )
        for i, (node, card) in enumerate((("g", 0), ("g", 1), ("h", 0), ("h", 1)))
    ]  # fmt: skip
    found = audit(nodes, pods, modes=(Mode.KEEL,))
    assert found["total"]["used"]["gpuCompute"] == pytest.approx(1.2)
    assert found["replay"]["moved"] == 4
    assert found["replay"]["modes"][0]["unplaced"] == []
    assert found["replay"]["modes"][0]["stranded"] != found["total"]["stranded"]


def test_the_audit_leaves_what_it_was_given_as_it_was() -> None:
    nodes, pods = two_nodes()
    before = msgspec.json.encode((nodes, pods))
    assert audit(nodes, pods) == audit(nodes, pods)
    assert msgspec.json.encode((nodes, pods)) == before


class Reader(HTMLParser):
    """Checks that tags close in order, and keeps what it read."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str | None] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value for key, value in attrs if key in {"href", "src"}]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def test_the_page_stands_alone_and_escapes_every_name() -> None:
    nodes = [
        make.hami_node(name=EVIL, cards=2, cpu=4),
        make.node(name=f"{EVIL}2", annotations={names.HAMI_REGISTER: "{"}),
    ]
    pods = [plain("p", EVIL, 3, "1Gi")]
    text = page.render_page(audit(nodes, pods))
    assert "<script" not in text
    assert html.escape(EVIL) in text
    reader = read(text)
    assert "script" not in reader.tags
    assert reader.tags.count("figure") == 3
    assert reader.links == []
    assert "url(" not in text
    assert "prefers-color-scheme:dark" in text
    assert EVIL in reader.words


def test_the_page_of_an_empty_cluster_is_a_page() -> None:
    reader = read(page.render_page(audit([], [], modes=())))
    assert "No node has GPUs." in reader.words
    assert "Nothing is stranded" in reader.words
    assert "The cluster has no node." in reader.words


def test_bars_are_ordered_by_what_they_show_and_the_rest_is_told_truly() -> None:
    rows = [
        {
            "name": f"n{i:03}",
            "money": 100.0 - i,
            **{key: {"gpuCompute": 1.0} for key in ("used", "usable", "closed")},
            "capacity": {"gpuCompute": 8.0},
            "stranded": {"gpuCompute": i / 100},
        }
        for i in range(100)
    ]
    drawn = charts.draw_nodes(rows)
    reader = read(drawn)
    names = re.findall(r"<span>(n\d{3})</span>", drawn)
    assert names == [f"n{i:03}" for i in range(99, 59, -1)]
    rest = sum(i / 100 for i in range(60))
    assert f"The chart shows 40 of 100 nodes with GPUs, those with the most stranded; the other 60 strand {rest:.1f} GPUs in all." in reader.words  # fmt: skip
    assert "shown" not in read(charts.draw_nodes(rows[:40])).words


def test_the_headline_is_what_could_be_used_and_is_not() -> None:
    """What is stranded comes after it, and both say GPUs and money."""
    nodes = [
        make.hami_node(name="lost", cards=2, cpu=4),
        make.hami_node(name="idle", cards=4, cpu=64),
    ]
    found = audit(nodes, [plain("b", "lost", 4, "1Gi")], modes=())
    value = found["total"]["value"]
    assert value["usable"] > 0
    assert value["free"] == pytest.approx(value["usable"] + value["stranded"] + value["spare"])
    assert value["usable"] == pytest.approx(sum(node["usableMoney"] for node in found["nodes"]))
    assert value["usable"] == pytest.approx(sum(found["total"]["usableByDimension"].values()))
    first, second = words.write_headline(found)
    assert first.startswith(
        f"Of ${value['capacity']:,.0f} a month, ${value['usable']:,.0f} is usable and unused: 4 GPUs, "
    )
    assert second.startswith(f"${value['stranded']:,.0f} a month is stranded, ")
    assert "2 GPUs" in second
    shown = read(page.render_page(found)).words
    assert shown.index(first) < shown.index(second)


def test_the_page_says_of_what_when_and_by_which_version() -> None:
    shown = read(page.render_page(audit(*two_nodes()))).words
    assert "cluster.yaml, 2026-01-01 00:00 UTC, Evenkeel 1.2.3" in shown


def test_money_of_a_mode_is_told_with_its_range_over_all_orders() -> None:
    """The first order is one of many: its figure alone would be taken for the mode's."""
    found = audit(*two_nodes())
    for one in found["replay"]["modes"]:
        one["money"], one["saved"] = 7_777.0, 5_555.0
        one["inOrders"]["money"] = [1_111.4, 3_333.0, 2_222.0]
    lines = shown_at(80, found)
    rows = [line.split()[0] for line in lines if line.rstrip().endswith("1,111 to 3,333")]
    assert rows == ["default", "best-fit", "least-allocated"]
    shown = read(page.render_page(found)).words
    for text in ("\n".join(lines), shown):
        assert text.count("1,111 to 3,333") >= 3
        assert "7,777" not in text
        assert "5,555" not in text
    assert "saved" not in shown


def test_dollars_and_gpus_stranded_need_not_agree_and_that_is_said() -> None:
    nodes = [make.hami_node(name="g", cards=2)]
    found = audit([*nodes, make.node(name="a")], [plain("p", "a", 1, "1Gi")])
    told = "a mode that strands more GPUs can still strand fewer dollars."
    assert any(line.endswith(told) for line in words.describe_moved(found))
    assert told not in " ".join(words.describe_moved(audit(*two_nodes())))
    assert (
        "in 2 orders. A range goes from the lowest to the highest result of these orders."
        in words.describe_moved(found)[0]
    )


def test_pods_that_ask_nothing_are_said_not_to_count() -> None:
    """Where only such run, "0 pods seen" alone would be taken for a mistake."""
    nodes = [make.node(name="a")]
    agent = owned("DaemonSet", make.pod(name="agent", node="a"))
    gpu_pod = make.pod(name="gpu", gpu=1)
    found = audit(nodes, [*(make.pod(name=f"p{i}", node="a") for i in range(3)), agent, gpu_pod])
    assert found["demand"]["askingNothing"] == 3
    said = words.describe_demand(found)
    assert (
        "Typical pods without GPUs: assumed, because the cluster has 0 such pods and 30 are needed to measure them."
        in said
    )
    told = (
        "3 pods without any request for GPUs, CPU or memory are not counted among the typical pods."
    )
    assert told in said
    assert told in read(page.render_page(found)).words
    assert not any("not counted" in line for line in words.describe_demand(audit(*two_nodes())))


def test_headings_say_by_what_nodes_are_ordered() -> None:
    text = page.render_page(audit(*two_nodes()))
    assert "<h2>GPUs by node, the most stranded GPUs first</h2>" in text
    assert "<h2>Where the most is stranded, in dollars</h2>" in text


def shown_at(width: int, found: Json) -> list[str]:
    out = io.StringIO()
    table.print_audit(found, Console(width=width, file=out, force_terminal=True, color_system=None))
    return out.getvalue().splitlines()


def test_the_table_fits_80_columns_and_no_figure_is_cut() -> None:
    """Also where figures are as large as they get, and a name as long as it may be."""
    found = audit(*two_nodes())
    longest = "n" * 253
    huge = dict.fromkeys(findings.UNITS, 9_999_999.9)
    total, node = found["total"], found["nodes"][0]
    for figure in ("capacity", "used", "usable", "stranded", "dead", "spare", "closed"):
        total[figure] = huge
        total["value"][figure] = 999_999_999.0
    found["nodes"][0] = node | {"name": longest, "stranded": huge, "money": 999_999_999.0}
    found["worst"] = [longest]
    for one in found["replay"]["modes"]:
        one["inOrders"] |= {"emptyNodes": [4_998, 4_999], "unplaced": [1_000, 9_999], "gpus": [30_000.0, 39_999.0]}  # fmt: skip
        one["inOrders"]["money"] = [999_999_998.0, 999_999_999.0]
    lines = shown_at(80, found)
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    assert "…" not in text
    capacity = next(line for line in lines if line.strip().startswith("capacity"))
    assert capacity.split() == ["capacity", *["10,000,000"] * 4, "999,999,999"]
    assert sum(line.count("999,999,999") for line in lines) == 3 + 7 + 2 + 3
    assert text.count("999,999,998 to") == text.count("4,998 to 4,999") == 3
    assert text.count("39,999") == 3
    assert any(line.strip().startswith("least-allocated ") for line in lines)
    assert "".join(line.split()[0] for line in lines if line.strip().startswith("nnn") and ":" not in line).startswith("n" * 100)  # fmt: skip


def test_how_many_free_gpus_typical_pods_can_use_is_a_sentence_to_read_once() -> None:
    def told(free: float, stranded: float, dead: float) -> str:
        amounts = {"free": free, "stranded": stranded, "dead": dead}
        total = {name: {"gpuCompute": value} for name, value in amounts.items()}
        return words.describe_share({"total": total})

    assert told(0, 0, 0) == ""
    assert told(2, 0, 0) == "Typical GPU pods can use all of the 2 free GPUs."
    average = "on average over these pods."
    assert told(4, 1, 0) == f"Typical GPU pods cannot use 25% of the 4 free GPUs, {average}"
    assert told(1000, 1, 0).startswith("Typical GPU pods cannot use less than 1% of the 1,000 free")
    assert told(4, 2, 1).endswith(" 1 of the free GPUs cannot be used by any typical GPU pod.")
