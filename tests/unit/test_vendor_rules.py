"""The rules of single vendors, in clusters: what HAMi's cases do not say."""

from __future__ import annotations

import pytest

from scheduler.api import wire
from scheduler.api.cards import CardUse
from scheduler.api.hami_config.chart import CHART
from scheduler.devices.vendors import table
from scheduler.devices.vendors.driver import VendorCards
from scheduler.errors import BadInput
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from tests import make


def find_driver(word: str) -> VendorCards:
    """The driver of the devices of HAMi's word."""
    (driver,) = (one for one in table.list_drivers(CHART) if one.name == f"HAMi {word}")
    return driver


def test_what_is_said_of_dies_may_be_anything() -> None:
    told = '"NaN"', "[]", '{"AIC":7,"DeviceStrategy":"die"}', '{"AIC":"A","DeviceStrategy":"card"}'
    for info in told:
        text = f'[{{"id":"a","count":1,"custominfo":{info}}},{{"id":"b","custominfo":null}}]'
        cards = find_driver("Vastai").list_cards((text, ""))
        assert [one.group for one in cards] == ["", ""]


def test_dies_of_two_containers_and_of_cards_without_a_name() -> None:
    """The second container is served of what the first one leaves; dies that name no card count as those of one card."""
    cards = ("A", "A", "A", "B", "B", "", "", "")
    dies = [
        f'{{"id":"{i}","index":{i},"count":1,"health":true,"custominfo":{{"AIC":"{card}","DeviceStrategy":"die"}}}}'
        for i, card in enumerate(cards)
    ]
    node = make.node(name="n1", allocatable={"vastaitech.com/va": 8})
    node.metadata.annotations = {"hami.io/node-va-register": f"[{','.join(dies)}]"}
    cluster = Cluster()
    cluster.see_node(node)
    pod = make.pod(name="p", requests={"vastaitech.com/va": 2})
    other = make.pod(name="q", requests={"vastaitech.com/va": 4}).spec.containers[0]
    other.name = "other"
    pod.spec.containers.append(other)
    record = cluster.see_pod(pod)
    assert record is not None
    (bind,) = make.cycle(cluster=cluster).schedule([record]).binds
    assert [[use.uuid for use in slot] for slot in bind.devices[0].slots] == [
        ["7", "6"],
        ["2", "1", "0", "4"],
    ]
    checks.verify(cluster)


@pytest.mark.parametrize("offered", ["2000000000", "-1", "many", "0"])
def test_an_amount_that_no_node_can_have_is_no_device(offered: str) -> None:
    for name, resource in (
        ("Metax-GPU", "metax-tech.com/gpu"),
        ("Mthreads", "mthreads.com/sgpu-core"),
        ("kunlun", "kunlunxin.com/xpu"),
    ):
        driver = find_driver(name)
        words = driver.read_node(make.node(name="n1", allocatable={resource: offered}))
        assert not driver.is_told(words)
        assert driver.list_cards(words) == ()


def add_container(
    pod: wire.Pod, name: str, requests: dict[str, int], *, init: bool = False
) -> None:
    other = make.pod(name=name, requests=requests).spec.containers[0]
    other.name = name
    if init:
        pod.spec.init_containers = [*(pod.spec.init_containers or ()), other]
    else:
        pod.spec.containers.append(other)


def place_on_mthreads(pod: wire.Pod) -> list[list[str]]:
    """The cards of each container on a node with two cards of Mthreads."""
    cluster = Cluster()
    offered = {"mthreads.com/vgpu": 200, "mthreads.com/sgpu-core": 32}
    cluster.see_node(
        make.node(name="n1", cpu=64, allocatable={**offered, "mthreads.com/sgpu-memory": 192})
    )
    record = cluster.see_pod(pod)
    assert record is not None
    binds = make.cycle(cluster=cluster).schedule([record]).binds
    checks.verify(cluster)
    return [[use.uuid for use in slot] for bind in binds for slot in bind.devices[0].slots]


def test_containers_of_mthreads_share_a_card_and_init_containers_another() -> None:
    share = {"mthreads.com/vgpu": 1, "mthreads.com/sgpu-memory": 32, "mthreads.com/sgpu-core": 4}
    pod = make.pod(name="p", requests=share)
    add_container(pod, "second", share)
    add_container(pod, "before", {**share, "mthreads.com/vgpu": 2}, init=True)
    first, second, third = place_on_mthreads(pod)
    assert sorted(first) == ["n1-mthreads-0", "n1-mthreads-1"]
    assert second == third
    assert len(second) == 1


def test_two_containers_of_mthreads_that_fill_a_card_each_do_not_fit_on_a_node_with_two() -> None:
    whole = {"mthreads.com/vgpu": 1, "mthreads.com/sgpu-memory": 96, "mthreads.com/sgpu-core": 16}
    pod = make.pod(name="p", requests=whole)
    assert len(place_on_mthreads(pod)) == 1
    add_container(pod, "second", whole)
    assert place_on_mthreads(pod) == []


AMD_REGISTER = (
    '[{"id":"a","count":4,"devmem":1000,"devcore":304,"type":"AMD Instinct MI300X","health":true}]'
)
SHARE = {"amd.com/gpu": 1, "amd.com/gpumem": 400, "amd.com/gpucores": 50}


def make_amd_nodes() -> list[wire.Node]:
    """A node whose cards HAMi's plugin reports, and one with whole devices that are only counted."""
    shared = make.node(name="shared", cpu=64, allocatable={"amd.com/gpu": 4})
    shared.metadata.annotations = {"hami.io/node-amd-register": AMD_REGISTER}
    return [shared, make.node(name="plain", cpu=64, allocatable={"amd.com/gpu": 2})]


def test_shares_of_amd_go_to_nodes_with_a_register_and_whole_devices_to_both() -> None:
    cluster = make.cluster(nodes=make_amd_nodes())
    pods = [make.pod(name=f"share-{i}", cpu=1, requests=SHARE) for i in range(3)]
    records = [cluster.see_pod(pod) for pod in pods]
    outcome = make.cycle(cluster=cluster).schedule([one for one in records if one])
    assert [bind.node for bind in outcome.binds] == ["shared", "shared"]
    assert [use for bind in outcome.binds for use in bind.devices[0].slots[0]] == [
        CardUse("a", 400, 152, "AMD Instinct MI300X")
    ] * 2
    whole = [make.pod(name=f"whole-{i}", cpu=1, requests={"amd.com/gpu": 1}) for i in range(3)]
    records = [cluster.see_pod(pod) for pod in whole]
    outcome = make.cycle(cluster=cluster).schedule([one for one in records if one])
    # What is counted is written on no pod.
    assert [(bind.node, bind.devices) for bind in outcome.binds] == [("plain", ())] * 2
    checks.verify(cluster)


def test_what_a_pod_of_amd_holds_is_read_back_from_its_claim() -> None:
    cluster = make.cluster(nodes=make_amd_nodes())
    uses = ((CardUse("a", 400, 152, "AMD Instinct MI300X"),),)
    driver = find_driver("AMD")
    claim = driver.write_answer("shared", uses, 1).annotations
    record = cluster.see_pod(make.pod(name="p", node="shared", requests=SHARE, annotations=claim))
    assert record is not None
    (d,) = cluster.registers.list_card_rows(cluster.nodes.rows["shared"])
    assert cluster.cards.columns.used[:, d].tolist() == [152, 400, 1]
    assert driver.is_answered(claim, record.claim[0].slots)
    checks.verify(cluster)


def test_a_pod_whose_claim_is_unknown_holds_its_part_of_the_compute_units() -> None:
    cluster = make.cluster(nodes=make_amd_nodes())
    assert cluster.see_pod(make.pod(name="p", node="shared", requests=SHARE)) is not None
    (d,) = cluster.registers.list_card_rows(cluster.nodes.rows["shared"])
    assert cluster.cards.columns.used[:, d].tolist() == [152, 400, 1]


@pytest.mark.parametrize("model", ["", "MI300X,1", "MI300X:1"])
def test_a_model_that_no_claim_can_name_is_refused(model: str) -> None:
    text = AMD_REGISTER.replace("AMD Instinct MI300X", model)
    with pytest.raises(BadInput, match="needs a type"):
        find_driver("AMD").list_cards((text, ""))
