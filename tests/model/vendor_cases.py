"""The cases of HAMi's vendors, as ``tests/data/hami/vendors`` has them; its README says what each field means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

FOLDER = Path(__file__).parents[1] / "data/hami/vendors"
FILES = sorted(FOLDER.glob("*.yaml"))


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


def read_vendor(path: Path) -> Vendor:
    """Read the file of a vendor."""
    return msgspec.convert(yaml.safe_load(path.read_text(encoding="utf-8")), Vendor)
