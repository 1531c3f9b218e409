"""The published policies, one node at a time: whole scores 0..100.

Source: "Beware of Fragmentation" (USENIX ATC'23) and its artifact; the size of the largest node
stands where the artifact has the constants of its trace.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tests.oracles import fleet, fragments


@dataclass(frozen=True)
class Largest:
    """Most milli-CPU and most milli-GPU of any node."""

    cpu: int
    gpu: int


def largest(nodes: Sequence[fleet.Node]) -> Largest:
    return Largest(max(node.cpu for node in nodes), fleet.WHOLE * max(node.count for node in nodes))


def taken(node: fleet.Node, pod: fleet.Pod, charge: fleet.Charge) -> int:
    """Idle milli that the pod takes: what it asks, where cards have one dimension."""
    return sum(fleet.idles(node)) - sum(fleet.idles(fleet.placed(node, pod, charge)))


def dot_product(node: fleet.Node, pod: fleet.Pod, charge: fleet.Charge, most: Largest) -> int:
    cpu, gpu = max(1, most.cpu), max(1, most.gpu)
    product = (node.cpu - node.cpu_used) / cpu * (pod.cpu / cpu)
    product += sum(fleet.idles(node)) / gpu * (taken(node, pod, charge) / gpu)
    return int(100 * (1 - product / 2))


def best_fit(node: fleet.Node, pod: fleet.Pod, charge: fleet.Charge, most: Largest) -> int:
    cpu = (node.cpu - node.cpu_used - pod.cpu) / max(1, most.cpu)
    gpu = (sum(fleet.idles(node)) - taken(node, pod, charge)) / max(1, most.gpu)
    return int(100 * (1 - (0.5 * cpu + 0.5 * gpu)))


def gpu_packing(node: fleet.Node, pod: fleet.Pod, charge: fleet.Charge) -> int:
    if not pod.asking:
        return 0
    if all(idle == fleet.WHOLE for idle in fleet.idles(node)) and (
        node.managed or node.gpus_used == 0
    ):
        return max(33 - node.count, node.count)
    if not node.managed:
        return max(50 - pod.gpus, 33)
    idles = [fleet.idle(card) for card in node.cards if card.uuid in charge]
    opened = sum(idle == fleet.WHOLE for idle in idles)
    if opened:
        return max(50 - opened, 33)
    return max(100 - sum(idles) // 100, 50)


def gpu_clustering(node: fleet.Node, pod: fleet.Pod, most: Largest) -> int:
    if not pod.asking:
        return 0
    score = 25 * (most.gpu - sum(fleet.idles(node))) // most.gpu
    if not sum(node.sizes):
        return score + 25
    if not node.sizes[pod.size_class]:
        return score
    return score + (75 if node.sizes[pod.size_class] == sum(node.sizes) else 50)


def fgd(
    node: fleet.Node, pod: fleet.Pod, charge: fleet.Charge, typical: Sequence[fragments.Typical]
) -> int:
    after = fleet.placed(node, pod, charge)
    less = fragments.total(node, typical) - fragments.total(after, typical)
    return int(100 / (1 + math.exp(-less / fragments.STEPS / fleet.WHOLE)))


def scored(
    mode: str,
    node: fleet.Node,
    pod: fleet.Pod,
    most: Largest,
    typical: Sequence[fragments.Typical],
) -> list[tuple[int, fleet.Charge]]:
    """The pod's choices of cards by a policy, the best first, then as the cards lie; none: no fit."""
    if mode == "fgd":
        found = [
            (fgd(node, pod, charge, typical), charge)
            for charge in fleet.choices(node, pod, each=True)
        ]
        return sorted(found, key=lambda one: -one[0])
    return [
        (_score(mode, node, pod, charge, most), charge)
        for charge in fleet.choices(node, pod, each=False)
    ]


def _score(mode: str, node: fleet.Node, pod: fleet.Pod, charge: fleet.Charge, most: Largest) -> int:
    match mode:
        case "best-fit":
            return best_fit(node, pod, charge, most)
        case "dot-product":
            return dot_product(node, pod, charge, most)
        case "gpu-packing":
            return gpu_packing(node, pod, charge)
        case "gpu-clustering":
            return gpu_clustering(node, pod, most)
        case "first-fit":
            return 0
    raise AssertionError(mode)
