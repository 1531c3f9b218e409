"""Partitions of Enflame and shares of Metax in clusters: what HAMi's cases do not say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduler.api import steering, wire
from scheduler.errors import BadInput
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from scheduler.telling import sayings
from tests import make
from tests.unit.test_device_maps import World
from tests.unit.test_vendor_ascend import find_driver, place

SIZE, GIB, CORES = "enflame.com/drs-gcu", "enflame.com/gcu-memory", "enflame.com/gcu-core"
SHARE, MEMORY, SHARE_CORES = "metax-tech.com/sgpu", "metax-tech.com/vmemory", "metax-tech.com/vcore"
CAPACITY, CARDS = "enflame.com/gcu-drs-capacity", "metax-tech.com/node-gpu-devices"
POLICY, CLASS = "metax-tech.com/sgpu-qos-policy", "metax-tech.com/sgpu-app-class"
PROFILES = {"1g.8gb": "p1", "2g.16gb": "p2", "3g.24gb": "p3", "6g.48gb": "p6"}


def make_enflame(name: str, cards: int, profiles: dict[str, str]) -> wire.Node:
    told = {
        "devices": [{"index": str(i), "minor": str(7 + i), "capacity": 6} for i in range(cards)],
        "profiles": profiles,
    }
    node = make.node(name=name, cpu=64, allocatable={SIZE: 6 * cards})
    node.metadata.annotations = {CAPACITY: json.dumps(told)}
    return node


def make_metax(*policies: str, zones: tuple[int, ...] = ()) -> wire.Node:
    told = [
        {
            "uuid": f"g{i}",
            "totalDevCount": 16,
            "totalCompute": 100,
            "totalVRam": 65536,
            "healthy": True,
            "qosPolicy": policy,
            "linkZone": zones[i] if zones else 0,
        }
        for i, policy in enumerate(policies)
    ]
    node = make.node(name="n1", cpu=64, allocatable={SHARE: 16 * len(policies)})
    node.metadata.annotations = {CARDS: json.dumps(told)}
    return node


def bind(cluster: Cluster, pod: wire.Pod, word: str) -> dict[str, str]:
    """The annotations of a pod that is placed; nothing for one that is not."""
    record = cluster.see_pod(pod)
    assert record is not None
    binds = make.cycle(cluster=cluster).schedule([record]).binds
    checks.verify(cluster)
    for one in binds:
        (grant,) = one.devices
        answer = find_driver(word).write_answer(one.node, grant.slots, 1, grant.of_pod)
        pod.metadata.annotations = {**(pod.metadata.annotations or {}), **answer.annotations}
        pod.spec.node_name = one.node
        assert cluster.see_pod(pod) is not None
        checks.verify(cluster)
        return answer.annotations
    return {}


def test_a_size_that_no_card_can_be_cut_into_is_told_in_words() -> None:
    cluster = make.cluster(nodes=[make_enflame("n", 1, PROFILES)])
    record = cluster.see_pod(make.pod(name="p", cpu=1, requests={SIZE: 5}))
    assert record is not None
    (hold,) = make.cycle(cluster=cluster).schedule([record]).holds
    said = sayings.say_why(hold).message
    assert said.endswith("ModeNotFit on 1 GPU: they have no part of the requested size.")


def test_nodes_with_different_profiles_give_what_each_of_them_has() -> None:
    cluster = make.cluster(
        nodes=[
            make_enflame("small", 1, {"1g.8gb": "s1", "2g.16gb": "s2"}),
            make_enflame("large", 1, {"1g.20gb": "l1", "4g.80gb": "l4"}),
        ]
    )
    found = [
        bind(cluster, make.pod(name=f"p{i}", cpu=1, requests={SIZE: size}), "Enflame")
        for i, size in enumerate((2, 4, 3))
    ]
    assert [json.loads(one.get("assigned-containers", "{}")) for one in found] == [
        {"main": {"allocated": False, "request": 2, "profileID": "s2", "profileName": "2g.16gb"}},
        {"main": {"allocated": False, "request": 4, "profileID": "l4", "profileName": "4g.80gb"}},
        {},
    ]
    assert found[1]["hami.io/enflame-vgpu-devices-allocated"] == (
        "large-enflame-drs-0,Enflame,81920,100:;"
    )
    assert found[1]["enflame.com/gcu-assigned-minor"] == "7"


def test_what_a_pod_holds_of_a_card_is_read_back_and_no_more_than_its_partition() -> None:
    cluster = make.cluster(nodes=[make_enflame("n1", 2, PROFILES)])
    claim = {
        "hami.io/enflame-vgpu-devices-allocated": "n1-enflame-drs-1,Enflame,2147483647,2147483647:;"
    }
    pod = make.pod(name="p", node="n1", requests={GIB: 20}, annotations=claim)
    assert cluster.see_pod(pod) is not None
    used = cluster.cards.columns.used[:, cluster.registers.list_card_rows(0)].tolist()
    assert used == [[0, 50], [0, 24576], [0, 1]]
    checks.verify(cluster)


def test_partitions_of_a_pod_are_on_one_card() -> None:
    cluster = make.cluster(nodes=[make_enflame("n1", 2, PROFILES)])
    pod = make.pod(name="p", requests={SIZE: 3})
    other = make.pod(name="x", requests={GIB: 24, CORES: 50}).spec.containers[0]
    other.name = "other"
    pod.spec.containers.append(other)
    answer = bind(cluster, pod, "Enflame")
    assert sorted(json.loads(answer["assigned-containers"])) == ["main", "other"]
    first, second = answer["hami.io/enflame-vgpu-devices-allocated"].split(";")[:2]
    assert first == second
    # Half of each of the two cards is not enough for a pod that needs one card.
    bind(cluster, make.pod(name="q", requests={SIZE: 3}), "Enflame")
    assert bind(cluster, make.pod(name="r", requests={SIZE: 6}), "Enflame") == {}


@pytest.mark.parametrize(
    ("sizes", "n"), [((1,) * 7, 6), ((2,) * 4, 3), ((3, 2, 1, 1), 3), ((6, 1), 1), ((3, 3, 1), 2)]
)
def test_a_card_is_filled_by_the_sizes_of_its_partitions(sizes: tuple[int, ...], n: int) -> None:
    """HAMi gives five of six partitions of the smallest size, because it rounds up the cores of each."""
    cluster = make.cluster(nodes=[make_enflame("n1", 1, PROFILES)])
    pods = [make.pod(name=f"p{i}", cpu=1, requests={SIZE: size}) for i, size in enumerate(sizes)]
    assert len(place(cluster, *pods)) == n


@pytest.mark.parametrize(
    "change",
    [
        {"devices": []},
        {"profiles": {}},
        {"profiles": {"big": "p"}},
        {"profiles": {"1g.8gb": ""}},
        {"profiles": {"1g.8gb": "a b"}},
        {"profiles": {"1g,8gb": "a"}},
        {"devices": [{"index": "0", "capacity": 0}]},
        {"devices": [{"index": "0", "capacity": "many"}]},
        {"devices": [{"index": "0", "capacity": 1e300}]},
        {"devices": [{"index": "0", "minor": "a b", "capacity": 1}]},
        {"devices": [{"index": "0", "capacity": "9" * 5000}]},
        {"devices": [{"index": "1", "capacity": 1}, {"index": "1", "capacity": 1}]},
        {"devices": 7},
        {"profiles": []},
        {"profiles": {"9" * 5000 + "g.1gb": "a"}},
        {"profiles": {"1g.2000000000gb": "a"}},
    ],
)
def test_a_garbled_register_of_enflame_is_told_with_its_name(change: dict[str, Any]) -> None:
    told = {"devices": [{"index": "0", "capacity": 6}], "profiles": PROFILES, **change}
    with pytest.raises(BadInput, match=r"metadata.annotations\[enflame.com/gcu-drs-capacity\]"):
        find_driver("Enflame").list_cards((json.dumps(told), "n1", ""))


@pytest.mark.parametrize(
    ("requests", "field"),
    [({CORES: 101}, CORES), ({GIB: 2**31}, GIB), ({SIZE: "many"}, SIZE), ({GIB: "1.5"}, GIB)],
)
def test_what_no_partition_has_is_refused_with_its_field(
    requests: dict[str, Any], field: str
) -> None:
    pod = make.pod(name="p")
    pod.spec.containers[0].resources = wire.Resources(limits=requests)
    with pytest.raises(BadInput) as caught:
        find_driver("Enflame").read_requests(pod)
    assert caught.value.mistake.field == f"spec.containers[0].resources.limits[{field}]"


def ask_share(name: str, gib: int, cores: int, **annotations: str) -> wire.Pod:
    requests = {SHARE: 1, MEMORY: gib, SHARE_CORES: cores}
    return make.pod(name=name, cpu=1, requests=requests, annotations=annotations)


def test_a_card_in_use_keeps_its_policy_and_an_idle_one_takes_any() -> None:
    cluster = make.cluster(nodes=[make_metax("fixed-share", "burst-share")])
    fixed = {POLICY: "fixed-share"}
    pods = [ask_share(f"p{i}", 4, 60, **fixed) for i in range(3)]
    first, second, third = (bind(cluster, pod, "Metax-SGPU") for pod in pods)
    # Both cards were idle, so both may be had.
    assert first
    assert second
    assert not third
    # Of the cards in use only the one with the policy is shared.
    found = bind(cluster, ask_share("q", 4, 10, **fixed), "Metax-SGPU")
    assert found["hami.io/metax-sgpu-devices-allocated"] == "g0,Metax-SGPU,4096,10:;"
    assert not bind(cluster, ask_share("r", 4, 10), "Metax-SGPU")


def test_a_card_that_a_pod_has_switched_has_its_policy_before_the_plugin_reports_it() -> None:
    cluster = make.cluster(nodes=[make_metax("best-effort")])
    fixed = {POLICY: "fixed-share"}
    first = ask_share("p", 4, 10, **fixed)
    assert bind(cluster, first, "Metax-SGPU")
    assert not bind(cluster, ask_share("q", 4, 10), "Metax-SGPU")
    assert bind(cluster, ask_share("r", 4, 10, **fixed), "Metax-SGPU")
    cluster.see_node(make_metax("fixed-share"))
    assert not bind(cluster, ask_share("s", 4, 10), "Metax-SGPU")
    for name in ("p", "r"):
        cluster.drop_pod(next(uid for uid in cluster.pods if uid.endswith(name)))
    assert bind(cluster, ask_share("t", 4, 10), "Metax-SGPU")


def test_an_online_pod_joins_a_card_without_free_cores_and_no_other_pod_does() -> None:
    cluster = make.cluster(nodes=[make_metax("")])
    assert bind(cluster, ask_share("p", 4, 100, **{CLASS: "offline"}), "Metax-SGPU")
    assert not bind(cluster, ask_share("q", 4, 0, **{CLASS: "offline"}), "Metax-SGPU")
    for name in ("r", "s"):
        found = bind(cluster, ask_share(name, 4, 100, **{CLASS: "online"}), "Metax-SGPU")
        assert found["hami.io/metax-sgpu-devices-allocated"] == "g0,Metax-SGPU,4096,0:;"


@pytest.mark.parametrize(("notes", "card"), [({}, "g0"), ({CLASS: "offline"}, "g2")])
def test_an_offline_pod_with_all_cores_of_a_card_looks_at_no_zones(
    notes: dict[str, str], card: str
) -> None:
    cluster = make.cluster(nodes=[make_metax("", "", "", zones=(2, 1, 1))])
    found = bind(cluster, ask_share("p", 4, 100, **notes), "Metax-SGPU")
    assert found["hami.io/metax-sgpu-devices-allocated"] == f"{card},Metax-SGPU,4096,100:;"


def test_why_a_pod_waits_names_its_class() -> None:
    cluster = make.cluster(nodes=[make_metax("")])
    assert bind(cluster, ask_share("p", 4, 10), "Metax-SGPU")
    for kind, wanted in (("online", "online"), ("offline", "offline with best-effort")):
        record = cluster.see_pod(ask_share(kind, 4, 10, **{CLASS: kind}))
        assert record is not None
        (hold,) = make.cycle(cluster=cluster).schedule([record]).holds
        assert hold.diagnosis is not None
        assert [one.text for one in hold.diagnosis.details] == [
            f"CardAppClassMismatch on 1 GPU: requested mode {wanted}, and other pods are there"
        ]


@pytest.mark.parametrize("key", [POLICY, CLASS])
def test_an_annotation_with_another_value_is_refused_with_its_name(key: str) -> None:
    with pytest.raises(BadInput) as caught:
        find_driver("Metax-SGPU").read_requests(ask_share("p", 4, 30, **{key: "x" * 500}))
    assert caught.value.mistake.field == f"metadata.annotations[{key}]"


@pytest.mark.parametrize(
    ("text", "mib"), [("4", 4096), ("4Gi", 4096), ("1500", 1_536_000), ("2k", 0), ("2000", 0)]
)
def test_memory_of_metax_is_in_gib_unless_it_has_a_unit(text: str, mib: int) -> None:
    pod = make.pod(name="p")
    pod.spec.containers[0].resources = wire.Resources(limits={SHARE: 1, MEMORY: text})
    ((one,),) = (ask.containers for ask in find_driver("Metax-SGPU").read_requests(pod))
    assert (one.mem_mib, one.mem_percent) == (mib, 0 if mib else 100)


def test_whole_shared_cards_come_from_small_zones_one_by_one_too() -> None:
    cluster = make.cluster(nodes=[make_metax("", "", "", "", zones=(1, 1, 1, 2))])
    whole = [make.pod(name=f"p{i}", cpu=1, requests={SHARE: n}) for i, n in enumerate((1, 3))]
    first, second = (place(cluster, pod)[0][0] for pod in whole)
    assert first == ["g3"]
    assert sorted(second) == ["g0", "g1", "g2"]


@pytest.mark.parametrize(
    "text",
    ["x", "{}", "[7]", '[{"uuid":7}]', '[{"uuid":""}]', '[{"uuid":"a","totalVRam":-1}]',
     '[{"uuid":"a"},{"uuid":"a"}]', '[{"uuid":"a","totalDevCount":99999999999}]', "[" * 5000],
)  # fmt: skip
def test_a_garbled_register_of_metax_is_told_with_its_name(text: str) -> None:
    with pytest.raises(BadInput, match=r"metadata.annotations\[metax-tech.com/node-gpu-devices\]"):
        find_driver("Metax-SGPU").list_cards((text, ""))


@pytest.mark.parametrize(("key", "value"), [(POLICY, "x"), (CLASS, "x")])
def test_a_pod_on_a_node_keeps_what_it_holds_when_its_annotations_become_malformed(
    key: str, value: str
) -> None:
    world = World()
    world.see(make_metax(""), pod := ask_share("p", 60, 90))
    assert world.decide() == {"p": "n1"}
    assert world.used("n1") == [(90, 61440, 1)]
    pod.metadata.annotations = {**(pod.metadata.annotations or {}), key: value}
    world.see(pod, ask_share("q", 5, 10))
    assert world.used("n1") == [(90, 61440, 1)]
    assert world.decide() == {}


@pytest.mark.parametrize("claim", ["", "g1,Metax-SGPU,4096,30:;"])
def test_a_pod_with_a_malformed_annotation_that_comes_with_a_node_holds_a_whole_card(
    claim: str,
) -> None:
    world = World()
    notes = {POLICY: "x", **({"hami.io/metax-sgpu-devices-allocated": claim} if claim else {})}
    pod = ask_share("p", 4, 30, **notes)
    pod.spec.node_name = "n1"
    world.see(make_metax("", ""), pod)
    card = (100 if not claim else 30, 65536, 1)
    assert sorted(world.used("n1")) == [(0, 0, 0), card]
    limit = wire.Meta(name="q", namespace="default", uid="q")
    world.see(steering.ResourceQuota(limit, {"hard": {f"limits.{SHARE}": "1"}}))
    world.see(ask_share("next", 4, 30))
    assert world.decide() == {}


def test_a_malformed_partition_is_the_whole_card_on_its_node() -> None:
    world = World()
    pod = make.pod(name="p", cpu=1, requests={GIB: 8, CORES: 101})
    pod.spec.node_name = "n"
    world.see(make_enflame("n", 1, PROFILES), pod, make.pod(name="q", cpu=1, requests={SIZE: 1}))
    assert [one[0] for one in world.used()] == [102]
    assert world.decide() == {}


def test_an_odd_number_of_cores_is_counted_in_whole_devices_on_its_node() -> None:
    world = World()
    core, device = "aws.amazon.com/neuroncore", "aws.amazon.com/neuron"
    pod = make.pod(name="p", cpu=1, requests={core: 3})
    pod.spec.node_name = "n"
    world.see(make.node(name="n", cpu=64, allocatable={core: 8, device: 4}), pod)
    assert [one[1] for one in world.used()].count(2) == 2


def test_a_malformed_request_of_one_vendor_does_not_free_what_another_has_given() -> None:
    node = make_metax("")
    chip = "huawei.com/Ascend910B3"
    register = [{"id": "d0", "count": 4, "devmem": 65536, "devcore": 20, "type": "Ascend910B3", "health": True}]  # fmt: skip
    assert node.metadata.annotations is not None
    assert node.status.allocatable is not None
    node.metadata.annotations["hami.io/node-register-Ascend910B3"] = json.dumps(register)
    node.status.allocatable[chip] = "4"
    pod = make.pod(name="p", cpu=1, requests={SHARE: 1, chip: 1, f"{chip}-core": 10})
    pod.spec.node_name = "n1"
    world = World()
    world.see(node, pod)
    assert [one[1] for one in world.used("n1")] == [65536, 65536]
