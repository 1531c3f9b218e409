"""What a pod asks of GPUs, read as HAMi's webhook and scheduler read it."""

from typing import Any

import pytest

from scheduler.api import names
from scheduler.api.pods import gpus
from scheduler.api.pods.gpus import ContainerAsk, ContainerKind
from scheduler.errors import BadInput
from tests import make


def slot(**figures: Any) -> ContainerAsk:
    """The request of a pod's only container."""
    asked = gpus.read_ask(make.pod(**figures))
    assert asked is not None
    (only,) = asked.containers
    return only


@pytest.mark.parametrize(
    ("figures", "cards", "mem_mib", "mem_percent", "cores"),
    [
        pytest.param({}, 1, 0, 100, 100, id="bare: a whole card, exclusive"),
        pytest.param({"gpumem_percent": 100}, 1, 0, 100, 100, id="all memory: exclusive"),
        pytest.param({"gpumem": 3000, "gpumem_percent": 100}, 1, 3000, 0, 100, id="both, all memory: MiB, exclusive"),
        pytest.param({"gpumem": 3000}, 1, 3000, 0, 0, id="MiB only: no core limit"),
        pytest.param({"gpumem_percent": 50}, 1, 0, 50, 0, id="half the memory: no core limit"),
        pytest.param({"gpumem": 3000, "gpumem_percent": 50}, 1, 3000, 0, 0, id="both: MiB win"),
        pytest.param({"gpucores": 30}, 1, 0, 100, 30, id="cores only: all memory"),
        pytest.param({"gpucores": 0}, 1, 0, 100, 0, id="0 cores is an answer, so not exclusive"),
        pytest.param({"gpucores": 101}, 1, 0, 100, 100, id="cores above 100 are lowered"),
        pytest.param({"gpumem": 0}, 1, 0, 100, 0, id="0 MiB: all memory, not exclusive"),
        pytest.param({"gpumem_percent": 0}, 1, 0, 100, 0, id="0 percent is ignored, not exclusive"),
        pytest.param({"gpumem": "3k"}, 1, 3000, 0, 0, id="as the API server writes 3000"),
        pytest.param({"gpu": 4, "gpumem": "3000"}, 4, 3000, 0, 0, id="four cards"),
    ],
)  # fmt: skip
def test_what_is_left_out_is_filled_in_as_hamis_webhook_does(
    figures: dict[str, Any], cards: int, mem_mib: int, mem_percent: int, cores: int
) -> None:
    assert slot(**({"gpu": 1} | figures)) == ContainerAsk(
        ContainerKind.APP, cards, mem_mib, mem_percent, cores
    )


def test_limits_win_over_requests_and_requests_alone_will_do() -> None:
    both = make.container(
        requests={names.GPU: 1, names.GPU_MEMORY: 1000},
        limits={names.GPU: 2, names.GPU_MEMORY: 2000},
    )
    only_requests = make.container(requests={names.GPU: 3, names.GPU_MEMORY: 1000})
    assert slot(containers=[both])[1:3] == (2, 2000)
    assert slot(containers=[only_requests])[1:3] == (3, 1000)


def test_a_pod_without_gpus_asks_nothing() -> None:
    assert gpus.read_ask(make.pod(cpu=1)) is None
    assert gpus.read_ask(make.pod(gpu=0)) is None
    assert gpus.read_ask(make.pod(gpu=0, gpumem=0)) is None


def test_all_cores_that_hamis_webhook_adds_to_0_cards_are_none() -> None:
    assert gpus.read_ask(make.pod(gpu=0, gpucores=100)) is None
    for asked in (
        make.pod(gpu=0, gpucores=50),
        make.pod(gpu=0, gpucores=100, gpumem=1),
    ):
        with pytest.raises(BadInput):
            gpus.read_ask(asked)


def test_every_container_has_a_slot_init_first_and_sidecars_known() -> None:
    asked = gpus.read_ask(
        make.pod(
            init_containers=[
                make.container(name="init", gpu=1, gpumem=100),
                make.container(name="side", gpu=1, gpumem=200, sidecar=True),
            ],
            containers=[make.container(name="plain", cpu=1), make.container(name="gpu", gpu=2)],
        )
    )
    assert asked is not None
    assert asked.containers == (
        ContainerAsk(ContainerKind.INIT, 1, 100, 0, 0),
        ContainerAsk(ContainerKind.SIDECAR, 1, 200, 0, 0),
        ContainerAsk(ContainerKind.APP),
        ContainerAsk(ContainerKind.APP, 2, 0, 100, 100),
    )
    assert sum(slot.cards for slot in asked.containers) == 4


@pytest.mark.parametrize(
    ("figures", "resource"),
    [
        pytest.param({"gpu": 1, "gpumem": "16Gi"}, names.GPU_MEMORY, id="16Gi is not MiB"),
        pytest.param({"gpu": 1, "gpumem": "1500m"}, names.GPU_MEMORY, id="thousandths"),
        pytest.param({"gpu": 1, "gpumem": 2**31}, names.GPU_MEMORY, id="beyond int32"),
        pytest.param({"gpu": 1, "gpumem": "-1"}, names.GPU_MEMORY, id="negative MiB"),
        pytest.param({"gpu": 1, "gpumem": "1.5"}, names.GPU_MEMORY, id="a fraction"),
        pytest.param({"gpu": 1, "gpumem_percent": 101}, names.GPU_MEMORY_PERCENT, id="101 percent"),
        pytest.param({"gpu": 1, "gpumem_percent": "-1"}, names.GPU_MEMORY_PERCENT, id="-1 percent"),
        pytest.param({"gpu": 1, "gpucores": "half"}, names.GPU_CORES, id="a word"),
        pytest.param({"gpu": "1.5"}, names.GPU, id="a card and a half"),
        pytest.param({"gpumem": 3000}, names.GPU_MEMORY, id="memory without a card"),
        pytest.param({"gpucores": 30}, names.GPU_CORES, id="cores without a card"),
        pytest.param({"gpu": 0, "gpumem_percent": 5}, names.GPU_MEMORY_PERCENT, id="percent of 0 cards"),
    ],
)  # fmt: skip
def test_a_figure_that_hami_would_read_as_nothing_is_refused_by_field(
    figures: dict[str, Any], resource: str
) -> None:
    """HAMi would place such a pod without any GPU, or never; its owner should hear of it."""
    second = make.container(name="second", **figures)
    with pytest.raises(BadInput) as raised:
        gpus.read_ask(make.pod(containers=[make.container(), second]))
    assert raised.value.field == f"spec.containers[1].resources.limits[{resource}]"
    with pytest.raises(BadInput) as raised:
        gpus.read_ask(make.pod(init_containers=[second]))
    assert raised.value.field == f"spec.initContainers[0].resources.limits[{resource}]"


def test_a_refused_request_becomes_the_pods_problem_and_nothing_is_placed() -> None:
    cluster = make.cluster(
        nodes=[make.hami_node(cards=2)], pods=[make.pod(gpu=1, gpumem="16Gi", name="wrong")]
    )
    outcome = make.cycle(cluster=cluster).schedule(list(cluster.pods.values()))
    assert not outcome.binds
    (hold,) = outcome.holds
    assert hold.problem is not None
    assert hold.problem.field == "spec.containers[0].resources.limits[nvidia.com/gpumem]"


def test_card_wishes_are_read_from_annotations_with_blanks_and_empty_words_dropped() -> None:
    asked = gpus.read_ask(
        make.pod(
            gpu=1,
            annotations={
                names.USE_TYPE: "a10g, T4,",
                names.NOUSE_TYPE: "  ",
                names.USE_UUID: " GPU-a ,GPU-b",
                names.NOUSE_UUID: "gpu-C",
                names.VGPU_MODE: "hami-core",
            },
        )
    )
    assert asked is not None
    assert asked.use_types == ("A10G", "T4")
    assert asked.nouse_types == ()
    assert asked.use_uuids == ("GPU-a", "GPU-b")
    assert asked.nouse_uuids == ("gpu-C",)
    assert asked.vgpu_mode == "hami-core"


@pytest.mark.parametrize(
    ("text", "numa_bind"),
    [
        ("1", True), ("t", True), ("T", True), ("true", True), ("TRUE", True), ("True", True),
        ("0", False), ("f", False), ("false", False), ("", False), ("yes", False), ("tRUE", False),
        (" true", False),
    ],
)  # fmt: skip
def test_numa_bind_is_gos_parse_bool_and_bad_text_is_false(text: str, *, numa_bind: bool) -> None:
    asked = gpus.read_ask(make.pod(gpu=1, annotations={names.NUMA_BIND: text}))
    assert asked is not None
    assert asked.numa_bind == numa_bind
