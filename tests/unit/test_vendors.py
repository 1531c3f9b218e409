"""The drivers of vendors against the cases that were compared with HAMi's own functions."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from scheduler.api import hami, names
from scheduler.api.cards import CardUse
from scheduler.api.hami_config.chart import CHART
from scheduler.api.hami_config.reading import read_config
from scheduler.api.pods.gpus import ContainerAsk, ContainerKind
from scheduler.devices.contract import CardDriver
from scheduler.devices.hami import HamiCards
from scheduler.devices.vendors import table
from scheduler.devices.vendors.driver import VendorCards
from scheduler.devices.vendors.vendor import Vendor as Kind
from scheduler.errors import BadInput
from scheduler.schema import columns as c
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from tests import make
from tests.model import vendor_cases as cases
from tests.model import vendor_fits as fits

DONE = (
    "amd",
    "ascend",
    "awsneuron",
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
    ]


def test_the_table_has_every_kind_of_the_files_and_of_the_chart() -> None:
    words = {word for vendor in FILES.values() for word in vendor.words}
    assert {one for kinds in KINDS.values() for one in kinds} >= words
    drivers = [driver.name.removeprefix("HAMi ") for driver in table.list_drivers(CHART)]
    assert {*drivers} >= words
    assert len({*drivers}) == len(drivers)


@pytest.mark.parametrize("name", DONE)
def test_annotations_and_locks_have_hamis_names(name: str) -> None:
    for word, told in FILES[name].words.items():
        kind = KINDS[name][word]
        # HAMi never writes the second one for Mthreads.
        to_allocate = "" if word == "Mthreads" else told.to_allocate
        assert (kind.allocated, kind.to_allocate, kind.register) == (
            told.allocated,
            to_allocate,
            told.register,
        )
        assert (kind.lock.key if kind.lock else "") == told.lock


# Two cards of the case have one id.
TWICE = ("the largest profile is the memory of every card",)
# HAMi takes the number of cores of the first node for that of all nodes.
REGISTERS = [
    one
    for one in list_cases("register")
    if not one.values[1].nodes and one.values[1].name not in TWICE
]


@pytest.mark.parametrize(("kind", "case"), REGISTERS)
def test_the_devices_of_a_node_are_those_that_hami_reads(kind: Kind, case: cases.Register) -> None:
    driver = VendorCards(kind)
    words = driver.read_node(fits.make_node(case.node))
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
    assert [one.group for one in found] == [fits.find_group(one) for one in case.devices]
    if not kind.is_unmeasured:
        assert {(one.id, one.mib, one.cores) for one in found} == {
            (one.id, fits.find_mib(kind, one), one.cores) for one in case.devices
        }


# Of AMD and of shares of Metax HAMi reads limits only. The cases that differ have requests without limits, which the API server refuses.
REQUESTS = [
    one
    for one in list_cases("requests")
    if not (one.values[0].word in ("AMD", "Metax-SGPU") and one.values[1].container.requests)
]


@pytest.mark.parametrize(("kind", "case"), REQUESTS)
def test_a_container_requests_what_hami_reads(kind: Kind, case: cases.Request) -> None:
    """A figure that voids the request for HAMi is refused."""
    pod = fits.make_pod(case.container)
    if fits.is_of_ascend(kind):
        # Only requests for parts that HAMi's library makes are as they stand; the webhook rounds others up to templates.
        pod.metadata.annotations = dict(fits.SOFT)
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
    if kind.word == fits.NEURON:
        # HAMi gives no cores before it has seen a node.
        wanted = fits.ONE_CORE if case.asks.cores == 1 else fits.TWO_CORES
        assert (slot.mem_percent, slot.cores, slot.core_percent) == wanted
        return
    if kind.needs_models:
        # Which part it gets depends on the card.
        assert asks[0].find_parts is not None
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


@pytest.mark.parametrize(("kind", "case"), list_cases("answers"))
def test_the_answer_is_hamis_and_is_read_back(kind: Kind, case: cases.Answer) -> None:
    driver, slots = VendorCards(kind), fits.make_slots(kind, case.picks)
    marks = driver.write_answer("n1", slots, 1_700_000_000, fits.read_of_pod(kind, case))
    common = hami.make_common_annotations("n1", 1_700_000_000)
    own = {key: text for key, text in marks.annotations.items() if key not in common}
    times = {"<nanoseconds>": str(1_700_000_000 * 10**9), "<seconds>": "1700000000"}
    assert own == {key: times.get(text, text) for key, text in case.annotations.items()}
    assert common.items() <= marks.annotations.items()
    assert driver.is_answered(marks.annotations, slots)
    pod = fits.make_answered(kind, case)
    pod.metadata.annotations = {**(pod.metadata.annotations or {}), **marks.annotations}
    assert driver.read_claim(pod, [bool(slot) for slot in slots]) == tuple(
        tuple(use._replace(model="") if kind.needs_models else use for use in slot)
        for slot in slots
    )


# With these annotations HAMi gives devices that they exclude, if several are requested.
# More than all cores are refused when the pod is read.
FITS = [
    one
    for one in list_cases("fits")
    if "uuids are not looked at" not in one.values[1].name
    and not (one.values[0].word == "Metax-SGPU" and one.values[1].ask.cores > 100)
]


@pytest.mark.parametrize(("kind", "case"), FITS)
def test_the_devices_that_a_container_gets_are_those_that_hami_chooses(
    kind: Kind, case: cases.Fit
) -> None:
    found, why = fits.place(kind, case)
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


@pytest.mark.parametrize("word", ["NVIDIA", "DCU"])
def test_a_node_with_a_name_that_no_label_can_have_gets_pods_without_the_label(word: str) -> None:
    """HAMi's write of the pod fails there, so the pod never starts."""
    driver: CardDriver = HamiCards("")
    if word != "NVIDIA":
        (driver,) = (one for one in table.list_drivers(CHART) if one.name == f"HAMi {word}")
    slots = ((CardUse("card-0", 100, 10),),)
    for name, labels in (("n" * 63, {names.HAMI_NODE: "n" * 63}), ("n" * 64, {})):
        marks = driver.write_answer(name, slots, 1)
        assert marks.annotations[names.HAMI_NODE] == name
        assert marks.labels == labels
