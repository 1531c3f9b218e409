"""What HAMi's chart writes into ``device-config.yaml`` where nobody has set anything.

Source: HAMi v2.10, the chart's ``device-configmap.yaml`` and ``values.yaml``.
"""

from __future__ import annotations

from scheduler.api import names
from scheduler.api.hami_config.sections import (
    Ascend,
    DeviceConfig,
    Enflame,
    Iluvatar,
    Kunlun,
    Metax,
    Nvidia,
    Profiles,
    Shares,
    Template,
)


def _make_profiles(models: str, profiles: str) -> Profiles:
    return Profiles(tuple(models.split(", ")), tuple(profiles.split()))


def _make_iluvatar(word: str) -> Iluvatar:
    kind = f"iluvatar.ai/{word}"
    return Iluvatar(word, word, f"{kind}-vgpu", f"{kind}.vMem", f"{kind}.vCore")


def _make_ascend(word: str, chip: str, mib: int, cores: int, cpus: int, *templates: Template) -> Ascend:  # fmt: skip
    kind = f"huawei.com/{word}"
    return Ascend(
        word=word,
        chip=chip,
        cards=kind,
        memory=f"{kind}-memory",
        cores=f"{kind}-core",
        factor=1,
        whole_mib=mib,
        capacity_mib=mib,
        ai_cores=cores,
        ai_cpus=cpus,
        templates=templates,
    )


_HALVES_OF_64 = Template("vir05_1c_16g", 16384, 5, 1), Template("vir10_3c_32g", 32768, 10, 3)

CHART = DeviceConfig(
    nvidia=Nvidia(
        cards=names.GPU,
        memory=names.GPU_MEMORY,
        memory_percent=names.GPU_MEMORY_PERCENT,
        cores=names.GPU_CORES,
        priority=names.GPU_PRIORITY,
        factor=1,
        default_count=1,
        core_policy="default",
        split_count=10,
        memory_scaling=1.0,
        core_scaling=1.0,
        log_level="1",
        profiles=(
            _make_profiles("A30", "1g.6gb 2g.12gb 4g.24gb"),
            _make_profiles(
                "A100-SXM4-40GB, A100-40GB-PCIe, A100-PCIE-40GB", "1g.5gb 2g.10gb 3g.20gb 7g.40gb"
            ),
            _make_profiles(
                "A100-SXM4-80GB, A100-80GB-PCIe, A100-PCIE-80GB", "1g.10gb 2g.20gb 3g.40gb 7g.79gb"
            ),
            _make_profiles("H100-PCIE-80GB, H100-SXM5-80GB", "1g.10gb 2g.20gb 3g.40gb 7g.80gb"),
            _make_profiles("H100-PCIE-94GB, H100-SXM5-94GB", "1g.12gb 2g.24gb 3g.47gb 7g.94gb"),
            _make_profiles("H20, H100 on GH200", "1g.12gb 2g.24gb 3g.48gb 7g.96gb"),
            _make_profiles("H200 NVL, H200-SXM5", "1g.18gb 2g.35gb 3g.71gb 7g.141gb"),
            _make_profiles("B200", "1g.23gb 2g.45gb 3g.90gb 7g.180gb"),
            _make_profiles("RTX PRO 6000 Blackwell Server Edition", "1g.24gb 2g.48gb 4g.96gb"),
        ),
    ),
    cambricon=Shares(
        "cambricon.com/vmlu", "cambricon.com/mlu.smlu.vmemory", "cambricon.com/mlu.smlu.vcore"
    ),
    hygon=Shares("hygon.com/dcunum", "hygon.com/dcumem", "hygon.com/dcucores", 1),
    metax=Metax(
        cards="metax-tech.com/gpu",
        share_count="metax-tech.com/sgpu",
        share_memory="metax-tech.com/vmemory",
        share_cores="metax-tech.com/vcore",
    ),
    mthreads=Shares("mthreads.com/vgpu", "mthreads.com/sgpu-memory", "mthreads.com/sgpu-core"),
    enflame=Enflame(cards="enflame.com/gcu"),
    kunlun=Kunlun("kunlunxin.com/xpu", "kunlunxin.com/vxpu", "kunlunxin.com/vxpu-memory"),
    awsneuron=Shares("aws.amazon.com/neuron", cores="aws.amazon.com/neuroncore"),
    amd=Shares(names.AMD_GPU, "amd.com/gpumem", "amd.com/gpucores"),
    vastai=Shares("vastaitech.com/va"),
    biren=Shares("birentech.com/gpu"),
    iluvatars=tuple(map(_make_iluvatar, ("MR-V100", "MR-V50", "BI-V150", "BI-V100"))),
    vnpus=(
        _make_ascend(
            "Ascend910A",
            "910A",
            32768,
            30,
            0,
            Template("vir02", 2184, 2),
            Template("vir04", 4369, 4),
            Template("vir08", 8738, 8),
            Template("vir16", 17476, 16),
        ),
        _make_ascend(
            "Ascend910B2",
            "910B2",
            65536,
            24,
            6,
            Template("vir03_1c_8g", 8192, 3, 1),
            Template("vir06_1c_16g", 16384, 6, 1),
            Template("vir12_3c_32g", 32768, 12, 3),
        ),
        _make_ascend("Ascend910B3", "910B3", 65536, 20, 7, *_HALVES_OF_64),
        _make_ascend("Ascend910B4-1", "910B4-1", 65536, 20, 7, *_HALVES_OF_64),
        _make_ascend(
            "Ascend910B4",
            "910B4",
            32768,
            20,
            7,
            Template("vir05_1c_8g", 8192, 5, 1),
            Template("vir10_3c_16g", 16384, 10, 3),
        ),
        _make_ascend(
            "Ascend310P",
            "310P3",
            21527,
            8,
            7,
            Template("vir01", 3072, 1, 1),
            Template("vir02", 6144, 2, 2),
            Template("vir04", 12288, 4, 4),
        )._replace(capacity_mib=24576),
        _make_ascend("Ascend910C", "Ascend910", 65536, 20, 7, *_HALVES_OF_64)._replace(
            factor=0, is_in_pairs=True
        ),
    ),
)
