"""The cases of HAMi's vendors have the form that their README tells, so whatever is tested with them can rely on it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scheduler.api import names, quantities
from tests.model.vendor_cases import (
    FILES,
    FOLDER,
    Admission,
    Answer,
    Ask,
    Container,
    Device,
    Fit,
    Health,
    Node,
    Pick,
    Pod,
    Register,
    Request,
    Score,
    Usage,
    Vendor,
    Word,
    read_vendor,
)

README = (FOLDER / "README.md").read_text(encoding="utf-8")
# Each row of HAMi's table of vendors beside NVIDIA.
VENDORS = {
    "amd", "ascend", "awsneuron", "biren", "cambricon", "enflame", "hygon", "iluvatar", "kunlun", "metax", "mthreads",
    "vastai",
}  # fmt: skip
REFUSAL = re.compile(r"\d+/\d+ [A-Z][A-Za-z]+")
TIMES = {"<seconds>", "<nanoseconds>"}


@pytest.fixture(scope="module", params=FILES, ids=lambda path: path.stem)
def vendor(request: pytest.FixtureRequest) -> Vendor:
    path: Path = request.param
    return read_vendor(path)


def test_there_is_a_file_for_each_vendor() -> None:
    assert {path.stem for path in FILES} == VENDORS


def test_the_readme_tells_each_key() -> None:
    told = set(re.findall(r"`(\w+)`", README))
    assert set(Vendor.__struct_fields__) <= told
    inner = (Word, Node, Container, Pod, Ask, Pick, Device, Register, Health, Admission, Request, Answer, Fit, Usage, Score)  # fmt: skip
    assert {field for form in inner for field in form.__struct_fields__} <= told


def test_a_file_names_its_source_and_has_cases_of_each_kind_and_for_each_word(
    vendor: Vendor,
) -> None:
    assert "HAMi v2.10" in vendor.source
    assert "Apache-2.0" in vendor.source
    parts = [getattr(vendor, name) for name in vendor.__struct_fields__]
    assert all(parts)
    assert {case.word for case in vendor.list_cases()} == vendor.words.keys()


def test_no_two_cases_of_a_section_have_one_name(vendor: Vendor) -> None:
    found = [(type(case).__name__, case.name) for case in vendor.list_cases()]
    assert len(set(found)) == len(found)


def test_quantities_are_those_of_kubernetes(vendor: Vendor) -> None:
    containers = [one.container for one in vendor.admission]
    containers += [one.container for one in vendor.requests]
    nodes = [node for case in vendor.list_cases() for node in (case.node, *case.nodes)]
    found = [one for box in containers for one in (box.limits, box.requests)]
    found += [one for node in nodes for one in (node.capacity, node.allocatable)]
    amounts = [text for one in found for text in one.values()]
    assert amounts
    for text in amounts:
        # HAMi's code has rules for negative amounts, too, though no API server lets them through.
        quantities.read_milli(text.removeprefix("-"))


def test_a_case_is_answered_or_refused(vendor: Vendor) -> None:
    for case in vendor.register:
        assert bool(case.devices) != bool(case.refused), case.name
        assert case.node.name
    for one in vendor.admission:
        assert (one.asks is None) == bool(one.refused), one.name
    for request in vendor.requests:
        assert request.asks == "nothing" or isinstance(request.asks, Ask), request.name
    for fit in vendor.fits:
        assert bool(fit.picks) != bool(fit.refused), fit.name
        if fit.refused:
            reasons = fit.refused.split(", ")
            assert all(REFUSAL.fullmatch(reason) for reason in reasons), fit.name
            assert reasons == sorted(reasons), fit.name
        else:
            assert len(fit.picks) == fit.ask.count, fit.name


def test_picks_are_devices_of_the_case(vendor: Vendor) -> None:
    for fit in vendor.fits:
        ids = [device.id for device in fit.devices]
        assert len(set(ids)) == len(ids), fit.name
        picked = [pick.id for pick in fit.picks]
        assert set(picked) <= set(ids), fit.name
        assert len(set(picked)) == len(picked), fit.name


def test_annotations_are_those_of_the_word(vendor: Vendor) -> None:
    for case in vendor.register:
        assert case.node.annotations.keys() <= {one.register for one in vendor.words.values()}
    for health in vendor.health:
        word = vendor.words[health.word]
        assert health.writes in {"", word.handshake}
    for answer in vendor.answers:
        word = vendor.words[answer.word]
        assert word.allocated in answer.annotations, answer.name
        assert answer.annotations[word.allocated].count(";") == len(answer.picks), answer.name
        if word.to_allocate in answer.annotations:
            assert answer.annotations[word.to_allocate] == answer.annotations[word.allocated]
        placed = [text for text in answer.annotations.values() if text.startswith("<")]
        assert set(placed) <= TIMES, answer.name


def test_every_lock_is_hamis_own_but_cambricons(vendor: Vendor) -> None:
    locks = {word.lock for word in vendor.words.values()} - {""}
    assert locks <= {names.HAMI_LOCK, "cambricon.com/dsmlu.lock"}
