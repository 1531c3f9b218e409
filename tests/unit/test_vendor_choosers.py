"""The kernels that choose devices of Ascend, AWS Neuron and Metax against their twins."""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import names, wire
from scheduler.api.cards import find_slots
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from tests import make
from tests.oracles import choosers


class Kind(NamedTuple):
    """A kind of devices: how a node reports them, and by what a pod holds one of them."""

    resource: str
    register: str
    claim: str
    choose: choosers.Choose
    label: str = ""
    driver: str = ""


B3 = "Ascend910B3"
KINDS = (
    Kind(
        f"huawei.com/{B3}",
        f"hami.io/node-register-{B3}",
        f"hami.io/{B3}-devices-allocated",
        choosers.choose_by_network,
        driver=f"HAMi {B3}",
    ),
    Kind(
        "huawei.com/Ascend910C",
        "hami.io/node-register-Ascend910C",
        "hami.io/Ascend910C-devices-allocated",
        choosers.choose_pairs,
        driver="HAMi Ascend910C",
    ),
    Kind(
        "aws.amazon.com/neuron",
        "",
        "hami.io/aws-neuron-devices-allocated",
        choosers.choose_in_ring,
        "inf2.48xlarge",
        "HAMi AWSNeuron",
    ),
    Kind(
        "aws.amazon.com/neuron",
        "",
        "hami.io/aws-neuron-devices-allocated",
        choosers.choose_aligned,
        "trn1.32xlarge",
        "HAMi AWSNeuron",
    ),
    Kind(
        "metax-tech.com/sgpu",
        "metax-tech.com/node-gpu-devices",
        "hami.io/metax-sgpu-devices-allocated",
        choosers.choose_by_zone,
        driver="HAMi Metax-SGPU",
    ),
)
# A group of each device, and whether it is in use.
DEVICES = st.lists(
    st.tuples(st.sampled_from([None, 1, 1, 2, 3]), st.sampled_from([False, False, True])),
    min_size=1,
    max_size=16,
)


def make_node(kind: Kind, groups: list[int | None]) -> wire.Node:
    n = len(groups)
    node = make.node(name="n", cpu=64, allocatable={kind.resource: n})
    if not kind.register:
        offered = {kind.resource: n, "aws.amazon.com/neuroncore": 2 * n}
        node = make.node(name="n", cpu=64, allocatable=offered)
        node.metadata.labels = {"node.kubernetes.io/instance-type": kind.label}
        return node
    told = [
        {
            "id": f"d-{i}",
            "uuid": f"d-{i}",
            "index": i,
            "count": 4,
            "totalDevCount": 4,
            "devmem": 65536,
            "totalVRam": 65536,
            "devcore": 100,
            "totalCompute": 100,
            "type": "x",
            "health": True,
            "healthy": True,
            "custominfo": {} if group is None else {"NetworkID": group},
            "linkZone": group or 0,
        }
        for i, group in enumerate(groups)
    ]
    node.metadata.annotations = {kind.register: json.dumps(told)}
    return node


def hold(cluster: Cluster, kind: Kind, i: int) -> None:
    """Let a pod hold a device."""
    device, cores = (f"d-{i}", 100) if kind.register else (f"n-AWSNeuron-{i}", 3)
    claim = {kind.claim: f"{device},x,65536,{cores}:;"}
    pod = make.pod(name=f"u{i}", node="n", cpu=1, requests={kind.resource: 1}, annotations=claim)
    assert cluster.see_pod(pod) is not None


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.choose.__name__)
@settings(deadline=None, max_examples=150)
@given(devices=DEVICES, wanted=st.sampled_from([1, 2, 3, 4, 4, 5, 6, 8, 16]))
def test_the_kernel_chooses_what_its_twin_chooses(
    kind: Kind, devices: list[tuple[int | None, bool]], wanted: int
) -> None:
    groups = [group for group, _ in devices]
    cluster = make.cluster(nodes=[make_node(kind, groups)])
    for i, (_, is_used) in enumerate(devices):
        if is_used:
            hold(cluster, kind, i)
    # The walk goes from the last device to the first.
    policy = {names.HAMI_GPU_POLICY: "numa"}
    pod = make.pod(name="p", cpu=1, requests={kind.resource: wanted}, annotations=policy)
    record = cluster.see_pod(pod)
    assert record is not None
    outcome = make.cycle(cluster=cluster).schedule([record])
    checks.verify(cluster)
    found = [
        [int(use.uuid.rpartition("-")[2]) for use in slot]
        for bind in outcome.binds
        for slot in find_slots(bind.devices, kind.driver)
    ]
    fitting = [i for i in reversed(range(len(devices))) if not devices[i][1]]
    expected = kind.choose(fitting, groups, wanted) if wanted <= len(devices) else None
    assert found == ([] if expected is None else [expected])
