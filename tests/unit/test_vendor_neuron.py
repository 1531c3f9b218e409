"""AWS Neuron in clusters: cores that are bits, neighbors, and what HAMi's cases do not say."""

from __future__ import annotations

import pytest

from scheduler.api import wire
from scheduler.api.cards import CardUse, Grant
from scheduler.errors import BadInput
from scheduler.placing.rooms import suffice_cards
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from tests import make
from tests.unit.test_device_maps import World
from tests.unit.test_vendor_ascend import find_driver, place

DEVICES, CORES = "aws.amazon.com/neuron", "aws.amazon.com/neuroncore"
ALLOCATED = "hami.io/aws-neuron-devices-allocated"


def make_node(name: str, devices: int, cores: int, kind: str = "inf2.48xlarge") -> wire.Node:
    node = make.node(name=name, cpu=64, allocatable={DEVICES: devices, CORES: devices * cores})
    node.metadata.labels = {"node.kubernetes.io/instance-type": kind}
    return node


def bind(cluster: Cluster, name: str, **requests: int) -> dict[str, str]:
    """The annotations of a pod that is placed; nothing for one that is not."""
    asked = {f"aws.amazon.com/{key}": n for key, n in requests.items()}
    pod = make.pod(name=name, cpu=1, requests=asked)
    record = cluster.see_pod(pod)
    assert record is not None
    binds = make.cycle(cluster=cluster).schedule([record]).binds
    checks.verify(cluster)
    for one in binds:
        (grant,) = one.devices
        answer = find_driver("AWSNeuron").write_answer(one.node, grant.slots, 1, grant.of_pod)
        pod.metadata.annotations, pod.spec.node_name = answer.annotations, one.node
        # What is read back is what was decided.
        assert cluster.see_pod(pod) is not None
        checks.verify(cluster)
        return answer.annotations
    return {}


def test_cores_of_a_device_are_given_one_by_one_and_told_by_number() -> None:
    cluster = make.cluster(nodes=[make_node("n1", 2, 2)])
    found = [bind(cluster, f"p{i}", neuroncore=1).get("AWS_NEURON_IDS") for i in range(5)]
    assert sorted(filter(None, found)) == ["0", "1", "2", "3"]
    assert found[4] is None


def test_a_core_that_was_given_back_is_given_again() -> None:
    """Which core is free is read from the bits of those in use."""
    cluster = make.cluster(nodes=[make_node("n1", 1, 2)])
    first = bind(cluster, "p0", neuroncore=1)
    second = bind(cluster, "p1", neuroncore=1)
    assert (first["AWS_NEURON_IDS"], second["AWS_NEURON_IDS"]) == ("0", "1")
    cluster.drop_pod(make.pod(name="p0").metadata.uid)
    assert bind(cluster, "p2", neuroncore=1)["AWS_NEURON_IDS"] == "0"


def test_a_device_with_a_core_in_use_is_not_given_as_a_whole() -> None:
    cluster = make.cluster(nodes=[make_node("n1", 2, 2)])
    bind(cluster, "p", neuroncore=1)
    whole = bind(cluster, "q", neuron=1)
    assert whole["NEURON_ALLOCATED"] == "false"
    assert "NEURON_RESOURCE_TYPE" not in whole
    assert bind(cluster, "r", neuron=1) == {}
    assert bind(cluster, "s", neuroncore=2) == {}


def test_cores_are_requested_of_devices_with_two_cores_only() -> None:
    cluster = make.cluster(nodes=[make_node("n1", 2, 8, "trn2.48xlarge"), make_node("n2", 2, 2)])
    assert bind(cluster, "p", neuroncore=1)["aws.amazon.com/predicate-node"] == "n2"
    assert bind(cluster, "q", neuroncore=2)["aws.amazon.com/predicate-node"] == "n2"
    assert bind(cluster, "r", neuroncore=4) == {}
    whole = bind(cluster, "s", neuron=1)
    assert whole[ALLOCATED] in (f"n1-AWSNeuron-{i},AWSNeuron,0,255:;" for i in range(2))


@pytest.mark.parametrize(("n", "fits"), [(2, False), (3, False), (4, True), (8, True)])
def test_devices_of_trainium_come_in_fours_and_multiples(n: int, *, fits: bool) -> None:
    cluster = make.cluster(nodes=[make_node("n1", 16, 2, "trn1.32xlarge")])
    pods = [make.pod(name=f"p{i}", requests={DEVICES: n}) for i in range(16 // n)]
    found = place(cluster, *pods)
    assert len(found) == (16 // n if fits else 0)
    for ((*devices,),) in found:
        numbers = [int(one.rpartition("-")[2]) for one in devices]
        assert numbers == list(range(numbers[0], numbers[0] + n))
        assert numbers[0] % n == 0


def test_two_containers_share_a_device_by_its_cores() -> None:
    cluster = make.cluster(nodes=[make_node("n1", 1, 2)])
    pod = make.pod(name="p", requests={CORES: 1})
    other = make.pod(name="x", requests={CORES: 1}).spec.containers[0]
    other.name = "other"
    pod.spec.containers.append(other)
    record = cluster.see_pod(pod)
    assert record is not None
    (one,) = make.cycle(cluster=cluster).schedule([record]).binds
    assert [[use.cores for use in uses] for uses in one.devices[0].slots] == [[1], [2]]


@pytest.mark.parametrize("text", ["2147483647", "3", "0"])
def test_a_claim_for_more_cores_than_requested_counts_as_one(text: str) -> None:
    cluster = make.cluster(nodes=[make_node("n1", 1, 2)])
    claim = {ALLOCATED: f"n1-AWSNeuron-0,AWSNeuron,0,{text}:;"}
    pod = make.pod(name="p", node="n1", requests={CORES: 1}, annotations=claim)
    assert cluster.see_pod(pod) is not None
    (d,) = cluster.registers.list_card_rows(0)
    assert cluster.cards.columns.used[:, d].tolist() == [1, 1, 1]
    assert bind(cluster, "q", neuroncore=1)["AWS_NEURON_IDS"] == "1"


@pytest.mark.parametrize("n", [3, 5])
def test_an_odd_number_of_cores_is_refused(n: int) -> None:
    pod = make.pod(name="p", requests={CORES: n})
    with pytest.raises(BadInput, match=f"{CORES}.*{n} is neither 1 nor a multiple of 2"):
        find_driver("AWSNeuron").read_requests(pod)


def test_devices_of_a_node_that_reports_no_cores_are_given_as_a_whole() -> None:
    cluster = make.cluster(nodes=[make.node(name="n1", cpu=64, allocatable={DEVICES: 1})])
    assert bind(cluster, "p", neuroncore=1) == {}
    assert bind(cluster, "q", neuron=1)["AWS_NEURON_IDS"] == "0"


def test_a_core_that_was_promised_is_not_given_twice() -> None:
    """A promise names a core. Another pod may have it by then, while the device has as many cores free as before."""
    cluster = make.cluster(nodes=[make_node("n1", 1, 2)])
    pod = make.pod(name="p", cpu=1, requests={CORES: 1})
    record = cluster.see_pod(pod)
    assert record is not None
    asking = make.cycle(cluster=cluster)
    key = asking.keys.make_key(record)
    assert key is not None
    shape = asking.boards.make_unscored(key)

    def is_left(bits: int) -> bool:
        promised = (Grant("HAMi AWSNeuron", ((CardUse("n1-AWSNeuron-0", 1, bits),),)),)
        return suffice_cards(cluster, asking.boards, record, shape, (0, promised))

    assert (is_left(1), is_left(2)) == (True, True)
    bind(cluster, "other", neuroncore=1)
    assert (is_left(1), is_left(2)) == (False, True)


def test_an_unhealthy_core_does_not_close_the_others_of_its_node() -> None:
    world = World()
    core, device = "aws.amazon.com/neuroncore", "aws.amazon.com/neuron"
    world.see(make.node(name="n", cpu=64, allocatable={core: 7, device: 4}))
    world.see(make.pod(name="p", cpu=1, requests={core: 2}))
    assert world.decide() == {"p": "n"}
