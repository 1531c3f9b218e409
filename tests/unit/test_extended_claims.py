"""Extended resources that classes back with devices: which nodes serve them by claims, and what these request."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api import wire
from scheduler.api.claims import extended, objects
from scheduler.api.claims.devices import DeviceClass
from scheduler.api.claims.wanted import read_wanted
from scheduler.api.door import events
from tests import make
from tests.operator import devices
from tests.oracles import extended_claims as oracle
from tests.unit.extended import RESOURCE, World, make_class

Json = dict[str, Any]
OTHER = "example.com/nic"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"
TOO_FEW = "cannot allocate all claims"


@pytest.fixture
def world() -> World:
    return World()


# The claim.

amounts = st.dictionaries(
    st.sampled_from(["cpu", RESOURCE, OTHER, IMPLICIT, "example.com/none", "memory"]),
    st.integers(0, 5).map(str),
)
containers = st.builds(
    lambda requests, always: {
        "resources": {"requests": requests},
        **({"restartPolicy": "Always"} if always else {}),
    },
    amounts,
    st.booleans(),
)


@given(
    init=st.lists(containers, max_size=4),
    app=st.lists(containers, min_size=1, max_size=3),
    served=st.sets(st.sampled_from([RESOURCE, OTHER, IMPLICIT])),
)
def test_a_claim_requests_what_kube_scheduler_would_request(
    init: list[Json], app: list[Json], served: set[str]
) -> None:
    for i, one in enumerate(itertools.chain(init, app)):
        one["name"] = f"c{i}"
    spec = {"initContainers": init, "containers": app}
    classes = {one: f"class-of-{one}" for one in served}
    wanted = read_wanted(msgspec.convert({"spec": spec}, wire.Pod).spec)
    drawn = extended.draw_claim(wanted, classes)
    written = msgspec.json.decode(extended.write_claim(drawn))
    requests, mappings = oracle.make_requests(spec, classes)
    assert written == {"requests": requests, "requestMappings": mappings}
    for request, resource in zip(drawn.requests, drawn.resources, strict=True):
        assert request.exactly is not None
        assert request.exactly.device_class_name == classes[resource]


def test_an_init_container_uses_what_the_containers_after_it_get() -> None:
    """The example of the documentation of kube-scheduler's plugin."""
    spec = make.pod(name="p").spec
    spec.init_containers = [_container("i", {RESOURCE: "4"})]
    spec.containers = [_container("a", {"cpu": "1", RESOURCE: "1"}), _container("b", {RESOURCE: "2"})]  # fmt: skip
    drawn = extended.draw_claim(read_wanted(spec), {RESOURCE: "gpu"})
    assert [(one.name, one.exactly and one.exactly.count) for one in drawn.requests] == [
        ("container-0-request-0", 1),
        ("container-1-request-1", 1),
        ("container-2-request-0", 2),
    ]
    assert [(one.container, one.request) for one in drawn.mappings] == [
        ("a", "container-1-request-1"),
        ("b", "container-2-request-0"),
        ("i", "container-1-request-1"),
        ("i", "container-2-request-0"),
        ("i", "container-0-request-0"),
    ]


def _container(name: str, requests: dict[str, str]) -> wire.Container:
    return wire.Container(name=name, resources=wire.Resources(requests=dict(requests)))


@pytest.mark.parametrize("quantity", ["1500m", "x", "-1", "", "1e99"])
def test_an_amount_that_is_no_whole_number_of_devices_requests_none(quantity: str) -> None:
    spec = make.pod(name="p").spec
    spec.containers = [_container("a", {RESOURCE: quantity})]
    assert [one.n for one in read_wanted(spec)] in ([], [2**31])


def test_of_several_classes_of_one_resource_the_one_that_was_made_last_counts() -> None:
    def one(name: str, created: str, resource: str = RESOURCE) -> DeviceClass:
        return DeviceClass(name, (), (), resource, created)

    early, late = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
    for some in itertools.permutations([one("a", early), one("c", late), one("b", late), one("d", "")]):  # fmt: skip
        assert extended.choose_classes(some, ()) == {RESOURCE: "b"}
    named = [one("gpu", early, ""), one("other", late, OTHER)]
    assert extended.choose_classes(named, {IMPLICIT, IMPLICIT + "-that-is-not-there"}) == {
        IMPLICIT: "gpu",
        OTHER: "other",
    }


def test_the_name_of_a_claim_follows_from_the_pod_and_is_one_that_the_api_allows() -> None:
    name, base = extended.make_name("p" * 200, "uid-1")
    assert len(name) == 63
    assert name.startswith("p" * 58)
    assert base == "p" * 200 + "-extended-resources-"
    assert extended.make_name("p" * 200, "uid-1")[0] == name
    assert extended.make_name("p" * 200, "uid-2")[0] != name


# Nodes.


def test_a_pod_gets_devices_of_the_class_behind_its_resource(world: World) -> None:
    world.node("n0")
    world.slice("n0", 2)
    for name in ("a", "b", "c"):
        world.pod(name)
    assert world.decide() == ["a", "b"]
    assert [world.list_devices(name) for name in ("a", "b")] == [["gpu-0"], ["gpu-1"]]
    assert world.why["c"].startswith(f"0/1 nodes are available: 1 {TOO_FEW}.")
    world.end("a")
    assert world.decide() == ["c"]
    assert world.list_devices("c") == ["gpu-0"]


def test_a_device_plugin_comes_first_on_each_node_by_itself(world: World) -> None:
    """What the plugin has is all that a node with one offers, whatever slices it has besides."""
    world.node("plugin", allocatable={RESOURCE: 2})
    world.slice("plugin", 4)
    world.node("slices")
    world.slice("slices", 2)
    world.node("neither")
    for i in range(5):
        world.pod(f"p{i}")
    assert sorted(world.decide()) == [f"p{i}" for i in range(4)]
    by_node: dict[str, list[list[str]]] = {}
    for name, node in world.bound.items():
        by_node.setdefault(node, []).append(world.list_devices(name))
    assert by_node["plugin"] == [[], []]
    assert sorted(by_node["slices"]) == [["gpu-0"], ["gpu-1"]]
    assert all(not world.binds[name].allotted for name, node in world.bound.items() if node == "plugin")  # fmt: skip
    text = f"0/3 nodes are available: 1 Insufficient {RESOURCE}, 2 {TOO_FEW}."
    assert world.why["p4"].startswith(text)


def test_a_plugin_that_comes_later_serves_pods_from_then_on(world: World) -> None:
    world.node("n0")
    world.slice("n0", 1)
    world.pod("a")
    assert world.decide() == ["a"]
    world.node("n0", allocatable={RESOURCE: 2})
    world.pod("b")
    world.pod("c")
    # The device of the first pod counts, as in kube-scheduler.
    assert world.decide() == ["b"]
    assert world.binds["b"].allotted == ()
    # And when it goes, the class serves the node again.
    world.node("n0")
    assert world.decide() == []
    world.end("a")
    assert world.decide() == ["c"]
    assert world.list_devices("c") == ["gpu-0"]


def test_one_pod_gets_one_resource_of_a_plugin_and_another_one_of_a_class(world: World) -> None:
    world.see(objects.DeviceClass, make_class("nic", OTHER))
    world.node("n0", allocatable={OTHER: 1})
    world.slice("n0", 3)
    both = {"requests": {RESOURCE: "2", OTHER: "1"}}
    world.pods["p"] = made = devices.pod_with("p")
    made["spec"]["containers"] = [{"name": "main", "resources": both}]
    world.see(wire.Pod, made)
    assert world.decide() == ["p"]
    (one,) = world.binds["p"].allotted
    assert msgspec.json.decode(one.made) == {
        "requests": [
            {
                "name": "container-0-request-0",
                "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2},
            }
        ],
        "requestMappings": [
            {
                "containerName": "main",
                "resourceName": RESOURCE,
                "requestName": "container-0-request-0",
            }
        ],
    }
    # On a node without that plugin both come from slices.
    world.gone("Node", "n0")
    world.node("n1")
    world.slice("n1", 3)
    world.pods["q"] = {**made, "metadata": {**made["metadata"], "name": "q"}, "spec": {**made["spec"]}}  # fmt: skip
    world.pods["q"]["spec"].pop("nodeName")
    world.see(wire.Pod, world.pods["q"])
    assert world.decide() == ["q"]
    assert world.list_devices("q") == ["gpu-0", "gpu-1", "gpu-2"]


def test_a_class_by_its_own_name_is_an_extended_resource_too() -> None:
    world = World(of_class=devices.device_class())
    world.node("n0")
    world.slice("n0", 1)
    world.pod("p", resource=IMPLICIT)
    world.pod("q", resource=RESOURCE)
    assert world.decide() == ["p"]
    assert world.list_devices("p") == ["gpu-0"]
    assert world.why["q"].startswith(f"0/1 nodes are available: 1 Insufficient {RESOURCE}.")


def test_cards_that_hami_registered_are_given_away_by_hami() -> None:
    world = World(of_class=make_class(resource="nvidia.com/gpu"))
    world.engine.handle(events.Seen(make.hami_node(name="hami", cards=make.cards(count=1))), 0.0)
    world.slice("hami", 4)
    world.node("slices")
    world.slice("slices", 1)
    for name in ("a", "b", "c"):
        world.pod(name, resource="nvidia.com/gpu", limits={"nvidia.com/gpu": "1"})
    assert len(world.decide()) >= 2
    of_hami = [name for name, node in world.bound.items() if node == "hami"]
    of_class = [name for name, node in world.bound.items() if node == "slices"]
    assert len(of_class) == 1
    assert all(world.binds[name].devices and not world.binds[name].allotted for name in of_hami)
    assert all(not world.binds[name].devices and world.binds[name].allotted for name in of_class)


# Classes and devices that change.


def test_pods_wait_for_a_class_and_its_devices_that_come_later() -> None:
    world = World(of_class={})
    world.node("n0")
    world.pod("p")
    assert world.decide() == []
    assert world.why["p"].startswith(f"0/1 nodes are available: 1 Insufficient {RESOURCE}.")
    world.see(objects.DeviceClass, make_class())
    assert world.decide() == []
    assert world.why["p"].startswith(f"0/1 nodes are available: 1 {TOO_FEW}.")
    world.slice("n0", 1)
    assert world.decide() == ["p"]


def test_a_class_that_goes_serves_nobody_and_takes_nothing_from_pods_that_run(world: World) -> None:
    world.node("n0")
    world.slice("n0", 2)
    world.pod("a")
    assert world.decide() == ["a"]
    world.gone("DeviceClass", "gpu")
    world.pod("b")
    assert world.decide() == []
    assert world.why["b"].startswith(f"0/1 nodes are available: 1 Insufficient {RESOURCE}.")
    world.see(objects.DeviceClass, make_class("other"))
    assert world.decide() == ["b"]
    assert world.list_devices("b") == ["gpu-1"]


def test_a_newer_class_of_the_same_resource_takes_over_and_the_older_one_comes_back(
    world: World,
) -> None:
    world.node("n0")
    world.slice("n0", 2)
    newer = make_class("newer", creationTimestamp="2026-03-01T00:00:00Z")
    newer["spec"]["selectors"] = [{"cel": {"expression": "false"}}]
    world.see(objects.DeviceClass, newer)
    world.pod("p")
    assert world.decide() == []
    world.gone("DeviceClass", "newer")
    assert world.decide() == ["p"]
    (one,) = world.binds["p"].allotted
    assert b'"deviceClassName":"gpu"' in one.made


@pytest.mark.parametrize(
    "expression", ["device.", "device.attributes['gpu.example.com'].missing == 1", "1"]
)
def test_a_class_with_a_bad_selector_serves_no_node_and_leaves_plugins_alone(
    expression: str,
) -> None:
    of_class = make_class()
    of_class["spec"]["selectors"] = [{"cel": {"expression": expression}}]
    world = World(of_class=of_class)
    world.node("slices")
    world.slice("slices", 2)
    world.node("plugin", allocatable={RESOURCE: 1})
    world.pod("a")
    world.pod("b")
    assert world.decide() == ["a"]
    assert world.bound == {"a": "plugin"}
    assert f"1 Insufficient {RESOURCE}" in world.why["b"]
    assert f"1 {TOO_FEW}" in world.why["b"]


def test_more_devices_than_a_claim_can_have_are_had_from_a_plugin_alone(world: World) -> None:
    world.node("slices")
    world.slice("slices", 40)
    world.pod("a", 33)
    assert world.decide() == []
    world.node("plugin", allocatable={RESOURCE: 40})
    assert world.decide() == ["a"]
    assert world.bound == {"a": "plugin"}
    world.pod("b", 32)
    assert world.decide() == ["b"]
    assert world.bound["b"] == "slices"


def test_nodes_count_as_offering_the_devices_of_the_class(world: World) -> None:
    """So all that looks at amounts, such as scores and quotas, sees them."""
    world.node("n0")
    world.node("plugin", allocatable={RESOURCE: 7})
    world.slice("n0", 3)
    world.slice("plugin", 3)
    world.decide()
    cluster = world.engine._cluster
    at = cluster.nodes.resources.find(RESOURCE)
    rows = [cluster.nodes.find_row(name) for name in ("n0", "plugin")]
    assert cluster.nodes.columns.allocatable[at, rows].tolist() == [3, 7]
    world.slice("n0", 5)
    world.decide()
    assert cluster.nodes.columns.allocatable[at, rows].tolist() == [5, 7]
    world.gone("DeviceClass", "gpu")
    world.decide()
    at = cluster.nodes.resources.find(RESOURCE)
    assert cluster.nodes.columns.allocatable[at, rows].tolist() == [0, 7]
    facts = cluster.nodes.facts[rows[0]]
    assert facts is not None
    assert facts.by_class == ()


@pytest.mark.parametrize(
    ("capacity", "n_pods", "offered"),
    [
        ({}, 5, 2 * 110),
        ({"memory": {"value": "80Gi", "requestPolicy": {"default": "40Gi"}}}, 4, 4),
        ({"memory": {"value": "80Gi"}}, 2, 2),
    ],
)
def test_a_device_that_claims_share_serves_as_many_pods_as_it_has_shares(
    world: World, capacity: Json, n_pods: int, offered: int
) -> None:
    world.node("n0", cpu="80")
    world.slice("n0", 2, allowMultipleAllocations=True, capacity=capacity)
    for i in range(5):
        world.pod(f"p{i}")
    assert len(world.decide()) == n_pods
    cluster = world.engine._cluster
    at = cluster.nodes.resources.find(RESOURCE)
    assert cluster.nodes.columns.allocatable[at, 0] == offered
