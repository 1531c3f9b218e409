"""The drivers of vendors against the cases that were compared with HAMi's own functions."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
import yaml

from scheduler.api import hami, names, wire
from scheduler.api.cards import Card, CardUse, Slots, find_slots
from scheduler.api.hami_config.chart import CHART
from scheduler.api.hami_config.reading import read_config
from scheduler.api.pods.gpus import ContainerAsk, ContainerKind, GpuAsk
from scheduler.devices.contract import NodeReading, Words
from scheduler.devices.table import Devices
from scheduler.devices.vendors import table
from scheduler.devices.vendors.driver import VendorCards
from scheduler.devices.vendors.vendor import Vendor as Kind
from scheduler.errors import BadInput
from scheduler.schema import columns as c
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from tests import make
from tests.model import vendor_cases as cases

DONE = (
    "amd",
    "biren",
    "cambricon",
    "enflame",
    "hygon",
    "iluvatar",
    "kunlun",
    "metax",
    "mthreads",
    "vastai",
)
# Kinds of these vendors that are not supported.
OPEN = frozenset({"Metax-SGPU", "Enflame"})
FILES = {path.stem: cases.read_vendor(path) for path in cases.FILES if path.stem in DONE}


def find_kinds(vendor: cases.Vendor) -> dict[str, Kind]:
    """The kinds of devices by HAMi's word, as the file's configuration names their resources."""
    config = read_config(yaml.safe_dump(vendor.config))
    every = (kind for one in table._VENDORS for kind in one.list_kinds(config))
    return {kind.word: kind for kind in every if kind.cards}


KINDS = {name: find_kinds(vendor) for name, vendor in FILES.items()}


def list_cases(section: str) -> list[Any]:
    return [
        pytest.param(KINDS[name][case.word], case, id=f"{name}: {case.name}")
        for name, vendor in FILES.items()
        for case in getattr(vendor, section)
        if case.word not in OPEN
    ]


def make_node(case: cases.Node) -> wire.Node:
    """The node of a case; the number of devices is read of what can be allocated."""
    node = make.node(name=case.name, allocatable={**case.capacity, **case.allocatable})
    node.metadata.annotations = dict(case.annotations)
    node.metadata.labels = dict(case.labels)
    return node


def test_the_table_has_every_kind_of_the_files_and_of_the_chart() -> None:
    assert {one for kinds in KINDS.values() for one in kinds} >= {
        word for vendor in FILES.values() for word in vendor.words if word not in OPEN
    }
    assert len({driver.name for driver in table.list_drivers(CHART)}) == 14


@pytest.mark.parametrize("name", DONE)
def test_annotations_and_locks_have_hamis_names(name: str) -> None:
    for word, told in FILES[name].words.items():
        if word in OPEN:
            continue
        kind = KINDS[name][word]
        # HAMi never writes the second one for Mthreads.
        to_allocate = "" if word == "Mthreads" else told.to_allocate
        assert (kind.allocated, kind.to_allocate, kind.register) == (
            told.allocated,
            to_allocate,
            told.register,
        )
        assert (kind.lock.key if kind.lock else "") == told.lock


@pytest.mark.parametrize(("kind", "case"), list_cases("register"))
def test_the_devices_of_a_node_are_those_that_hami_reads(kind: Kind, case: cases.Register) -> None:
    driver = VendorCards(kind)
    words = driver.read_node(make_node(case.node))
    if case.refused:
        # A register that cannot be read is told; HAMi tells of one without devices, too.
        if driver.is_told(words) and kind.register and not re.fullmatch(r"(\[\])?:?", words[0]):
            with pytest.raises(BadInput, match=re.escape(kind.register)):
                driver.list_cards(words)
        else:
            assert driver.list_cards(words) == ()
        return
    found = driver.list_cards(words)
    # Of shares of Kunlun's cards memory alone says how many there are.
    counts = {one.id: one.sharers if kind.word == "XPU" else 0 for one in found}
    assert [(one.id, one.index, one.sharers, one.numa, one.healthy) for one in found] == [
        (one.id, one.index, counts[one.id] or one.count, one.numa, one.healthy)
        for one in sorted(case.devices, key=lambda one: (one.index, one.id))
    ]
    assert [one.group for one in found] == [one.info.get("AIC", "") for one in case.devices]
    if not kind.is_unmeasured:
        assert {(one.id, one.mib, one.cores) for one in found} == {
            (one.id, one.mib, one.cores) for one in case.devices
        }


# Of AMD HAMi reads limits only. The cases that differ have requests without limits, which the API server refuses.
REQUESTS = [
    one
    for one in list_cases("requests")
    if not (one.values[0].word == "AMD" and one.values[1].container.requests)
]


def make_pod(container: cases.Container) -> wire.Pod:
    pod = make.pod(name="p")
    pod.spec.containers[0].resources = wire.Resources(
        requests=dict(container.requests) or None, limits=dict(container.limits) or None
    )
    return pod


@pytest.mark.parametrize(("kind", "case"), REQUESTS)
def test_a_container_requests_what_hami_reads(kind: Kind, case: cases.Request) -> None:
    """A figure that voids the request for HAMi is refused."""
    pod = make_pod(case.container)
    try:
        asks = VendorCards(kind).read_requests(pod)
    except BadInput as error:
        is_fraction = bool(re.search(r'"[^"]*(\.|m)[^"]*" is not allowed', str(error)))
        assert case.asks == "nothing" or is_fraction
        return
    if isinstance(case.asks, str):
        assert asks == ()
        return
    ((slot,),) = (one.containers for one in asks)
    assert slot.cards == case.asks.count
    if kind.is_unmeasured:
        assert slot == ContainerAsk(ContainerKind.APP, case.asks.count, 1)
        return
    is_all = slot.mem_percent == 100
    assert (slot.mem_mib, is_all) == (
        0 if is_all else case.asks.mib,
        case.asks.percent == 100 or not case.asks.mib,
    )
    if not kind.is_whole:
        # HAMi lowers cores above a whole card when it looks at the cards.
        assert slot.cores == min(100, case.asks.cores)
    assert slot.core_percent == (slot.cores if kind.is_of_cores else 0)


def make_slots(kind: Kind, picks: list[list[cases.Pick]]) -> Slots:
    def read(pick: cases.Pick) -> CardUse:
        if kind.is_unmeasured:
            return CardUse(pick.id, 1, 0)
        return CardUse(pick.id, pick.mib, pick.cores, pick.type if kind.names_models else "")

    return tuple(tuple(read(pick) for pick in slot) for slot in picks)


@pytest.mark.parametrize(("kind", "case"), list_cases("answers"))
def test_the_answer_is_hamis_and_is_read_back(kind: Kind, case: cases.Answer) -> None:
    driver, slots = VendorCards(kind), make_slots(kind, case.picks)
    marks = driver.write_answer("n1", slots, 1_700_000_000)
    common = hami.make_common_annotations("n1", 1_700_000_000)
    own = {key: text for key, text in marks.annotations.items() if key not in common}
    time = str(1_700_000_000 * 10**9)
    assert own == {
        key: text.replace("<nanoseconds>", time) for key, text in case.annotations.items()
    }
    assert common.items() <= marks.annotations.items()
    assert driver.is_answered(marks.annotations, slots)
    pod = make.pod(name="p", annotations=marks.annotations)
    assert driver.read_claim(pod, [bool(slot) for slot in slots]) == slots


class Told(VendorCards):
    """The driver, on a node that has the devices of a case, for a pod that requests what the case says."""

    def __init__(self, kind: Kind, case: cases.Fit) -> None:
        super().__init__(kind)
        self._kind, self._case = kind, case

    def read_node(self, node: wire.Node) -> Words:
        return node.metadata.name, ""

    def serves(self, _seen: NodeReading) -> bool:
        return True

    def list_cards(self, _words: Words) -> tuple[Card, ...]:
        return tuple(
            Card(
                id=one.id,
                index=i,
                sharers=100 if self._kind.word == "XPU" else one.count,
                mib=one.count if self._kind.is_unmeasured else one.mib,
                cores=0 if self._kind.is_unmeasured else one.cores,
                model=one.type or self._kind.word,
                healthy=one.healthy,
                group=one.info.get("AIC", ""),
            )
            for i, one in enumerate(list_devices(self._case))
        )

    def read_requests(self, pod: wire.Pod) -> tuple[GpuAsk, ...]:
        wanted = self._case.ask
        (ask,) = super().read_requests(pod)
        if self._kind.is_unmeasured:
            one = ContainerAsk(ContainerKind.APP, wanted.count, 1)
        else:
            cores = 100 if self._kind.is_whole else min(100, wanted.cores)
            mib = 0 if wanted.percent == 100 else wanted.mib
            percent = 0 if mib else wanted.percent or 100
            of_cores = cores if self._kind.is_of_cores else 0
            one = ContainerAsk(ContainerKind.APP, wanted.count, mib, percent, cores, of_cores)
        # Earlier containers requested what they got.
        earlier = [
            ContainerAsk(ContainerKind.APP, len(picks), picks[0].mib, 0, picks[0].cores)
            for picks in self._case.before
        ]
        return (ask._replace(containers=(*earlier, one)),)


def list_devices(case: cases.Fit) -> list[cases.Device]:
    """The devices, with those of earlier containers at the end, where the walk begins, and before these had them."""
    had = [pick for picks in case.before for pick in picks]

    def give_back(one: cases.Device) -> cases.Device:
        mine = [pick for pick in had if pick.id == one.id]
        return msgspec.structs.replace(
            one,
            used=one.used - len(mine),
            used_mib=one.used_mib - sum(pick.mib for pick in mine),
            used_cores=one.used_cores - sum(pick.cores for pick in mine),
        )

    there = map(give_back, case.devices)
    return sorted(there, key=lambda one: any(pick.id == one.id for pick in had))


def place(kind: Kind, case: cases.Fit) -> tuple[list[tuple[str, int, int]], str]:
    """The devices that are chosen, from the last to the first, and why the node is refused."""
    driver = Told(kind, case)
    cluster = Cluster(devices=Devices((driver,)))
    cluster.see_node(make.node(name="n1", cpu=64, allocatable={kind.cards: 1000}))
    used = cluster.cards.columns.used
    for d, one in zip(cluster.registers.list_card_rows(0), list_devices(case), strict=True):
        mib, cores = (one.used, 0) if kind.is_unmeasured else (one.used_mib, one.used_cores)
        if kind.is_whole and one.used:
            mib, cores = one.mib, one.cores
        used[:, d] = (cores, mib, one.used)
    policy = {names.HAMI_GPU_POLICY: "numa,mutex" if "mutex" in case.policy else "numa"}
    pod = make.pod(
        name="p", requests={kind.cards: 1}, annotations={**case.pod.annotations, **policy}
    )
    pod.spec.containers *= 1 + len(case.before)
    record = cluster.see_pod(pod)
    assert record is not None
    outcome = make.cycle(cluster=cluster).schedule([record])
    if not outcome.binds:
        (hold,) = outcome.holds
        assert hold.diagnosis is not None
        return [], "; ".join(detail.text for detail in hold.diagnosis.details)
    *earlier, slot = find_slots(outcome.binds[0].devices, driver.name)
    assert [[use.uuid for use in uses] for uses in earlier] == [
        [pick.id for pick in picks] for picks in case.before
    ]
    if kind.is_unmeasured:
        return [(use.uuid, 0, 0) for use in slot], ""
    models = {one.id: one.type if kind.names_models else "" for one in case.devices}
    assert [use.model for use in slot] == [models[use.uuid] for use in slot]
    return [(use.uuid, use.mem_mib, use.cores) for use in slot], ""


@pytest.mark.parametrize(("kind", "case"), list_cases("fits"))
def test_the_devices_that_a_container_gets_are_those_that_hami_chooses(
    kind: Kind, case: cases.Fit
) -> None:
    found, why = place(kind, case)
    if case.refused:
        assert not found
        assert why
        if case.before:
            for n, code in re.findall(r"(\d+)/\d+ (\w+)", case.refused):
                assert f"{code} on {n} GPU" in why
        return
    wanted = [(pick.id, pick.mib, pick.cores) for pick in case.picks]
    if kind.chooser == c.ISLANDS:
        # The set is what counts: HAMi names the cards of a set in the order in which it found them.
        found, wanted = sorted(found), sorted(wanted)
    assert found == wanted, why


def test_devices_of_several_vendors_on_one_node_go_to_one_pod() -> None:
    cluster = Cluster()
    node = make.hami_node(
        name="n1", cards=1, allocatable={"hygon.com/dcunum": 4, "kunlunxin.com/xpu": 8}
    )
    register = "DCU-a,4,65520,100,DCU-K100,0,true,0,hami-core:"
    node.metadata.annotations = {
        **(node.metadata.annotations or {}),
        "hami.io/node-dcu-register": register,
    }
    cluster.see_node(node)
    wanted = {"hygon.com/dcunum": 1, "hygon.com/dcumem": 1000, "kunlunxin.com/xpu": 2}
    record = cluster.see_pod(make.pod(name="p", gpu=1, requests=wanted))
    assert record is not None
    (bind,) = make.cycle(cluster=cluster).schedule([record]).binds
    assert [grant.driver for grant in bind.devices] == ["HAMi", "HAMi DCU", "HAMi kunlun"]
    checks.verify(cluster)


@pytest.mark.parametrize(
    "kind", [kind for kinds in KINDS.values() for kind in kinds.values() if kind.register]
)
def test_a_node_whose_register_is_gone_can_be_shown_as_one_that_had_it(kind: Kind) -> None:
    """A log that begins anew shows it so: else the devices would be counted, and given away again."""
    driver = VendorCards(kind)
    words = driver.read_node(driver.sign_node(make.node(name="n")))
    assert driver.is_signed(words)
    assert driver.list_cards(words) == ()
