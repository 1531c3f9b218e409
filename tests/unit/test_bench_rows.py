"""Rows of the benchmark: pods ask what the row says, decisions of the null scheduler are right, floors are told."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from bench.beside.provisioner import SELECTED, volume
from bench.rows import alone, comparing, measuring, printed, table
from bench.rows.comparing import Plan
from bench.rows.row import INCOMING, Decision, Row, Size
from scheduler.api import quantities
from tests.controlplane.objects import Manifest

SIZES = (Size(10, 40), Size(100, 500), Size(1_000, 1_500))
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
every_row = pytest.mark.parametrize("row", table.ROWS, ids=lambda row: row.name)
every_size = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size.nodes} nodes")


def incoming(row: Row, size: Size) -> list[Manifest]:
    return [row.incoming(number, size, "some-scheduler") for number in range(size.pods)]


def decisions(row: Row, size: Size) -> list[Decision]:
    return [row.decide(number, size) for number in range(size.pods)]


def placed(row: Row, size: Size) -> list[tuple[Manifest, Manifest]]:
    """Incoming pods with the nodes that the null scheduler gives them."""
    nodes = {node["metadata"]["name"]: node for node in map(row.node, range(size.nodes))}
    where = [nodes[decision.node] for decision in decisions(row, size)]
    return list(zip(incoming(row, size), where, strict=True))


def asks(pod: Manifest) -> dict[str, str]:
    resources = pod["spec"]["containers"][0]["resources"]
    found: dict[str, str] = {**resources["requests"], **resources["limits"]}
    return found


@every_row
def test_pods_are_for_the_scheduler_and_are_counted_as_incoming(row: Row) -> None:
    pods = incoming(row, SIZES[1])
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"some-scheduler"}
    assert all(INCOMING.items() <= pod["metadata"]["labels"].items() for pod in pods)
    assert len({pod["metadata"]["name"] for pod in pods}) == len(pods)
    assert not any(
        INCOMING.items() <= one["metadata"].get("labels", {}).items() for one in row.before(SIZES[1])
    )  # fmt: skip


def test_pods_that_all_differ_ask_nothing_twice() -> None:
    for name in ("different", "different-gpu"):
        pods = incoming(table.BY_NAME[name], Size(10, 10_000))
        assert len({tuple(sorted(asks(pod).items())) for pod in pods}) == len(pods)


@every_row
def test_pods_of_a_row_of_like_pods_differ_in_nothing_but_name_and_app(row: Row) -> None:
    kinds = {str({**asks(pod), **pod["spec"], "volumes": 0}) for pod in incoming(row, SIZES[0])}
    n_apps = len({pod["metadata"]["labels"].get("app") for pod in incoming(row, SIZES[0])})
    assert (len(kinds) == n_apps) is row.alike


@every_row
@every_size
def test_every_decision_of_the_null_scheduler_fits(row: Row, size: Size) -> None:
    """Whatever was there before, and however full the node gets."""
    left: dict[str, Counter[str]] = {}
    for node in map(row.node, range(size.nodes)):
        left[node["metadata"]["name"]] = _amounts(node["status"]["allocatable"])
    on_node = {}
    for pod in row.before(size):
        if pod["kind"] == "Pod":
            on_node[pod["metadata"]["name"]] = pod
            left[pod["spec"]["nodeName"]].subtract(_amounts(asks(pod)))
    for pod, decision in zip(incoming(row, size), decisions(row, size), strict=True):
        if decision.victim:
            victim = on_node.pop(decision.victim)
            assert victim["spec"]["nodeName"] == decision.node
            left[decision.node].update(_amounts(asks(victim)))
        left[decision.node].subtract(_amounts(asks(pod)))
        assert min(left[decision.node].values()) >= 0


def _amounts(given: dict[str, str]) -> Counter[str]:
    milli = {name: quantities.read_milli(amount) for name, amount in given.items()}
    return Counter({"pods": 1_000, **milli})


@every_row
@every_size
def test_every_decision_keeps_the_rules_about_other_pods(row: Row, size: Size) -> None:
    """At each step: rules that pods ask strictly are kept by the pods that are there already."""
    nodes = [row.node(number)["metadata"]["labels"] for number in range(size.nodes)]
    domains = {key: {labels[key] for labels in nodes} for key in (ZONE, HOST)}
    counts: dict[tuple[str, str], Counter[str]] = {}
    for pod, node in placed(row, size):
        app, labels = pod["metadata"]["labels"].get("app", ""), node["metadata"]["labels"]
        count = {key: counts.setdefault((app, key), Counter()) for key in (ZONE, HOST)}
        for constraint in pod["spec"].get("topologySpreadConstraints", ()):
            key = constraint["topologyKey"]
            least = min(count[key][domain] for domain in domains[key])
            assert count[key][labels[key]] + 1 - least <= constraint["maxSkew"]
        for kind, term in _strict(pod):
            there = count[term["topologyKey"]]
            here = there[labels[term["topologyKey"]]]
            assert not here if kind == "podAntiAffinity" else here or not there
        for key, of_app in count.items():
            of_app[labels[key]] += 1


def _strict(pod: Manifest) -> Iterable[tuple[str, dict[str, Any]]]:
    for kind, rules in pod["spec"].get("affinity", {}).items():
        for term in rules.get("requiredDuringSchedulingIgnoredDuringExecution", ()):
            assert term["labelSelector"]["matchLabels"]["app"] == pod["metadata"]["labels"]["app"]
            yield kind, term


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("affinity", {"podAffinity": {"required"}}),
        ("anti-affinity", {"podAntiAffinity": {"required"}}),
        ("preferences", {"podAffinity": {"preferred"}, "podAntiAffinity": {"preferred"}}),
        ("plain", {}),
    ],
)
def test_rows_about_other_pods_ask_what_they_are_called_after(
    name: str, rules: dict[str, set[str]]
) -> None:
    (pod, *_) = incoming(table.BY_NAME[name], SIZES[0])
    found = {
        kind: {key.partition("During")[0] for key in terms}
        for kind, terms in pod["spec"].get("affinity", {}).items()
    }
    assert found == rules


@pytest.mark.parametrize(("name", "key"), [("spread-zone", ZONE), ("spread-host", HOST)])
def test_rows_that_spread_do_so_strictly(name: str, key: str) -> None:
    for pod in incoming(table.BY_NAME[name], SIZES[0]):
        (constraint,) = pod["spec"]["topologySpreadConstraints"]
        assert constraint["topologyKey"] == key
        assert constraint["whenUnsatisfiable"] == "DoNotSchedule"


@pytest.mark.parametrize("name", ["volumes", "mix"])
def test_every_claim_of_a_pod_is_there_before_and_waits_for_its_pod(name: str) -> None:
    row, size = table.BY_NAME[name], SIZES[1]
    before = list(row.before(size))
    (late,) = (one for one in before if one["kind"] == "StorageClass")
    assert late["volumeBindingMode"] == "WaitForFirstConsumer"
    there = {one["metadata"]["name"]: one for one in before if one["kind"] != "StorageClass"}
    assert {one["spec"]["storageClassName"] for one in there.values()} == {late["metadata"]["name"]}
    used = [
        [one["persistentVolumeClaim"]["claimName"] for one in pod["spec"].get("volumes", ())]
        for pod in incoming(row, size)
    ]
    assert [claim for claims in used for claim in claims] == list(there)
    assert used == [[decision.claim] * bool(decision.claim) for decision in decisions(row, size)]


def test_a_volume_is_for_its_claim_and_reached_from_the_chosen_node_alone() -> None:
    row, size = table.BY_NAME["volumes"], SIZES[0]
    claim = next(one for one in row.before(size) if one["kind"] == "PersistentVolumeClaim")
    claim["metadata"] |= {"uid": "u", "resourceVersion": "7", "annotations": {SELECTED: "node-3"}}
    made = volume(claim)["spec"]
    assert made["claimRef"]["uid"] == "u"
    (term,) = made["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert [one["values"] for one in term["matchExpressions"]] == [["node-3"]]


def test_before_a_preemption_no_node_has_room() -> None:
    row, size = table.BY_NAME["preemption"], SIZES[0]
    held: Counter[str] = Counter()
    for one in row.before(size):
        if one["kind"] == "Pod":
            held[one["spec"]["nodeName"]] += quantities.read_milli(asks(one)["cpu"])
    (pod, *_) = incoming(row, size)
    for node in map(row.node, range(size.nodes)):
        cpu = quantities.read_milli(node["status"]["allocatable"]["cpu"])
        assert held[node["metadata"]["name"]] + quantities.read_milli(asks(pod)["cpu"]) > cpu


def test_a_mix_has_a_pod_of_each_row_without_preemption() -> None:
    row, size = table.BY_NAME["mix"], SIZES[1]
    pods = incoming(row, size)
    limits = Counter(len(asks(pod)) for pod in pods)
    assert limits[3] == sum(number % 9 == 1 for number in range(size.pods))
    asked = [
        key for pod in pods for key in pod["spec"] if key not in {"schedulerName", "containers"}
    ]
    assert Counter(asked).keys() == {"topologySpreadConstraints", "affinity", "volumes"}


@pytest.mark.parametrize("name", [row.name for row in table.ROWS if row.name not in {"volumes", "preemption", "mix"}])  # fmt: skip
def test_the_engine_alone_binds_every_pod_of_a_row(name: str) -> None:
    """Else the figure would be of fewer pods than it says."""
    found = alone.microseconds(table.BY_NAME[name], Size(100, 600))
    assert found["us_a_pod"] >= found["decide_us"] > 0


# Floors, ratios and the table.


def plan(**changes: Any) -> Plan:
    given: dict[str, Any] = {
        "rows": (table.BY_NAME["plain"], table.BY_NAME["volumes"]), "nodes": (1_000, 5_000), "pods": 10, "turns": 1
    }  # fmt: skip
    return Plan(**{**given, **changes})


def test_a_plan_has_the_floors_of_its_rows_and_sizes() -> None:
    told = {floor.figure: str(floor) for floor in plan().floors()}
    assert told == {
        "plain.1000.of_null_scheduler": ">= 0.85",
        "plain.5000.of_null_scheduler": ">= 0.85",
        "plain.5000.times_kube_scheduler": ">= 2.5",
        **{
            f"{name}.{n_nodes}.schedulers.evenkeel.unbound": "<= 0"
            for name in ("plain", "volumes")
            for n_nodes in (1_000, 5_000)
        },
    }


def test_a_plan_has_no_floors_against_schedulers_that_do_not_run() -> None:
    told = {floor.figure for floor in plan(schedulers=("evenkeel", "kube-scheduler")).floors()}
    assert {one for one in told if "unbound" not in one} == {"plain.5000.times_kube_scheduler"}
    assert plan(schedulers=("null", "kube-scheduler")).floors() == ()


def test_the_floors_are_those_that_were_set() -> None:
    assert {row.name: row.times_kube_scheduler for row in table.ROWS if row.times_kube_scheduler} == {
        "plain": 2.5, "gpu": 3.5, "spread-zone": 4, "affinity": 7, "anti-affinity": 3, "preemption": 3, "mix": 4, "gangs": 3
    }  # fmt: skip
    without = {row.name for row in table.ROWS if not row.of_null_scheduler}
    assert without == {"volumes", "preemption", "mix"}


def figures(speed: float | None, **more: Any) -> dict[str, Any]:
    return {"pods_per_second": speed, "cpu_ms_per_pod": 0.5, "unbound": 0, **more}


def test_one_turn_that_did_not_end_is_the_result() -> None:
    ended, stuck = figures(100.0), {"pods_per_second": None, "unbound": 3}
    assert comparing.median([ended, stuck, ended]) == stuck
    most = comparing.median([ended, figures(100.0, unbound=1), ended])
    assert most == figures(100.0, unbound=1)
    assert comparing.median([figures(1.0), figures(9.0), figures(2.0)])["pods_per_second"] == 2.0
    found = {"evenkeel": stuck, "null": ended}
    assert comparing.ratio(found, "evenkeel", "null") is None
    assert comparing.ratio(found, "null", "kube-scheduler") is None
    assert comparing.ratio({"a": figures(50.0), "b": ended}, "a", "b") == 0.5


@pytest.mark.parametrize(
    ("n_pods", "stamps", "expected"),
    [
        pytest.param(3, [0.0, 1.0, 2.0], 1.0, id="from the first to the last"),
        pytest.param(200, [*range(198), 9_999, 9_999], 1.0, id="all but one in a hundred"),
        pytest.param(200, range(198), 1.0, id="who is not bound counts as late"),
        pytest.param(200, range(197), None, id="too few"),
        pytest.param(3, [], None, id="none"),
        pytest.param(2, [1.0, 1.0], None, id="no time at all"),
    ],
)
def test_a_speed_is_that_of_nearly_all_pods(
    n_pods: int, stamps: Sequence[float], expected: float | None
) -> None:
    assert measuring.speed(stamps, n_pods) == expected


def test_a_speed_may_count_from_the_start() -> None:
    assert measuring.speed([11.0, 12.0], 2, 10.0) == 1.0


def test_the_last_few_are_waited_for_less_than_those_without_whom_there_is_no_speed() -> None:
    assert measuring.speed([1.0 + i for i in range(198)], 200) == 1.0
    assert measuring._patience(197, 200) > measuring._patience(198, 200)


def test_the_table_has_a_line_for_each_row_and_size() -> None:
    schedulers = {"evenkeel": figures(1_850.2, rss_mib=200), "null": figures(2_000.0, unbound=1)}
    compared = {
        "pods": 5_000, "times_kube_scheduler": None, "of_null_scheduler": 0.925, "schedulers": schedulers
    }  # fmt: skip
    head, _, line = printed.lines({"plain": {"1000": compared}})
    assert head.count("|") == line.count("|")
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells == ["plain", "1,000", "5,000", "1,850", "—", "2,000*", "—", "0.93", "0.50", "200", "—"]  # fmt: skip
