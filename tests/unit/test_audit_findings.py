"""What an audit says: money, the worst nodes, the replay, JSON and the page."""

import html
import json
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest

from scheduler.api import names, wire
from scheduler.api.placement import Mode
from scheduler.audit import findings
from scheduler.audit.findings import About, Question
from scheduler.audit.page import page
from scheduler.audit.prices import book
from scheduler.config import Config
from tests import make

Json = dict[str, Any]
EVIL = "<script>alert('&\"')</script>"
MODES = (None, Mode.BEST_FIT, Mode.LEAST_ALLOCATED)
ABOUT = About(made="2026-01-01 00:00 UTC", source="cluster.yaml", version="1.2.3")


def audit(nodes: list[wire.Node], pods: list[wire.Pod], **changes: Any) -> Json:
    question: Json = {"config": Config(), "modes": MODES, "prices": book.packaged(), "worst": 3}
    question |= {"orders": 2, "about": ABOUT}
    return findings.audit(nodes, pods, Question(**question | changes))


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
    found = audit(nodes, pods, prices=book.of_flags(None, [f"{book.CPU_CORE}=10"]))
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
        "about", "gpuModels", "prices", "units", "demand", "total", "worst", "nodes", "leftOut", "waiting", "replay"
    }  # fmt: skip
    assert found["units"] == {
        "cpu": "cores", "memory": "GiB", "gpuCompute": "GPUs", "gpuMemory": "GiB"
    }  # fmt: skip
    assert set(found["demand"]) == {"gpuPods", "otherPods", "enough", "typical"}
    assert found["demand"]["gpuPods"] == {"seen": 1, "assumed": True}
    assert found["demand"]["otherPods"] == {"seen": 60, "assumed": False}
    assert set(found["demand"]["typical"][0]) == {
        "pods", "cpu", "memory", "gpus", "gpuMemoryMiB", "gpuMemoryPercent", "gpuCores"
    }  # fmt: skip
    money = {"moneyByDimension", "usableByDimension", "money", "value"}
    assert set(found["total"]) == amounts | money
    assert set(found["total"]["value"]) == amounts
    assert set(found["nodes"][0]) == amounts | {"name", "money", "usableMoney", "isClosed", "reason"}  # fmt: skip
    assert all(set(found["total"][figure]) == set(found["units"]) for figure in amounts)
    assert found["waiting"] == [{"pod": "default/waits", "cpu": 3.0, "memory": 1.0, "gpus": 2}]
    assert set(found["replay"]) == {
        "note", "moved", "stayed", "stays", "withoutController", "orders", "emptyNodes", "modes", "advice"
    }  # fmt: skip
    assert [one["mode"] for one in found["replay"]["modes"]] == ["default", "best-fit", "least-allocated"]  # fmt: skip
    assert set(found["replay"]["modes"][0]) == {
        "mode", "stranded", "dead", "money", "saved", "emptyNodes", "unplaced", "inOrders"
    }  # fmt: skip
    assert set(found["replay"]["modes"][0]["inOrders"]) == {"emptyNodes", "unplaced", "gpus", "money"}  # fmt: skip
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
    pods = [plain("p", EVIL, 4, "1Gi")]
    text = page.render(audit(nodes, pods))
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
    reader = read(page.render(audit([], [], modes=())))
    assert "No node has GPUs." in reader.words
    assert "nothing is stranded" in reader.words
    assert "There is no node." in reader.words
