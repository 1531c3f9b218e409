"""Nodes are chosen by the devices that claims would get there: by policy, and so that the least is lost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from scheduler.config import Config
from scheduler.embedded.agents import dra_devices
from scheduler.simulate import schedule
from tests import make
from tests.operator import devices
from tests.operator.manifests import pod
from tests.unit.test_simulate_claims import make_object

Json = dict[str, Any]
_POLICY = "hami.io/{}-scheduler-policy"


def publish(node: str, pool: dra_devices.Pool) -> list[Json]:
    """A node without cards of its own, and what a driver publishes of its devices."""
    parts: list[Json] = [{"sharedCounters": list(pool.counters)}] if pool.counters else []
    parts += [{"devices": list(pool.devices)}]
    about = {"name": node, "generation": 1, "resourceSliceCount": len(parts)}
    spec = {"driver": pool.driver, "nodeName": node, "pool": about}
    return [
        make_object("Node", msgspec.to_builtins(make.node(name=node))),
        *(
            make_object(
                "ResourceSlice",
                {"metadata": {"name": f"{node}-{pool.driver}-{i}"}, "spec": {**spec, **part}},
            )
            for i, part in enumerate(parts)
        ),
    ]


def make_claimant(name: str, template: str, annotations: Mapping[str, str] | None = None) -> Json:
    pod = make_object("Pod", devices.pod_with(name, of_template=template))
    pod["metadata"]["annotations"] = dict(annotations or {})
    return pod


def make_mig_template(profile: str) -> Json:
    text = f"device.attributes['gpu.nvidia.com'].profile == '{profile}'"
    request = devices.request(
        of_class=dra_devices.MIG_CLASS, selectors=[{"cel": {"expression": text}}]
    )
    return make_object("ResourceClaimTemplate", devices.template(profile, request))


def place(objects: Sequence[Json], mode: str = "") -> dict[str, tuple[str, str]]:
    """The node and the device of each pod."""
    config = msgspec.convert({"placement": {"mode": mode}}, Config) if mode else None
    found = schedule([*(make_object("DeviceClass", one) for one in dra_devices.make_classes()), *objects], config=config)  # fmt: skip
    assert found["summary"]["pending"] == 0, found
    return {one["name"]: (one["node"], one["claims"][0]["device"]) for one in found["pods"]}


@pytest.mark.parametrize(
    ("node_policy", "gpu_policy", "wanted"),
    [
        ("binpack", "binpack", [2]),
        ("spread", "binpack", [1, 1]),
        ("binpack", "spread", [4]),
        ("spread", "spread", [2, 2]),
    ],
)
def test_the_four_patterns_with_claims(
    node_policy: str, gpu_policy: str, wanted: list[int]
) -> None:
    policies = {_POLICY.format("node"): node_policy, _POLICY.format("gpu"): gpu_policy}
    share = {"memory": "40000Mi", "cores": "30"}
    half = devices.request(of_class=dra_devices.HAMI, capacity={"requests": share})
    found = place(
        [
            *publish("n0", dra_devices.make_hami_gpus(4)),
            *publish("n1", dra_devices.make_hami_gpus(4)),
            make_object("ResourceClaimTemplate", devices.template("half", half)),
            *(make_claimant(f"p{i}", "half", policies) for i in range(4)),
        ]
    )
    cards: defaultdict[str, set[str]] = defaultdict(set)
    for node, device in found.values():
        cards[node].add(device)
    assert sorted((len(one) for one in cards.values()), reverse=True) == wanted
    assert len(found) == 4


@pytest.mark.parametrize("mode", ["keel", "most-allocated"])
def test_nodes_whose_devices_are_all_unused_stay_so(mode: str) -> None:
    one = devices.request(of_class=dra_devices.NVIDIA)
    objects = [
        *publish("n0", dra_devices.make_gpus(4)),
        *publish("n1", dra_devices.make_gpus(4)),
        make_object("ResourceClaimTemplate", devices.template("one", one)),
    ]
    found = place([*objects, *(make_claimant(f"p{i}", "one") for i in range(6))], mode)
    assert sorted(Counter(node for node, _ in found.values()).values()) == [2, 4]


def test_a_mode_that_spreads_does_so_by_devices() -> None:
    one = devices.request(of_class=dra_devices.NVIDIA)
    objects = [
        *publish("n0", dra_devices.make_gpus(4)),
        *publish("n1", dra_devices.make_gpus(4)),
        make_object("ResourceClaimTemplate", devices.template("one", one)),
    ]
    found = place([*objects, *(make_claimant(f"p{i}", "one") for i in range(6))], "least-allocated")
    assert sorted(Counter(node for node, _ in found.values()).values()) == [3, 3]


def place_beside(taken: Sequence[str], n_nodes: int, n: int) -> dict[str, list[str]]:
    """The devices that a pod of mode keel gets, which requests ``n``, where claims of others have some already."""
    request = devices.request(of_class=dra_devices.NVIDIA, count=n)
    objects = [one for i in range(n_nodes) for one in publish(f"n{i}", dra_devices.make_gpus(8))]
    for one in taken:
        node, name = one.split("/")
        claim = devices.claim(f"of-{node}-{name}", devices.request(of_class=dra_devices.NVIDIA))
        given = devices.allocation(node, name, driver=dra_devices.NVIDIA)
        user = {"resource": "pods", "name": "other", "uid": "other"}
        claim["status"] = {"allocation": given, "reservedFor": [user]}
        objects.append(make_object("ResourceClaim", claim))
    objects += [
        make_object("ResourceClaimTemplate", devices.template("some", request)),
        make_claimant("pod", "some"),
    ]
    classes = [make_object("DeviceClass", one) for one in dra_devices.make_classes()]
    found = schedule([*classes, *objects], config=msgspec.convert({"placement": {"mode": "keel"}}, Config))  # fmt: skip
    (pod,) = found["pods"]
    return {pod["node"]: sorted(one["device"] for one in pod["claims"])}


@pytest.mark.parametrize(
    ("taken", "n", "wanted"),
    [
        # GPUs 0 and 1 are behind one PCIe root, 2 and 3 behind the next one; the first four are on one NUMA node.
        pytest.param(["n0/gpu-4"], 1, ["gpu-5"], id="one beside a GPU in use"),
        pytest.param(["n0/gpu-1"], 2, ["gpu-2", "gpu-3"], id="two of one root, on the NUMA node in use"),
        pytest.param(["n0/gpu-1"], 4, ["gpu-4", "gpu-5", "gpu-6", "gpu-7"], id="four of one NUMA node"),
        pytest.param(["n0/gpu-0", "n0/gpu-2", "n0/gpu-4", "n0/gpu-6"], 2, ["gpu-1", "gpu-3"], id="two of one NUMA node"),
    ],
)  # fmt: skip
def test_devices_of_a_request_are_near_each_other_and_leave_others_so(
    taken: list[str], n: int, wanted: list[str]
) -> None:
    assert place_beside(taken, 1, n) == {"n0": wanted}


def test_a_request_goes_to_the_node_where_its_devices_are_near_each_other() -> None:
    apart = ["n0/gpu-0", "n0/gpu-2", "n0/gpu-4", "n0/gpu-6"]
    near = ["n1/gpu-0", "n1/gpu-1", "n1/gpu-2", "n1/gpu-3"]
    assert place_beside([*apart, *near], 2, 2) == {"n1": ["gpu-4", "gpu-5"]}


def test_a_node_that_is_nearly_empty_is_left_to_become_empty() -> None:
    nearly, half = ["n0/gpu-0"], ["n1/gpu-0", "n1/gpu-1", "n1/gpu-2"]
    assert place_beside([*nearly, *half], 2, 1) == {"n1": ["gpu-3"]}


def test_small_partitions_gather_so_that_a_whole_card_stays_possible() -> None:
    objects = [
        *publish("n0", dra_devices.make_mig_gpus(1)),
        *publish("n1", dra_devices.make_mig_gpus(1)),
        *map(make_mig_template, ("1g.10gb", "3g.40gb", "7g.80gb")),
    ]
    small = [make_claimant(f"small{i}", "1g.10gb") for i in range(3)]
    more = [make_claimant("half", "3g.40gb"), make_claimant("whole", "7g.80gb")]
    found = place([*objects, *small, *more], "keel")
    assert len({node for name, (node, _) in found.items() if name != "whole"}) == 1


def test_devices_that_have_to_be_waited_for_come_last() -> None:
    late: Json = {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
    for order in ((0, 1), (1, 0)):
        published = [devices.device("a", **late), devices.device("b")]
        published = [{**published[i], "name": f"d{at}"} for at, i in enumerate(order)]
        objects = [
            make_object("Node", msgspec.to_builtins(make.node(name="n"))),
            make_object("DeviceClass", devices.device_class()),
            make_object("ResourceSlice", devices.device_slice("n", published)),
            make_object("ResourceClaimTemplate", devices.template("one")),
        ]
        found = place([*objects, make_claimant("p", "one")], "keel")
        assert found["p"][1] == f"d{order.index(1)}"


def choose_alternative(mode: str, *names: str, more: Sequence[Json] = ()) -> Json:
    """Where a pod goes whose request has the alternatives, each a class by itself; node n0 has the last one, n1 the first one."""
    choices = [{"name": name, "deviceClassName": name} for name in names]
    request = {"name": "gpu", "firstAvailable": choices}
    found = schedule(
        [
            *(make_object("DeviceClass", devices.device_class(name, f"device.attributes['{devices.DRIVER}'].model == '{name}'")) for name in names),
            *(make_object("Node", msgspec.to_builtins(make.node(name=name))) for name in ("n0", "n1")),
            *(
                make_object("ResourceSlice", devices.device_slice(node, [devices.device("d", attributes={"model": {"string": model}})]))
                for node, model in (("n0", names[-1]), ("n1", names[0]))
            ),
            make_object("ResourceClaimTemplate", devices.template("any", request)),
            *more,
            make_claimant("p", "any"),
        ],
        config=msgspec.convert({"placement": {"mode": mode}}, Config),
        with_nodes=True,
    )  # fmt: skip
    (placed,) = (one for one in found["pods"] if one["name"] == "p")
    result: Json = placed
    return result


@pytest.mark.parametrize("mode", ["kube-scheduler", "keel", "least-allocated"])
def test_a_node_with_an_earlier_alternative_comes_first(mode: str) -> None:
    # n1 is the fuller one, so that the pod would go to n0 by its resources.
    busy = make_object("Pod", pod("busy", requests={"cpu": 1}) | {"status": {"phase": "Running"}})
    busy["spec"]["nodeName"] = "n1"
    placed = choose_alternative(mode, "a", "b", "c", more=[busy])
    assert placed["node"] == "n1"
    raw = {node: one["raw"]["DynamicResources"] for node, one in placed["nodes"].items()}
    assert raw == {"n0": 6, "n1": 8}
    points = {node: one["scores"]["DynamicResources"] for node, one in placed["nodes"].items()}
    assert points == {"n0": 75, "n1": 100}


def test_requests_without_alternatives_have_no_score_of_claims() -> None:
    one = devices.request(of_class=dra_devices.NVIDIA)
    found = schedule(
        [
            *(make_object("DeviceClass", each) for each in dra_devices.make_classes()),
            *publish("n0", dra_devices.make_gpus(1)),
            make_object("ResourceClaimTemplate", devices.template("one", one)),
            make_claimant("p", "one"),
        ],
        with_nodes=True,
    )
    (placed,) = found["pods"]
    assert "DynamicResources" not in placed["nodes"]["n0"]["raw"]
