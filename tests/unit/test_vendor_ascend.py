"""Ascend's templates, the soft split, networks and modules, in clusters: what HAMi's cases do not say."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from scheduler.api import names, wire
from scheduler.api.hami_config.chart import CHART
from scheduler.devices.vendors import table
from scheduler.devices.vendors.driver import VendorCards
from scheduler.errors import BadInput
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from tests import make

B3, C = "huawei.com/Ascend910B3", "huawei.com/Ascend910C"
SOFT = {"huawei.com/vnpu-mode": "hami-core"}


def find_driver(word: str) -> VendorCards:
    """The driver of the devices of HAMi's word."""
    (driver,) = (one for one in table.list_drivers(CHART) if one.name == f"HAMi {word}")
    return driver


def make_node(
    word: str, networks: list[Any], name: str = "n1", annotations: dict[str, str] | None = None
) -> wire.Node:
    """A node with a device for each network; None stands for a device that tells none."""
    told = [
        {
            "id": f"{name}-{i}",
            "index": i,
            "count": 4,
            "devmem": 65536,
            "devcore": 20,
            "type": word,
            "health": True,
            "custominfo": {} if network is None else {"NetworkID": network},
        }
        for i, network in enumerate(networks)
    ]
    node = make.node(name=name, cpu=64, allocatable={f"huawei.com/{word}": 4 * len(networks)})
    register = {f"hami.io/node-register-{word}": msgspec.json.encode(told).decode()}
    node.metadata.annotations = {**register, **(annotations or {})}
    return node


def place(cluster: Cluster, *pods: wire.Pod) -> list[list[list[str]]]:
    """The devices of each container of each pod that is placed, in the order of the pods."""
    records = [cluster.see_pod(pod) for pod in pods]
    outcome = make.cycle(cluster=cluster).schedule([one for one in records if one])
    checks.verify(cluster)
    found = {bind.uid: bind for bind in outcome.binds}
    return [
        [[use.uuid for use in slot] for slot in found[pod.metadata.uid].devices[0].slots]
        for pod in pods
        if pod.metadata.uid in found
    ]


def ask(requests: dict[str, int], **annotations: str) -> Any:
    pod = make.pod(name="p", requests=requests, annotations=annotations)
    ((one,),) = (found.containers for found in find_driver("Ascend910B3").read_requests(pod))
    return one


@pytest.mark.parametrize(
    ("mib", "part"), [(1, 16384), (16384, 16384), (16385, 32768), (32769, 65536), (65536, 65536)]
)
def test_memory_is_rounded_up_to_a_template_or_the_device(mib: int, part: int) -> None:
    """Else a device could be promised to more containers than the plugin can cut parts for."""
    assert ask({B3: 1, f"{B3}-memory": mib}).mem_mib == part
    assert ask({B3: 1, f"{B3}-memory": part}).mem_mib == part
    assert ask({B3: 1, f"{B3}-memory": mib}, **SOFT).mem_mib == mib


@pytest.mark.parametrize(
    ("requests", "field"),
    [
        ({B3: 1, f"{B3}-memory": 65537}, f"{B3}-memory"),
        ({B3: 2, f"{B3}-memory": 100}, f"{B3}-memory"),
        ({B3: 1, f"{B3}-core": 5}, f"{B3}-core"),
        ({f"{B3}-memory": 5}, f"{B3}-memory"),
    ],
)
def test_what_no_template_has_is_refused_with_its_field(
    requests: dict[str, int], field: str
) -> None:
    with pytest.raises(BadInput) as caught:
        ask(requests)
    assert caught.value.mistake.field == f"spec.containers[0].resources.limits[{field}]"


def test_an_odd_number_of_devices_of_modules_is_refused() -> None:
    pod = make.pod(name="p", requests={C: 3})
    with pytest.raises(BadInput, match="3 is neither 1 nor a multiple of 2"):
        find_driver("Ascend910C").read_requests(pod)


def test_pods_for_the_soft_split_go_to_nodes_that_have_it() -> None:
    cluster = make.cluster(
        nodes=[
            make_node("Ascend910B3", [None], "hard", {"hami-vnpu-core": "yes"}),
            make_node("Ascend910B3", [None], "soft", {"hami-vnpu-core": "true"}),
        ]
    )
    half = {B3: 1, f"{B3}-memory": 100, f"{B3}-core": 50}
    pods = [make.pod(name=f"p{i}", requests=half, annotations=dict(SOFT)) for i in range(3)]
    assert place(cluster, *pods) == [[["soft-0"]]] * 2
    plain = [make.pod(name=f"q{i}", requests={B3: 1}) for i in range(2)]
    assert place(cluster, *plain) == [[["hard-0"]]]


def test_parts_of_devices_fill_a_device_by_their_templates() -> None:
    cluster = make.cluster(nodes=[make_node("Ascend910B3", [1])])
    part = {B3: 1, f"{B3}-memory": 20000}
    pods = [make.pod(name=f"p{i}", requests=part) for i in range(3)]
    assert place(cluster, *pods) == [[["n1-0"]]] * 2


@pytest.mark.parametrize("wrong", ['"1"', "null", "[1]", "true", "1e300", "[]"])
def test_a_network_that_is_no_number_groups_nothing(wrong: str) -> None:
    text = f'[{{"id":"a","custominfo":{{"NetworkID":{wrong}}}}},{{"id":"b","custominfo":{{"NetworkID":2}}}}]'
    cards = find_driver("Ascend910B3").list_cards((text, "template", ""))
    assert {one.group for one in cards} == {""}


@pytest.mark.parametrize("custom", ["7", '"x"', "[]", "null"])
def test_custom_info_may_be_anything(custom: str) -> None:
    text = f'[{{"id":"a","custominfo":{custom}}}]'
    (card,) = find_driver("Ascend910B3").list_cards((text, "template", ""))
    assert card.group == ""


@pytest.mark.parametrize("text", ["x", "[", '[{"id":7}]', '[{"id":""}]', "[" * 5000])
def test_a_register_that_cannot_be_read_is_told_with_its_name(text: str) -> None:
    with pytest.raises(BadInput, match=r"hami\.io/node-register-Ascend910B3"):
        find_driver("Ascend910B3").list_cards((text, "template", ""))


def test_a_device_in_use_does_not_close_its_network_to_who_wants_idle_devices() -> None:
    """Unlike a die of Vastai, which closes its card."""
    cluster = make.cluster(nodes=[make_node("Ascend910B3", [1, 1, 1, 2, 2])])
    mutex = {names.HAMI_GPU_POLICY: "mutex"}
    (first,) = place(cluster, make.pod(name="p", requests={B3: 1}, annotations=dict(mutex)))
    found = place(cluster, make.pod(name="q", requests={B3: 4}, annotations=dict(mutex)))
    assert len(found) == 1
    assert first[0][0] not in found[0][0]


def test_devices_of_a_container_come_from_one_network() -> None:
    cluster = make.cluster(nodes=[make_node("Ascend910B3", [1, 2, 1, 2, 1, 2])])
    pods = [make.pod(name=f"p{i}", requests={B3: 3}) for i in range(2)]
    assert {frozenset(one[0]) for one in place(cluster, *pods)} == {
        frozenset({"n1-0", "n1-2", "n1-4"}),
        frozenset({"n1-1", "n1-3", "n1-5"}),
    }


def test_modules_are_given_as_a_whole_and_single_devices_one_by_one() -> None:
    cluster = make.cluster(nodes=[make_node("Ascend910C", [None] * 6)])
    pod = make.pod(name="p", requests={C: 2})
    other = make.pod(name="x", requests={C: 2}).spec.containers[0]
    other.name = "other"
    pod.spec.containers.append(other)
    ((first, second),) = place(cluster, pod)
    modules = {frozenset(first), frozenset(second)}
    assert modules < {frozenset({f"n1-{i}", f"n1-{i + 1}"}) for i in (0, 2, 4)}
    ((single,),) = place(cluster, make.pod(name="q", requests={C: 1}))
    assert single[0] not in {*first, *second}
    assert place(cluster, make.pod(name="r", requests={C: 2})) == []


def test_a_claim_of_hamis_is_charged() -> None:
    cluster = make.cluster(nodes=[make_node("Ascend910B3", [1, 1])])
    claim = {
        "hami.io/Ascend910B3-devices-allocated": "n1-1,Ascend910B3,16384,0:;",
        "huawei.com/Ascend910B3": '[{"UUID":"n1-1","temp":"vir05_1c_16g","memory":16384}]',
    }
    pod = make.pod(name="p", node="n1", requests={B3: 1, f"{B3}-memory": 16384}, annotations=claim)
    assert cluster.see_pod(pod) is not None
    used = cluster.cards.columns.used[:, cluster.registers.list_card_rows(0)].tolist()
    assert used == [[0, 0], [0, 16384], [0, 1]]
    checks.verify(cluster)
