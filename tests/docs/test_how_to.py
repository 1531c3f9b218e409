"""The pages on how to change the code tell of the code as it is."""

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scheduler.api.hami_config.chart import CHART
from scheduler.api.hami_config.maps import DeviceSettings
from scheduler.devices.admission.vendors import list_mutations
from scheduler.devices.contract import CardDriver
from scheduler.devices.table import Devices, list_drivers
from scheduler.devices.vendors import table as vendors
from scheduler.devices.vendors.driver import VendorCards
from scheduler.plugins import table
from scheduler.plugins.contract import Change, Held, Hint, Rule
from scheduler.state.cluster import Cluster
from tests import make
from tests.docs import blocks

FOLDER = blocks.ROOT / "docs"


def code(page: str) -> list[dict[str, Any]]:
    """What each piece of Python of a page defines."""
    found = []
    for block in blocks.of(FOLDER / page):
        if block.language == "python":
            defined: dict[str, Any] = {}
            exec(compile(block.text, block.place, "exec"), defined)
            found.append(defined)
    return found


def test_the_rule_that_is_shown_refuses_what_it_says() -> None:
    (defined,) = code("add-a-rule.md")
    rule: Rule = defined["RULE"]
    announced = make.node(name="a", labels={"example.com/maintenance": "soon"})
    cluster = make.cluster(nodes=[announced, make.node(name="b")])
    assert rule.filter is not None
    rows = np.array([cluster.nodes.find_row(name) for name in ("a", "b")], np.int64)
    assert rule.filter.refuses(True, cluster.nodes, rows).tolist() == [True, False]
    pod = cluster.see_pod(make.pod())
    assert pod is not None
    assert rule.hint is not None
    gone = Change.NODE_LABELS, "example.com/maintenance"
    assert rule.hint(Held(pod.template, None, ())) == Hint(here=(gone,))
    assert rule.name not in {one.name for one in table.RULES}


def test_all_that_a_driver_of_cards_must_have_is_named() -> None:
    text = (FOLDER / "add-a-device-driver.md").read_text(encoding="utf-8")
    words = set(re.findall(r"`(\w+)`", text))
    members = {name for name in dir(CardDriver) if not name.startswith("_")}
    members |= {name for name in CardDriver.__annotations__ if not name.startswith("_")}
    assert {"name", "read_requests", "inner_resources"} < members
    assert members - words == set()


def test_the_vendor_that_is_shown_gets_its_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Followed literally: the file of the page, and its line, are all that the scheduler and its webhook need."""
    (defined,) = code("add-a-device-driver.md")
    monkeypatch.setattr(vendors, "_VENDORS", (*vendors._VENDORS, SimpleNamespace(**defined)))
    (kind,) = defined["list_kinds"](CHART)
    assert kind.word in list_mutations.__wrapped__(CHART)
    cluster = Cluster(devices=Devices(list_drivers("gpu=on", DeviceSettings())))
    register = '[{"id":"a","count":4,"devmem":1000,"devcore":100,"type":"Acme","health":true}]'
    cluster.see_node(
        make.node(
            name="n",
            cpu=8,
            allocatable={kind.cards: 4},
            annotations={"hami.io/node-acme-register": register},
        )
    )
    wanted = {kind.cards: 1, kind.memory: 600}
    pods = [cluster.see_pod(make.pod(name=name, cpu=1, requests=wanted)) for name in "pq"]
    (bind,) = make.cycle(cluster=cluster).schedule([pod for pod in pods if pod]).binds
    marks = VendorCards(kind).write_answer("n", bind.devices[0].slots, 1)
    assert marks.annotations["hami.io/acme-devices-allocated"] == "a,Acme,600,100:;"
