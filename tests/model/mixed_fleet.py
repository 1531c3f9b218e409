"""A fleet as people have it: 200 nodes, three kinds of shared cards, whole GPUs and none, most of it in use."""

from collections.abc import Iterator

from scheduler.api import names, wire
from tests import make

A10, A100 = "NVIDIA-NVIDIA A10", "NVIDIA-NVIDIA A100-PCIE-40GB"
N_NODES = 200


def nodes() -> Iterator[wire.Node]:
    """``node-0`` to ``node-199``: 60 with T4s, 40 with A10s, 20 with A100s and a taint, 30 with whole GPUs."""
    for i in range(N_NODES):
        name = f"node-{i}"
        if i < 60:
            yield make.hami_node(name=name, cpu=32, memory="128Gi", cards=4)
        elif i < 100:
            a10s = [
                make.card(
                    uuid=f"{name}-GPU-{k}", index=k, mib=24258, model=A10, healthy=i % 7 > 0 or k > 0
                )
                for k in range(i % 3 + 2)
            ]  # fmt: skip
            yield make.hami_node(name=name, cpu=64, memory="256Gi", cards=a10s)
        elif i < 120:
            a100s = make.cards(count=8, prefix=f"{name}-GPU", mib=40960, model=A100)
            taint = ("team", "research", "NoSchedule")
            yield make.hami_node(name=name, cpu=96, memory="768Gi", cards=a100s, taints=[taint])
        elif i < 150:
            yield make.node(name=name, cpu=16, memory="64Gi", gpus=i % 4 + 1)
        else:
            yield make.node(name=name, unschedulable=i > 195)


def running() -> Iterator[wire.Pod]:
    """A pod on nearly every node, on the T4s one that fills a card."""
    for i in range(195):
        if i < 60:
            held = f"node-{i}-GPU-{i % 4},NVIDIA,15000,100:;"
            notes = {names.HAMI_NODE: f"node-{i}", names.HAMI_ALLOCATED: held}
            yield make.pod(
                name=f"on-{i}", node=f"node-{i}", gpu=1, gpumem=15000, gpucores=100,
                annotations=notes, cpu=2,
            )  # fmt: skip
        else:
            yield make.pod(name=f"on-{i}", node=f"node-{i}", cpu=f"{500 + 37 * i}m", memory="9Gi")


def pending() -> Iterator[wire.Pod]:
    """Twelve pods that find no place, each for a reason of its own."""
    research = [{"key": "team", "operator": "Exists"}]
    fpga, amd = {"example.com/fpga": "1"}, {"amd.com/gpu": "1"}
    a10, t4 = {names.USE_TYPE: "A10"}, {names.USE_TYPE: "T4"}
    yield make.pod(name="memory-of-cards", gpu=1, gpumem=48000)
    yield make.pod(name="memory-of-any-card", gpu=1, gpumem=48000, tolerations=research)
    yield make.pod(name="cores-and-count", gpu=4, gpumem=1000, gpucores=90, annotations=t4)
    yield make.pod(name="many-cards", gpu=8)
    yield make.pod(name="more-than-any", gpu=16, tolerations=research)
    yield make.pod(name="model", gpu=1, gpumem=1, annotations={names.USE_TYPE: "H100,H200"})
    yield make.pod(name="card-by-name", gpu=1, gpumem=13000, annotations=a10 | {names.USE_UUID: "node-3-GPU-1"})  # fmt: skip
    yield make.pod(name="cpu", cpu=200)
    yield make.pod(name="memory", cpu=1, memory="1Ti")
    yield make.pod(name="disk", cpu=1, requests={names.EPHEMERAL: "10Gi"})
    yield make.pod(name="fpga", requests=fpga, limits=fpga)
    yield make.pod(name="other-vendor", requests=amd, limits=amd)
