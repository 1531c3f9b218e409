"""What HAMi's device plugin does otherwise on single nodes, and that it merges settings as upstream does."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api.hami_config import nodes, reading
from scheduler.api.hami_config.nodes import NodeOverride
from scheduler.api.hami_config.sections import Nvidia
from scheduler.errors import BadInput
from tests import slices
from tests.oracles import hami_config as twin

# As in the values of HAMi's chart (v2.10, Apache-2.0), in our own words.
EXAMPLE = """{"nodeconfig": [{"name": "your-node-name", "operatingmode": "hami-core", "migstrategy": "none",
    "devicesplitcount": 10, "devicememoryscaling": 1, "preconfigureddevicememory": 0, "enablenumatopology": false,
    "enablegetpreferredallocation": false, "filterdevices": {"index": [], "uuid": []}}]}"""


def test_the_example_of_the_chart() -> None:
    wanted = NodeOverride(
        "your-node-name", "hami-core", split_count=10, memory_scaling=1.0, mig_strategy="none"
    )
    assert nodes.read_overrides(EXAMPLE) == (wanted,)


@pytest.mark.parametrize("text", ["{}", "null", '{"nodeconfig": null}', '{"nodeconfig": []}', '{"x": 1}'])  # fmt: skip
def test_no_node_is_different(text: str) -> None:
    assert nodes.read_overrides(text) == ()


def test_keys_count_in_any_case() -> None:
    given = {
        "NodeConfig": [{"Name": "n", "operatingMode": "mps", "FilterDevices": {"UUID": ["a", "b"], "Index": [0]}}]
    }  # fmt: skip
    assert nodes.read_overrides(json.dumps(given)) == (
        NodeOverride("n", "mps", hidden_uuids=frozenset("ab"), hidden_indexes=frozenset([0])),
    )


@pytest.mark.parametrize(
    ("entry", "field", "problem"),
    [
        ({}, "name", "is required"),
        ({"name": ""}, "name", "must not be empty"),
        ({"name": "n", "operatingmode": "vgpu"}, "operatingmode", "'vgpu' is not one of hami-core, mig, mps"),
        ({"name": "n", "devicesplitcount": -1}, "devicesplitcount", "0..2147483647"),
        ({"name": "n", "devicememoryscaling": "2"}, "devicememoryscaling", "'2' is not a number"),
        ({"name": "n", "devicecorescaling": -0.5}, "devicecorescaling", "not a factor above 0"),
        ({"name": "n", "enablenumatopology": 1}, "enablenumatopology", "neither true nor false"),
        ({"name": "n", "filterdevices": []}, "filterdevices", "must be an object"),
        ({"name": "n", "filterdevices": {"uuid": "a"}}, "filterdevices.uuid", "is not a list"),
        ({"name": "n", "filterdevices": {"index": [1, -1]}}, "filterdevices.index[1]", "0..2147483647"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(entry: dict[str, Any], field: str, problem: str) -> None:
    with pytest.raises(BadInput) as caught:
        nodes.read_overrides(json.dumps({"nodeconfig": [{"name": "fine"}, entry]}))
    assert caught.value.field == f"nodeconfig[1].{field}"
    assert problem in caught.value.problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nodeconfig: []", "is not JSON"),
        ("", "is not JSON"),
        ("[]", "must be an object"),
        ('{"nodeconfig": {}}', "is not a list"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_a_text_that_is_no_such_file(text: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        nodes.read_overrides(text)


def test_an_entry_changes_its_node_only() -> None:
    section = Nvidia(split_count=10, memory_scaling=1.0, core_scaling=1.0, has_numa=True)
    overrides = (NodeOverride("a", nodes.MIG, memory_scaling=2.0), NodeOverride("b", nodes.MPS))
    assert nodes.find_settings(section, overrides, "c").mode == nodes.HAMI_CORE
    changed = nodes.find_settings(section, overrides, "a")
    assert (changed.mode, changed.memory_scaling, changed.split_count) == (nodes.MIG, 2.0, 10)
    # False takes nothing back.
    assert changed.has_numa


ENTRIES = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "b"])},
    optional={
        "operatingmode": st.sampled_from(["", *nodes.MODES]),
        "devicesplitcount": st.integers(0, 9),
        "devicememoryscaling": st.sampled_from([0, 0.5, 1, 2.0]),
        "devicecorescaling": st.sampled_from([0, 0.5, 1, 2.0]),
        "preconfigureddevicememory": st.integers(0, 2),
        "libcudaloglevel": st.sampled_from(["", "0", "3"]),
        "enablenumatopology": st.booleans(),
        "enablegetpreferredallocation": st.booleans(),
        "filterdevices": st.none() | st.fixed_dictionaries(
            {},
            optional={
                "uuid": st.lists(st.sampled_from("xyz"), max_size=2),
                "index": st.lists(st.integers(0, 3), max_size=2),
            },
        ),
    },
)  # fmt: skip
SECTIONS = st.fixed_dictionaries(
    {"resourceCountName": st.just("a.b/c")},
    optional={
        "deviceSplitCount": st.integers(1, 9),
        "deviceMemoryScaling": st.sampled_from([0.5, 1, 2.0]),
        "deviceCoreScaling": st.sampled_from([0.5, 1, 2.0]),
        "preConfiguredDeviceMemory": st.integers(0, 2),
        "libCudaLogLevel": st.sampled_from(["", "0", "3"]),
        "enableNumaTopology": st.booleans(),
    },
)


@settings(max_examples=slices.count_examples(200), derandomize=True, database=None, deadline=None)
@given(section=SECTIONS, entries=st.lists(ENTRIES, max_size=4))
def test_settings_are_merged_as_upstream_merges_them(
    section: dict[str, Any], entries: list[dict[str, Any]]
) -> None:
    nvidia = reading.read_config(yaml.safe_dump({"nvidia": section})).nvidia
    overrides = nodes.read_overrides(json.dumps({"nodeconfig": entries}))
    for node in ("a", "b", "c"):
        found = nodes.find_settings(nvidia, overrides, node)
        wanted = twin.merge(section, entries, node)
        assert found == (
            wanted["operatingmode"],
            wanted["devicesplitcount"],
            wanted["devicememoryscaling"],
            wanted["devicecorescaling"],
            wanted["preconfigureddevicememory"],
            wanted["libcudaloglevel"],
            wanted["enablenumatopology"],
            wanted["uuid"],
            wanted["index"],
            wanted["prefers"],
        )
