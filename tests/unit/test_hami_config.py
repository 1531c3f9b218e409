"""HAMi's device configuration: what each section of ``device-config.yaml`` says, and what absence means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.api.hami_config import chart, reading
from scheduler.api.hami_config.sections import (
    Ascend,
    DeviceConfig,
    Enflame,
    Geometries,
    Instances,
    Kunlun,
    Metax,
    Nvidia,
    Profiles,
    Shares,
    Template,
)

DATA = Path(__file__).parents[1] / "data/hami"
CHART = (DATA / "config/chart-2.10.yaml").read_text(encoding="utf-8")
VENDORS = sorted((DATA / "vendors").glob("*.yaml"))


def read(**sections: Any) -> DeviceConfig:
    return reading.read_config(yaml.safe_dump(sections))


def test_what_the_chart_renders_is_what_counts_without_a_file() -> None:
    assert reading.read_config(CHART) == chart.CHART


def test_an_absent_value_has_no_name_and_is_zero_or_false() -> None:
    """As in HAMi: the names that its chart writes are not defaults of its reader."""
    assert read(nvidia={"resourceCountName": "a.b/c"}) == DeviceConfig(nvidia=Nvidia(cards="a.b/c"))
    assert read(amd={"resourceCountName": "a.b/c"}).amd == Shares("a.b/c")


def test_a_null_is_an_absent_value() -> None:
    given = "nvidia: {resourceCountName: a.b/c, defaultCores: , migProfileAllowlist: ~}\nhygon:\nvnpus:\niluvatars:\n"
    assert reading.read_config(given) == read(nvidia={"resourceCountName": "a.b/c"})


def test_unknown_keys_are_ignored() -> None:
    given = {"resourceCountName": "a.b/c", "resourceColorName": 5}
    assert read(nvidia=given, fpgas=[1], version="v9") == read(nvidia={"resourceCountName": "a.b/c"})  # fmt: skip


def test_every_key_of_nvidias_section() -> None:
    given = read(
        nvidia={
            "resourceCountName": "n.com/count", "resourceMemoryName": "n.com/memory",
            "resourceMemoryPercentageName": "n.com/percent", "resourceCoreName": "n.com/cores",
            "resourcePriorityName": "n.com/priority", "memoryFactor": 1024, "defaultMemory": 7,
            "defaultCores": 8, "defaultGPUNum": 2, "overwriteEnv": True, "gpuCorePolicy": "force",
            "runtimeClassName": "nvidia", "deviceSplitCount": 4, "deviceMemoryScaling": 1.5,
            "deviceCoreScaling": 2, "preConfiguredDeviceMemory": 9, "libCudaLogLevel": 3,
            "enableNumaTopology": True, "disableCoreLimit": True,
            "migProfileAllowlist": [{"models": ["A30", "A31"], "profiles": ["1g.6gb", "1g.6gb+me"]}],
        }
    )  # fmt: skip
    assert given.nvidia == Nvidia(
        cards="n.com/count",
        memory="n.com/memory",
        memory_percent="n.com/percent",
        cores="n.com/cores",
        priority="n.com/priority",
        factor=1024,
        default_mib=7,
        default_cores=8,
        default_count=2,
        hides_cards=True,
        core_policy="force",
        runtime_class="nvidia",
        split_count=4,
        memory_scaling=1.5,
        core_scaling=2.0,
        unified_mib=9,
        log_level="3",
        has_numa=True,
        ignores_cores=True,
        profiles=(Profiles(("A30", "A31"), ("1g.6gb", "1g.6gb+me")),),
    )


@pytest.mark.parametrize("cores", [{"core": 14}, {}])
def test_geometries_of_older_versions(cores: dict[str, int]) -> None:
    """HAMi 2.7 and before did not tell the cores of an instance."""
    known = {
        "models": ["A100-SXM4-40GB"],
        "allowedGeometries": [
            [{"name": "1g.5gb", "memory": 5120, "count": 7, **cores}],
            [
                {"name": "1g.5gb", "memory": 5120, "count": 1, **cores},
                {"name": "2g.10gb", "memory": 10240, "count": 3},
            ],
        ],
    }
    small = Instances("1g.5gb", 5120, 7, cores.get("core", 0))
    mixed = (small._replace(number=1), Instances("2g.10gb", 10240, 3))
    found = read(nvidia={"resourceCountName": "a.b/c", "knownMigGeometries": [known]})
    assert found.nvidia.geometries == (Geometries(("A100-SXM4-40GB",), ((small,), mixed)),)


def test_the_sections_of_the_other_vendors() -> None:
    found = read(
        hygon={"resourceCountName": "h/c", "resourceMemoryName": "h/m", "memoryFactor": 2},
        metax={
            "resourceCountName": "m/c", "resourceVCountName": "m/vc", "resourceVMemoryName": "m/vm",
            "resourceVCoreName": "m/vk", "sgpuTopologyAware": True,
        },
        kunlun={"resourceCountName": "k/c", "resourceVCountName": "k/vc", "resourceVMemoryName": "k/vm"},
        awsneuron={"resourceCountName": "a/c", "resourceMemoryName": "a/m", "resourceCoreName": "a/k"},
        biren={"resourceCountName": "b/c", "resourceCoreName": "b/k"},
    )  # fmt: skip
    assert found.hygon == Shares("h/c", "h/m", "", 2)
    assert found.metax == Metax("m/c", "m/vc", "m/vm", "m/vk", is_topology_aware=True)
    assert found.kunlun == Kunlun("k/c", "k/vc", "k/vm")
    # Neuron has no resource of memory, and Biren counts only.
    assert found.awsneuron == Shares("a/c", cores="a/k")
    assert found.biren == Shares("b/c")


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ({"resourceNameGCU": "e/g"}, "enflame.com/drs-gcu"),
        ({"resourceNameGCU": "e/g", "resourceNameDRSGCU": ""}, "enflame.com/drs-gcu"),
        ({"resourceNameGCU": "e/g", "resourceNameVGCU": "e/old"}, "e/old"),
        ({"resourceNameGCU": "e/g", "resourceNameDRSGCU": "", "resourceNameVGCU": "e/old"}, "e/old"),
        ({"resourceNameGCU": "e/g", "resourceNameDRSGCU": "e/new", "resourceNameVGCU": "e/old"}, "e/new"),
        ({"resourceNameGCU": "e/g", "resourceNameDRSGCU": "e/new", "resourceNameVGCU": "e/new"}, "e/new"),
    ],
)  # fmt: skip
def test_enflames_names_have_defaults_and_an_older_one_stands_in(
    given: dict[str, str], size: str
) -> None:
    assert read(enflame=given).enflame == Enflame(cards="e/g", size=size)


def test_templates_are_sorted_by_memory() -> None:
    chip = {
        "commonWord": "Ascend310P",
        "memoryAllocatable": 21527,
        "memoryCapacity": 24576,
        "superPod": True,
        "templates": [{"name": "b", "memory": 20, "aiCPU": 2}, {"name": "a", "memory": 10}],
    }
    wanted = Ascend(
        "Ascend310P",
        whole_mib=21527,
        capacity_mib=24576,
        is_in_pairs=True,
        templates=(Template("a", 10), Template("b", 20, 0, 2)),
    )
    soft = read(vnpus={"hamiVnpuCore": True, "configs": [chip]})
    assert soft == DeviceConfig(vnpus=(wanted,), has_soft_split=True)
    # Up to HAMi 2.8 the section is the list.
    assert read(vnpus=[chip]) == DeviceConfig(vnpus=(wanted,))


def test_numbers_stand_for_texts_and_whole_floats_for_integers() -> None:
    found = reading.read_config("vnpus: [{commonWord: 910, chipName: 0x10, memoryCapacity: 1e3, aiCore: 2.0}]")  # fmt: skip
    assert found.vnpus == (Ascend("910", chip="16", capacity_mib=1000, ai_cores=2),)


def test_words_of_yaml_are_those_of_kubernetes() -> None:
    assert reading.read_config("nvidia: {overwriteEnv: on}").nvidia.hides_cards
    assert not reading.read_config("nvidia: {overwriteEnv: off, defaultCores: 1}").nvidia.hides_cards  # fmt: skip


def test_json_is_read_as_well() -> None:
    assert reading.read_config('{"amd": {"resourceCountName": "a/b"}}').amd.cards == "a/b"


@pytest.mark.parametrize("path", VENDORS, ids=lambda path: path.stem)
def test_the_sections_of_the_cases_of_vendors_can_be_read(path: Path) -> None:
    cases = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert read(**cases["config"]) != DeviceConfig()
