"""The cases of HAMi's vendors have the form that their README tells, so whatever is tested with them can rely on it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from scheduler.api import names, quantities

FOLDER = Path(__file__).parents[1] / "data/hami/vendors"
FILES = sorted(FOLDER.glob("*.yaml"))
README = (FOLDER / "README.md").read_text(encoding="utf-8")
# Each row of HAMi's table of vendors beside NVIDIA.
VENDORS = {
    "amd", "ascend", "awsneuron", "biren", "cambricon", "enflame", "hygon", "iluvatar", "kunlun", "metax", "mthreads",
    "vastai",
}  # fmt: skip
REFUSAL = re.compile(r"\d+/\d+ [A-Z][A-Za-z]+")
TIMES = {"<seconds>", "<nanoseconds>"}


class Form(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    pass


class Word(Form, kw_only=True, frozen=True):
    to_allocate: str
    allocated: str
    register: str
    handshake: str
    lock: str


class Node(Form, kw_only=True, frozen=True):
    name: str = ""
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}


class Container(Form, kw_only=True, frozen=True):
    name: str = ""
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}
    env: dict[str, str] = {}


class Pod(Form, kw_only=True, frozen=True):
    annotations: dict[str, str] = {}
    runtime_class: str = ""
    init: list[Container] = []
    containers: list[Container] = []


class Ask(Form, kw_only=True, frozen=True):
    count: int
    mib: int
    percent: int
    cores: int


class Pick(Form, kw_only=True, frozen=True):
    id: str
    mib: int
    cores: int
    index: int = 0
    type: str = ""
    info: dict[str, Any] | None = None


class Device(Form, kw_only=True, frozen=True):
    id: str
    count: int
    mib: int
    cores: int
    index: int = 0
    type: str = ""
    numa: int = 0
    mode: str = ""
    healthy: bool = True
    info: dict[str, Any] = {}
    used: int = 0
    used_mib: int = 0
    used_cores: int = 0
    pods: list[dict[str, str]] = []


class Case(Form, kw_only=True, frozen=True):
    name: str
    word: str
    nodes: list[Node] = []
    node: Node = Node()


class Register(Case, kw_only=True, frozen=True):
    devices: list[Device] = []
    refused: str = ""


class Health(Case, kw_only=True, frozen=True):
    healthy: bool
    refresh: bool
    writes: str


class Changed(Form, kw_only=True, frozen=True):
    limits: dict[str, str] | None = None
    requests: dict[str, str] | None = None
    env: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    runtime_class: str | None = None


class Admission(Case, kw_only=True, frozen=True):
    container: Container
    pod: Pod = Pod()
    asks: bool | None = None
    after: Changed = Changed()
    refused: str = ""


class Request(Case, kw_only=True, frozen=True):
    container: Container
    asks: Ask | str


class Answer(Case, kw_only=True, frozen=True):
    picks: list[list[Pick]]
    annotations: dict[str, str]
    pod: Pod = Pod()
    reads: list[list[Pick]] | None = None


class Fit(Case, kw_only=True, frozen=True):
    devices: list[Device]
    ask: Ask
    pod: Pod = Pod()
    policy: str = ""
    before: list[list[Pick]] = []
    picks: list[Pick] = []
    refused: str = ""


class Used(Form, kw_only=True, frozen=True):
    used: int
    used_mib: int
    used_cores: int
    info: dict[str, Any] | None = None


class Usage(Case, kw_only=True, frozen=True):
    device: Device
    pick: Pick
    after: Used
    pod: Pod = Pod()


class Score(Case, kw_only=True, frozen=True):
    policy: str
    picks: list[list[Pick]]
    score: float
    devices: list[Device] = []
    pod: Pod = Pod()


class Vendor(Form, kw_only=True, frozen=True):
    source: str
    vendor: str
    config: dict[str, Any]
    words: dict[str, Word]
    register: list[Register]
    health: list[Health]
    admission: list[Admission]
    requests: list[Request]
    answers: list[Answer]
    fits: list[Fit]
    usage: list[Usage]
    scores: list[Score]

    def list_cases(self) -> list[Case]:
        sections = (getattr(self, name) for name in self.__struct_fields__)
        return [one for part in sections if isinstance(part, list) for one in part]


@pytest.fixture(scope="module", params=FILES, ids=lambda path: path.stem)
def vendor(request: pytest.FixtureRequest) -> Vendor:
    path: Path = request.param
    return msgspec.convert(yaml.safe_load(path.read_text(encoding="utf-8")), Vendor)


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
