"""A workload that is placed by a topology has written where its pods go, as Kueue writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from scheduler.api.door.decisions import Admit, DomainsGiven, SetGiven
from scheduler.api.queues.admissions import write_admission
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.queues import Queues
from scheduler.simulate.situation import make_engine, prepare
from tests.unit.test_queues_places import (
    FOUR_NODES,
    RACKS,
    make_flavor,
    make_queue,
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
    (given,) = decision.sets
    return given


def test_the_domains_are_those_of_its_nodes() -> None:
    given = admit(RACKS, make_workload("gang", "a", 3, 2, required="rack"))
    # Nodes are the lowest level, so racks are not named; of four cards a node, two pods go to the first one.
    assert given.domains is not None
    assert given.domains.levels == (HOSTS,)
    nodes = {values[0]: n for values, n in given.domains.domains}
    assert sorted(nodes.values()) == [1, 2]
    assert set(nodes) in ({"n0", "n1"}, {"n2", "n3"})


def test_without_nodes_as_a_level_the_domains_are_those_of_the_lowest_one() -> None:
    given = admit(RACKS_ALONE, make_workload("gang", "a", 4, 4))
    assert given.domains == DomainsGiven(("rack",), ((("r0",), 2), (("r1",), 2)))


def test_pods_of_others_have_none() -> None:
    """Evenkeel does not place them."""
    workload = make_workload("theirs", "a", 2, 2, scheduler="default-scheduler")
    assert admit(RACKS, workload).domains is None


def make_decision(*domains: tuple[tuple[str, ...], int]) -> Admit:
    given = DomainsGiven(("block", "rack"), domains)
    one = SetGiven("main", 3, (("cpu", "plain"),), (("cpu", 1500),), given)
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
