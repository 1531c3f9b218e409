"""The pods and nodes of the twins as objects of the API server."""

from itertools import permutations
from typing import Any

from scheduler.api import names, wire
from tests import make
from tests.oracles import fleet, hami


def claim(node: fleet.Node, pod: fleet.Pod, charge: fleet.Charge) -> str:
    """What HAMi would write of a pod that is charged so: which container has which card."""
    assert pod.gpu
    cards = {card.uuid: card for card in node.cards}
    taken = [uuid for uuid, (slots, *_) in charge.items() for _ in range(slots)]
    for order in permutations(taken):
        left = iter(order)
        slots = [[next(left) for _ in range(one.nums)] for one in pod.gpu.containers]
        sums: fleet.Charge = {}
        text = ""
        for one, uuids in zip(pod.gpu.containers, slots, strict=True):
            for uuid in uuids:
                mib, before = hami.memory_asked(cards[uuid], one), sums.get(uuid, (0, 0, 0))
                sums[uuid] = (before[0] + 1, before[1] + mib, before[2] + one.cores)
                text += f"{uuid},NVIDIA,{mib},{one.cores}:"
            text += ";"
        if sums == charge:
            return text
    raise AssertionError(f"{pod} is never charged {charge}")


def wire_pod(pod: fleet.Pod, name: str, mode: str, node: str, claim: str) -> wire.Pod:
    annotations = {names.MODE: mode} if mode else {}
    containers = [make.container(cpu=f"{pod.cpu}m", memory=pod.memory)]
    if pod.gpu:
        asked = {
            names.HAMI_GPU_POLICY: pod.gpu.policy,
            names.USE_TYPE: pod.gpu.use_type,
            names.NOUSE_TYPE: pod.gpu.nouse_type,
            names.NUMA_BIND: "true" if pod.gpu.numa_bind else "",
        }
        annotations |= {key: value for key, value in asked.items() if value}
        containers = [
            make.container(
                name=f"c{i}",
                cpu=f"{pod.cpu}m" if i == 0 else None,
                memory=pod.memory if i == 0 else None,
                gpu=one.nums or None,
                gpumem=None if pod.bare else one.mem or None,
                gpumem_percent=None if pod.bare or one.mem or not one.nums else one.percent,
                gpucores=None if pod.bare or not one.nums else one.cores,
            )
            for i, one in enumerate(pod.gpu.containers)
        ]
    if claim:
        annotations |= {names.HAMI_NODE: node, names.HAMI_ALLOCATED: claim}
    return make.pod(
        name=name, node=node, containers=containers, annotations=annotations, spec=pod.spec
    )


def wire_node(node: fleet.Node) -> wire.Node:
    figures: dict[str, Any] = {
        "name": node.name,
        "cpu": f"{node.cpu}m",
        "memory": node.memory,
        "pods": node.pods,
        "labels": node.labels,
        "taints": [(t["key"], t["value"], t["effect"]) for t in node.taints],
        "unschedulable": node.cordoned,
    }
    if not node.managed:
        return make.node(gpus=node.gpus, **figures)
    cards = [
        make.card(
            uuid=card.uuid, index=card.index, sharers=card.count, mib=card.mem, cores=card.cores,
            model=card.model, numa=card.numa, mode=card.mode, healthy=card.health,
        )
        for card in node.cards
    ]  # fmt: skip
    cordoned = [card.uuid for card in node.cards if card.cordoned]
    return make.hami_node(cards=cards, cordoned=cordoned, **figures)
