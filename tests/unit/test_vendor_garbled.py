"""Garbled registers, claims, annotations and amounts of every vendor: the field is named, and nothing else stops."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import wire
from scheduler.api.hami_config.chart import CHART
from scheduler.devices.admission import steps
from scheduler.devices.contract import Words
from scheduler.devices.vendors import table
from scheduler.devices.vendors.driver import VendorCards
from scheduler.devices.vendors.vendor import Vendor
from scheduler.errors import BadInput
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from tests import make
from tests.unit.device_pods import DEFAULT
from tests.unit.test_odd_objects import QUANTITIES, TEXTS

# What the registers of all vendors name, in HAMi's form and in their own.
KEYS = (
    "id", "index", "count", "devmem", "devcore", "type", "numa", "health", "custominfo", "NetworkID", "AIC",
    "DeviceStrategy", "uuid", "totalDevCount", "totalCompute", "totalVRam", "healthy", "qosPolicy", "linkZone",
    "devices", "profiles", "minor", "capacity", "1g.8gb", "3g.24gb",
)  # fmt: skip
LEAVES = st.one_of(
    st.sampled_from(
        ["", "a", "b", "1", "-1", "1g.8gb", "p1", "die", "fixed-share", "9" * 400, "x=y"]
    ),
    st.sampled_from([0, 1, 2, 7, 100, 65536, -1, 2**31, 2**63, 1e300, 0.5, True, False, None]),
)
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=8)
    ),
    max_leaves=30,
)
REGISTERS = st.one_of(
    TEXTS,
    JSON.map(lambda found: msgspec.json.encode(found).decode()),
    st.lists(st.dictionaries(st.sampled_from(KEYS), LEAVES, max_size=10), max_size=4).map(
        lambda found: msgspec.json.encode(found).decode()
    ),
)
IDS = ("a", "b", "bad-AWSNeuron-0", "bad-enflame-drs-1", "bad-GCU-0", "bad-cambricon-mlu-0", "")
CLAIMS = st.one_of(
    TEXTS,
    st.lists(
        st.tuples(
            st.sampled_from(IDS),
            st.sampled_from(["0", "1", "3", "100", "65536", str(2**31 - 1), "-1", "x"]),
            st.sampled_from(["0", "1", "2", "3", "50", "100", str(2**31 - 1)]),
        ),
        max_size=3,
    ).map(lambda found: "".join(f"{one},W,{mib},{cores}:" for one, mib, cores in found) + ";"),
)
DRIVERS = table.list_drivers(CHART)
VENDORS = {driver.name: driver._vendor for driver in DRIVERS}


def draw_node(data: st.DataObject, vendor: Vendor) -> wire.Node:
    resources = [one for one in (vendor.cards, vendor.memory, vendor.cores) if one]
    offered = data.draw(st.dictionaries(st.sampled_from(resources), QUANTITIES, max_size=3))
    # A node that offers nothing readable is left out for that.
    amounts: dict[str, Any] = {
        one: n for one, n in offered.items() if str(n) in {"1", "0", "100Ei", "-1"}
    }
    node = make.node(name="bad", cpu=64, allocatable={**amounts, **dict.fromkeys(resources, 8)})
    if vendor.register:
        node.metadata.annotations = {vendor.register: data.draw(REGISTERS)}
    return node


def find_wrong_field(driver: VendorCards, words: Words) -> str:
    """The field of a node that cannot be read; empty if all can."""
    try:
        driver.list_cards(words)
    except BadInput as error:
        return error.mistake.field
    return ""


def draw_pod(data: st.DataObject, vendor: Vendor, name: str) -> wire.Pod:
    resources = [one for one in (vendor.cards, vendor.memory, vendor.cores) if one]
    amounts = st.one_of(st.sampled_from([1, 2, 4, 50]), QUANTITIES)
    asked = data.draw(st.dictionaries(st.sampled_from(resources), amounts, min_size=1))
    pod = make.pod(name=name, node=data.draw(st.sampled_from(["", "bad", "good"])))
    pod.spec.containers[0].resources = wire.Resources(limits=dict(asked))
    keys = sorted(vendor.notes)
    notes = data.draw(st.dictionaries(st.sampled_from(keys), TEXTS)) if keys else {}
    pod.metadata.annotations = {**notes, vendor.allocated: data.draw(CLAIMS)}
    return pod


@settings(deadline=None, max_examples=400)
@given(st.data())
def test_garbled_objects_of_a_vendor_stop_nothing_else(data: st.DataObject) -> None:
    driver: VendorCards = data.draw(st.sampled_from(DRIVERS))
    vendor = VENDORS[driver.name]
    cluster = Cluster()
    cluster.see_node(make.hami_node(name="good", cards=1))
    bad = draw_node(data, vendor)
    facts = cluster.see_node(bad)
    words = driver.read_node(bad)
    if find_wrong_field(driver, words):
        assert facts.problem is not None
        assert find_wrong_field(driver, words) == f"metadata.annotations[{vendor.register}]"
    records = [cluster.see_pod(draw_pod(data, vendor, f"p{i}")) for i in range(3)]
    other = cluster.see_pod(make.pod(name="other", gpu=1))
    checks.verify(cluster)
    waiting = [one for one in (*records, other) if one is not None and not one.node]
    outcome = make.cycle(cluster=cluster).schedule(waiting)
    checks.verify(cluster)
    assert "default/other" in {one.uid for one in outcome.binds}
    for bind in outcome.binds:
        for grant in bind.devices:
            if grant.driver == driver.name:
                marks = driver.write_answer(bind.node, grant.slots, 1, grant.of_pod)
                assert driver.is_answered(marks.annotations, grant.slots)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_the_webhook_answers_whatever_a_pod_says_of_a_vendor(data: st.DataObject) -> None:
    vendor = VENDORS[data.draw(st.sampled_from(DRIVERS)).name]
    pod = draw_pod(data, vendor, "p")
    text = wire_json({"metadata": {"annotations": pod.metadata.annotations}, "spec": {
        "containers": [{"name": "main", "resources": {"limits": pod.spec.containers[0].resources.limits}}]  # type: ignore[union-attr]
    }})  # fmt: skip
    verdict = steps.review_pod(text, "default", DEFAULT, steps.ClusterFacts())
    if isinstance(verdict, steps.Error):
        assert verdict.message.startswith(("container main: ", "metadata.annotations["))
    else:
        assert isinstance(verdict, steps.Allowed)


def wire_json(found: Any) -> bytes:
    return msgspec.json.encode(found)


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)
def test_a_claim_that_cannot_be_read_is_told_with_its_name(driver: VendorCards) -> None:
    vendor = VENDORS[driver.name]
    pod = make.pod(name="p", node="n", requests={vendor.cards: 1})
    pod.metadata.annotations = {vendor.allocated: "a,b:;"}
    with pytest.raises(BadInput) as caught:
        driver.read_claim(pod, [True])
    assert caught.value.mistake.field == driver.claim_field
