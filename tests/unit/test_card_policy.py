"""The admission policy knows each annotation by which a plugin finds the devices of a pod."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from scheduler.api import names
from scheduler.api.cards import CardUse
from scheduler.api.hami_config.chart import CHART
from scheduler.devices.vendors import enflame, table
from scheduler.devices.vendors.driver import VendorCards

ROOT = Path(__file__).parents[2]
_ENFLAME = enflame.write_model(enflame.CardModel("0", 6, (enflame.Profile("6g.48gb", "1", 6, 48),)))
DRIVERS = table.list_drivers(CHART)


def read_variables() -> dict[str, str]:
    policy, _ = yaml.safe_load_all((ROOT / "manifests/base/admission.yaml").read_text())
    return {one["name"]: one["expression"] for one in policy["spec"]["variables"]}


def list_quoted(text: str) -> set[str]:
    return set(re.findall(r"'([^']+)'", text))


def write_keys(driver: VendorCards) -> set[str]:
    """The annotations that the driver writes for a pod, by cores where a vendor counts them."""
    slots = ((CardUse("n-0", 48 * 1024, 100, _ENFLAME),),)
    answers = [driver.write_answer("n", slots, 1, of_pod) for of_pod in (("main",), ("cores",))]
    return {key for one in answers for key in one.annotations}


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda one: one.name)
def test_only_schedulers_and_plugins_write_what_plugins_read(driver: VendorCards) -> None:
    variables = read_variables()
    pattern, claims = variables["pattern"].strip("'"), list_quoted(variables["claims"])
    (prefix,) = list_quoted(variables["written"]) - {"hami.io/"}
    written = write_keys(driver)
    assert written
    assert {
        key
        for key in written
        if not re.search(pattern, key) and key not in claims and not key.startswith(prefix)
    } == set()


def test_what_changes_how_a_claim_is_read_stays_once_a_pod_is_placed() -> None:
    variables = read_variables()
    fixed = {one for driver in DRIVERS for one in driver._vendor.other_notes}
    # By this one nodes are scored only.
    assert fixed - {"metax-tech.com/sgpu-topology-aware"} == list_quoted(variables["fixed"])
    assert list_quoted(variables["isPlaced"]) == {names.HAMI_NODE}
    assert names.HAMI_NODE in write_keys(DRIVERS[0])


def test_the_chart_has_the_same_words() -> None:
    """The cluster tests compare all of it."""
    text = (ROOT / "manifests/chart/templates/admission.yaml").read_text()
    for word in ("claims", "fixed", "written"):
        for one in list_quoted(read_variables()[word]):
            assert f"'{one}'" in text
