"""A workload that is placed by a topology has written where its pods go, as Kueue writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api.door.workload_decisions import Admit, DomainsGiven, SetGiven
from scheduler.api.queues.admissions import write_admission
from scheduler.api.queues.domains import read_domains, write_domains
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.queues import Queues
from scheduler.simulate.run import schedule
from scheduler.simulate.situation import make_engine, prepare
from tests.unit.test_queues_places import (
    FOUR_NODES,
    RACKS,
    make_flavor,
    make_queue,
    make_running,
    make_workload,
)

Json = dict[str, Any]
RACKS_ALONE = {**RACKS, "spec": {"levels": [{"nodeLabel": "rack"}]}}
HOSTS = "kubernetes.io/hostname"


def admit(topology: Json, workload: Json) -> SetGiven:
    objects = [*FOUR_NODES, topology, make_flavor("gpus", "gpu", "racks"), *make_queue("a", {"gpus": 100}), workload]  # fmt: skip
    inventory = prepare(objects, Changes(), strict=True).inventory
    engine = make_engine(inventory, Config(), only_ours=False)
    Queues(engine, inventory.queueing, inventory.pods)
    (decision,) = [one for one in engine.decide(0.0, Unlimited()).quotas if isinstance(one, Admit)]
    (one,) = decision.sets
    return one


def test_the_domains_are_those_of_its_nodes() -> None:
    found = admit(RACKS, make_workload("gang", "a", 3, 2, required="rack"))
    # Nodes are the lowest level, so racks are not named; of four cards a node, two pods go to the first one.
    assert found.domains is not None
    assert found.domains.levels == (HOSTS,)
    nodes = {values[0]: n for values, n in found.domains.domains}
    assert sorted(nodes.values()) == [1, 2]
    assert set(nodes) in ({"n0", "n1"}, {"n2", "n3"})


def test_without_nodes_as_a_level_the_domains_are_those_of_the_lowest_one() -> None:
    found = admit(RACKS_ALONE, make_workload("gang", "a", 4, 4))
    assert found.domains == DomainsGiven(("rack",), ((("r0",), 2), (("r1",), 2)))


def test_pods_of_others_have_none() -> None:
    """Evenkeel does not place them."""
    workload = make_workload("theirs", "a", 2, 2, scheduler="default-scheduler")
    assert admit(RACKS, workload).domains is None


def make_decision(*domains: tuple[tuple[str, ...], int]) -> Admit:
    found = DomainsGiven(("block", "rack"), domains)
    one = SetGiven("main", 3, (("cpu", "plain"),), (("cpu", 1500),), found)
    return Admit("team/w", "uid-w", "q", (one,))


def write(decision: Admit, version: str) -> Any:
    admission = msgspec.to_builtins(write_admission(decision, version))
    return admission["podSetAssignments"][0]["topologyAssignment"]


DECISION = make_decision((("b0", "r0"), 2), (("b0", "r1"), 1))


def test_both_versions_of_the_api_have_their_form() -> None:
    levels = ["block", "rack"]
    assert write(DECISION, "v1beta1") == {
        "levels": levels,
        "domains": [{"values": ["b0", "r0"], "count": 2}, {"values": ["b0", "r1"], "count": 1}],
    }
    values = [{"universal": "b0"}, {"individual": {"roots": ["r0", "r1"]}}]
    one = {"domainCount": 2, "valuesPerLevel": values, "podCounts": {"individual": [2, 1]}}
    assert write(DECISION, "v1beta2") == {"levels": levels, "slices": [one]}
    alike = write(make_decision((("b0", "r0"), 2), (("b1", "r1"), 2)), "v1beta2")
    assert alike["slices"][0]["podCounts"] == {"universal": 2}


@pytest.mark.parametrize("decision", [DECISION, make_decision((("b0", "r0"), 3))])
def test_what_is_written_has_the_fields_of_the_crd(decision: Admit) -> None:
    (crd,) = yaml.safe_load_all(Path("crds/kueue/workloads.yaml").read_text("utf-8"))
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    admission = schema["properties"]["admission"]["properties"]
    assigned = admission["podSetAssignments"]["items"]["properties"]["topologyAssignment"]
    written = write(decision, "v1beta2")
    _check(json.loads(json.dumps(written)), assigned)


def _check(value: Any, schema: Json) -> None:
    """Check what the schema says of fields, types and counts."""
    kinds = {"object": dict, "array": list, "string": str, "integer": int}
    assert isinstance(value, kinds[schema["type"]])
    if isinstance(value, dict):
        assert set(schema.get("required", ())) <= set(value) <= set(schema["properties"])
        for name, one in value.items():
            _check(one, schema["properties"][name])
    elif isinstance(value, list):
        assert schema.get("minItems", 0) <= len(value) <= schema["maxItems"]
        for one in value:
            _check(one, schema["items"])
    elif isinstance(value, int):
        assert value >= schema["minimum"]


NAMES = st.text("ab-", min_size=1, max_size=4)
LEVELS = st.integers(1, 3)


@given(st.data(), st.sampled_from(["v1beta1", "v1beta2"]))
def test_what_is_written_is_read(data: st.DataObject, version: str) -> None:
    n = data.draw(LEVELS)
    values = st.tuples(*[NAMES] * n)
    domains = data.draw(st.dictionaries(values, st.integers(1, 9), min_size=1, max_size=5))
    found = DomainsGiven(tuple("xyz"[:n]), tuple(sorted(domains.items())))
    assert read_domains(write_domains(found, version)) == found


def test_what_kueue_writes_shorter_is_read() -> None:
    values = {"individual": {"prefix": "node-", "suffix": ".gpu", "roots": ["a", "b"]}}
    one = {"domainCount": 2, "valuesPerLevel": [values], "podCounts": {"universal": 3}}
    found = read_domains({"levels": [HOSTS], "slices": [one, {**one, "valuesPerLevel": [{"universal": "c"}], "domainCount": 1}]})  # fmt: skip
    assert found is not None
    assert found.domains == ((("c",), 3), (("node-a.gpu",), 3), (("node-b.gpu",), 3))


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"levels": [HOSTS]},
        {"levels": [HOSTS], "domains": [{"values": ["a", "b"], "count": 1}]},
        {"levels": [HOSTS], "domains": [{"values": ["a"], "count": 0}]},
        {"levels": "a", "domains": []},
        {"levels": [HOSTS], "slices": [{"domainCount": 2, "valuesPerLevel": [{"individual": {"roots": ["a"]}}], "podCounts": {"universal": 1}}]},
        {"levels": [HOSTS], "slices": [{"domainCount": 10**9, "valuesPerLevel": [{"universal": "a"}], "podCounts": {"universal": 1}}]},
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_not_read(wrong: Json) -> None:
    assert read_domains(wrong) is None


def make_gang(n: int, domains: Json, pods: tuple[str, ...] = ()) -> list[Json]:
    """A workload that has quota for so many pods of four cards in some domains; those of ``pods`` are on these nodes."""
    bodies = [make_running("gang", "a", node, "gpus", 1)[1] for node in pods]
    for i, one in enumerate(bodies):
        one["metadata"] |= {"name": f"gang-{i}", "uid": f"uid-gang-{i}"}
    workload = make_running("gang", "a", "", "gpus", 1)[0]
    workload["spec"]["podSets"][0]["count"] = n
    assigned = workload["status"]["admission"]["podSetAssignments"][0]
    usage = {"nvidia.com/gpu": f"{4 * n}"}
    assigned |= {"count": n, "resourceUsage": usage, "topologyAssignment": domains}
    return [workload, *bodies]


def list_taken(*objects: Json) -> set[str]:
    """The nodes on which nobody else finds a card."""
    world = [*FOUR_NODES, RACKS, make_flavor("gpus", "gpu", "racks"), *make_queue("a", {"gpus": 100})]  # fmt: skip
    requests = {"nvidia.com/gpu": "1"}
    container = {"name": "main", "resources": {"requests": requests, "limits": requests}}
    probes = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"n{i}", "namespace": "team"},
            "spec": {
                "schedulerName": "evenkeel",
                "nodeSelector": {HOSTS: f"n{i}"},
                "containers": [container],
            },
        }
        for i in range(4)
    ]
    result = schedule([*world, *objects, *probes], strict=True)
    assert {row["name"]: row["state"] for row in result["workloads"]} == {"gang": "running"}
    return {row["name"] for row in result["pods"] if not row.get("node")}


def test_pods_that_have_not_come_keep_the_domains_that_were_given() -> None:
    domains = {"levels": [HOSTS], "domains": [{"values": ["n1"], "count": 1}, {"values": ["n3"], "count": 1}]}  # fmt: skip
    assert list_taken(*make_gang(2, domains)) == {"n1", "n3"}
    # One of them has come.
    assert list_taken(*make_gang(2, domains, ("n3",))) == {"n1", "n3"}


def test_where_a_domain_has_no_room_any_place_will_do() -> None:
    domains = {"levels": [HOSTS], "domains": [{"values": ["gone"], "count": 1}]}
    assert len(list_taken(*make_gang(1, domains))) == 1
