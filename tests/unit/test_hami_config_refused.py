"""A mistake in HAMi's device configuration is named by section and field, whatever the text is."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api.hami_config import nodes, reading
from scheduler.errors import BadInput
from tests import slices
from tests.unit import test_hami_config

CHIP = "vnpus: {configs: [{commonWord: a"
MIG = "nvidia: {migProfileAllowlist: [{models: [A30], profiles: "
CUT = "nvidia: {knownMigGeometries: [{models: [A30], allowedGeometries: [[{name: 1g.6gb, memory: "
NAME = "is not the name of an extended resource"


@pytest.mark.parametrize(
    ("text", "field", "problem"),
    [
        ("", "", "sets nothing; allowed are the sections nvidia, cambricon"),
        ("fpgas: {}", "", "sets nothing"),
        ("vnpus: {hamiVnpuCore: true}", "", "sets nothing"),
        ("[1]", "", "must be an object"),
        ("a: b: c", "", "line 1, column 5"),
        ("nvidia: {{ .Values.x }}", "", "template of Helm"),
        ("nvidia: []", "nvidia", "must be an object"),
        ("nvidia: {resourceCountName: gpu}", "nvidia.resourceCountName", NAME),
        ("nvidia: {resourceCountName: a.b/}", "nvidia.resourceCountName", NAME),
        ("nvidia: {resourceCountName: a.b/c/d}", "nvidia.resourceCountName", NAME),
        ("nvidia: {resourceCountName: A.b/c}", "nvidia.resourceCountName", NAME),
        ("nvidia: {resourceCountName: kubernetes.io/c}", "nvidia.resourceCountName", NAME),
        ("nvidia: {resourceCountName: node.kubernetes.io/c}", "nvidia.resourceCountName", NAME),
        ("nvidia: {resourceCountName: requests.a.b/c}", "nvidia.resourceCountName", NAME),
        (f"nvidia: {{resourceCountName: a.b/{'c' * 64}}}", "nvidia.resourceCountName", NAME),
        ('nvidia: {resourceCountName: "a.b/c\\n"}', "nvidia.resourceCountName", NAME),
        ("nvidia: {resourceCountName: true}", "nvidia.resourceCountName", "True is not a text"),
        ("nvidia: {resourceCountName: [a/b]}", "nvidia.resourceCountName", "is not a text"),
        ("nvidia: {memoryFactor: -1}", "nvidia.memoryFactor", "-1 is not an integer within 0..2147483647"),
        ("nvidia: {defaultMemory: 1.5}", "nvidia.defaultMemory", "1.5 is not an integer"),
        ("nvidia: {defaultMemory: '1'}", "nvidia.defaultMemory", "'1' is not an integer"),
        ("nvidia: {defaultMemory: 2147483648}", "nvidia.defaultMemory", "0..2147483647"),
        ("nvidia: {defaultMemory: .inf}", "", "inf is not a number"),
        ("nvidia: {defaultCores: 101}", "nvidia.defaultCores", "within 0..100"),
        ("nvidia: {overwriteEnv: 'false'}", "nvidia.overwriteEnv", "'false' is neither true nor false"),
        ("nvidia: {overwriteEnv: 1}", "nvidia.overwriteEnv", "neither true nor false"),
        ("nvidia: {deviceSplitCount: 0}", "nvidia.deviceSplitCount", "within 1..2147483647"),
        ("nvidia: {deviceMemoryScaling: 0}", "nvidia.deviceMemoryScaling", "above 0"),
        ("nvidia: {deviceMemoryScaling: -2}", "nvidia.deviceMemoryScaling", "above 0"),
        ("nvidia: {deviceCoreScaling: 1001}", "nvidia.deviceCoreScaling", "up to 1000"),
        ("nvidia: {deviceCoreScaling: .nan}", "", "nan is not a number"),
        ("nvidia: {deviceCoreScaling: true}", "nvidia.deviceCoreScaling", "True is not a number"),
        ("nvidia: {migProfileAllowlist: {}}", "nvidia.migProfileAllowlist", "is not a list"),
        ("nvidia: {migProfileAllowlist: [{profiles: [1g.1gb]}]}", "nvidia.migProfileAllowlist[0].models", "is required"),
        (f"{MIG}[]}}]}}", "nvidia.migProfileAllowlist[0].profiles", "must not be empty"),
        (f"{MIG}[1g.6gb, g.1]}}]}}", "nvidia.migProfileAllowlist[0].profiles[1]", "'g.1' is not a MIG profile, such as 1g.10gb"),
        (f"{MIG}1g.6gb}}]}}", "nvidia.migProfileAllowlist[0].profiles", "is not a list"),
        (f"{CUT}0, count: 1}}]]}}]}}", "nvidia.knownMigGeometries[0].allowedGeometries[0][0].memory", "1..2147483647"),
        (f"{CUT}9}}]]}}]}}", "nvidia.knownMigGeometries[0].allowedGeometries[0][0].count", "is required"),
        (f"{CUT}9, count: 1, core: 101}}]]}}]}}", "nvidia.knownMigGeometries[0].allowedGeometries[0][0].core", "0..100"),
        (f"{CUT}9, count: 9}}]]}}]}}", "nvidia.knownMigGeometries[0].allowedGeometries[0]", "has 9 instances; at most 8 are allowed on a GPU"),
        (f"{CUT}9, count: 1}}]{', []' * 20}]}}]}}", "nvidia.knownMigGeometries[0].allowedGeometries", "has 21 geometries with 1 sizes; at most 20 geometries and 16 sizes are allowed for a model"),
        ("hygon: {memoryFactor: x}", "hygon.memoryFactor", "'x' is not an integer"),
        ("metax: {sgpuTopologyAware: 5}", "metax.sgpuTopologyAware", "neither"),
        ("enflame: {resourceNameVGCU: x}", "enflame.resourceNameVGCU", NAME),
        ("iluvatars: {}", "iluvatars", "is not a list"),
        ("iluvatars: [5]", "iluvatars[0]", "must be an object"),
        ("iluvatars: [{chipName: a}]", "iluvatars[0].commonWord", "is required"),
        ("iluvatars: [{commonWord: a b}]", "iluvatars[0].commonWord", "letters, digits"),
        (f"iluvatars: [{{commonWord: {'a' * 43}}}]", "iluvatars[0].commonWord", "1 to 42"),
        ("iluvatars: [{commonWord: a}, {commonWord: a}]", "iluvatars[1].commonWord", "a is already iluvatars[0].commonWord"),
        ("iluvatars: [{commonWord: XPU}]", "iluvatars[0].commonWord", "XPU is already a word of HAMi's"),
        (f"iluvatars: [{{commonWord: a}}]\n{CHIP}}}]}}", "vnpus.configs[0].commonWord", "a is already iluvatars[0].commonWord"),
        (f"{CHIP}, memoryCapacity: -1}}]}}", "vnpus.configs[0].memoryCapacity", "0..2147483647"),
        (f"{CHIP}, templates: [{{name: t}}]}}]}}", "vnpus.configs[0].templates[0].memory", "is required"),
        (f"{CHIP}, templates: [{{memory: 5}}]}}]}}", "vnpus.configs[0].templates[0].name", "is required"),
        (f"{CHIP}, superPod: maybe}}]}}", "vnpus.configs[0].superPod", "neither"),
        ("vnpus: {hamiVnpuCore: 5, configs: []}", "vnpus.hamiVnpuCore", "neither"),
        ("vnpus: [{commonWord: a}, {}]", "vnpus[1].commonWord", "is required"),
        ("vnpus: [{commonWord: a}, {commonWord: a}]", "vnpus[1].commonWord", "a is already vnpus[0].commonWord"),
        ("vnpus: 5", "vnpus", "must be an object"),
        ("nvidia: {resourceCountName: a/b, resourceCoreName: a/b}", "nvidia.resourceCoreName", "a/b is already nvidia.resourceCountName; each resource has its own name"),
        (f"amd: {{resourceCountName: a/b}}\n{CHIP}, resourceName: a/b}}]}}", "vnpus.configs[0].resourceName", "a/b is already amd.resourceCountName"),
        ("amd: {resourceCountName: enflame.com/drs-gcu}", "amd.resourceCountName", "enflame.com/drs-gcu is already enflame.resourceNameDRSGCU"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(text: str, field: str, problem: str) -> None:
    with pytest.raises(BadInput) as caught:
        reading.read_config(text)
    assert caught.value.field == field
    assert problem in caught.value.problem


def test_a_text_that_unfolds_without_end_is_refused() -> None:
    bomb = "a0: &a0 [x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)
    )
    with pytest.raises(BadInput, match="aliases repeat more than"):
        reading.read_config(bomb + "nvidia: {defaultCores: 5}")
    with pytest.raises(BadInput, match="nested more than"):
        reading.read_config(f"nvidia: {'[' * 500}{']' * 500}")


def test_a_text_that_is_too_long_is_refused() -> None:
    long = "#" + "x" * reading.TEXT_MAX
    for read in (reading.read_config, nodes.read_overrides):
        with pytest.raises(BadInput, match="at most 1048576 are allowed"):
            read(long)
    many = {"iluvatars": [{"commonWord": f"w{i}"} for i in range(1001)]}
    with pytest.raises(BadInput, match="has 1001 entries; at most 1000"):
        reading.read_config(json.dumps(many))


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["a.b/c", "nvidia.com/gpu", "XPU", "10", "true"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def _list_paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [path, *(one for key, held in inner for one in _list_paths(held, (*path, key)))]


def garble(raw: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a copy with another value in one place."""
    if not path:
        return value
    changed = copy.deepcopy(raw)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return changed


def check_answer(read: Callable[[str], object], text: str) -> None:
    """Check that a text is read, or that the error tells a problem on one line."""
    try:
        read(text)
    except BadInput as error:
        said = str(error)
    else:
        said = "read"
    assert said.strip()
    assert "\n" not in said


WHOLE = yaml.safe_load(test_hami_config.CHART)
WHOLE_PATHS = _list_paths(WHOLE)
OVERRIDES = {
    "nodeconfig": [
        {
            "name": "n1",
            "operatingmode": "mig",
            "devicememoryscaling": 2,
            "devicecorescaling": 1.5,
            "devicesplitcount": 5,
            "preconfigureddevicememory": 5,
            "libcudaloglevel": "3",
            "enablenumatopology": True,
            "migstrategy": "none",
            "filterdevices": {"uuid": ["a"], "index": [1]},
            "enablegetpreferredallocation": True,
        }
    ]
}


@settings(max_examples=slices.count_examples(200), derandomize=True, database=None, deadline=None)
@given(path=st.sampled_from(WHOLE_PATHS), value=VALUES)
def test_a_garbled_value_is_read_or_named(path: tuple[Any, ...], value: Any) -> None:
    text = yaml.safe_dump(garble(WHOLE, path, value), allow_unicode=True)
    check_answer(reading.read_config, text)


@settings(max_examples=slices.count_examples(200), derandomize=True, database=None, deadline=None)
@given(path=st.sampled_from(_list_paths(OVERRIDES)), value=VALUES)
def test_a_garbled_override_is_read_or_named(path: tuple[Any, ...], value: Any) -> None:
    text = json.dumps(garble(OVERRIDES, path, value))
    check_answer(nodes.read_overrides, text)


@settings(max_examples=slices.count_examples(200), derandomize=True, database=None, deadline=None)
@given(
    at=st.integers(0, len(test_hami_config.CHART)), gone=st.integers(0, 40), put=st.text(max_size=8)
)
def test_a_garbled_text_is_read_or_named(at: int, gone: int, put: str) -> None:
    text = test_hami_config.CHART
    check_answer(reading.read_config, text[:at] + put + text[at + gone :])


@settings(max_examples=slices.count_examples(100), derandomize=True, database=None, deadline=None)
@given(st.text(st.characters(), max_size=30))
def test_any_text_is_read_or_named(text: str) -> None:
    for read in (reading.read_config, nodes.read_overrides):
        for given_text in (text, f"{{{text}", f'{{"nvidia": "{text}'):
            check_answer(read, given_text)
