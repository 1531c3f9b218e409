"""Is anything over-allocated? Recomputed from API objects alone, by rules written down a second time.

Nothing of the scheduler is imported here, so that a mistake in how it reads or counts shows.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any

Json = dict[str, Any]

GPU = "nvidia.com/gpu"
HAMI_ONLY = {"nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"}
HAMI_ONLY |= {"hygon.com/dcumem", "hygon.com/dcucores"}
REGISTER = "hami.io/node-nvidia-register"
ALLOCATED = "hami.io/vgpu-devices-allocated"
TO_ALLOCATE = "hami.io/vgpu-devices-to-allocate"
LOCK = "hami.io/mutex.lock"
# What must be on a pod of ours from the moment it is on a node with HAMi's plugin.
WITH_NODE = (
    "hami.io/vgpu-node",
    "hami.io/vgpu-time",
    ALLOCATED,
    TO_ALLOCATE,
    "hami.io/bind-phase",
    "hami.io/bind-time",
)
_SUFFIXES: dict[str, Fraction | int] = {
    "m": Fraction(1, 1000),
    "k": 1000,
    "M": 10**6,
    "G": 10**9,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}


def problems(nodes: list[Json], pods: list[Json]) -> list[str]:
    """Everything that is wrong in a cluster, in words; empty when all is well."""
    found: list[str] = []
    by_node: dict[str, list[Json]] = defaultdict(list)
    for pod in pods:
        if pod["status"].get("phase") in {"Succeeded", "Failed"}:
            continue
        node = pod["spec"].get("nodeName")
        if node:
            by_node[node].append(pod)
        found += _pod_problems(pod, node)
    for node in nodes:
        there = by_node[node["metadata"]["name"]]
        found += _resource_problems(node, there) + _card_problems(node, there)
        found += _port_problems(node, there)
    return found


def locked(nodes: list[Json]) -> list[str]:
    """Nodes whose lock is still held."""
    return [n["metadata"]["name"] for n in nodes if LOCK in n["metadata"].get("annotations", {})]


def devices(pod: Json) -> list[list[tuple[str, int, int]]]:
    """What a pod holds: per container, (card, MiB, cores)."""
    text = pod["metadata"].get("annotations", {}).get(ALLOCATED, "")
    *slots, _ = text.split(";")
    return [
        [
            (record.split(",")[0], int(record.split(",")[2]), int(record.split(",")[3]))
            for record in slot.split(":")
            if record
        ]
        for slot in slots
    ]


def cards(node: Json) -> dict[str, Json]:
    """The cards of a node by their id; it must have announced them as JSON."""
    text = node["metadata"].get("annotations", {}).get(REGISTER, "[]")
    return {card["id"]: card for card in json.loads(text)} if text.startswith("[{") else {}


def _pod_problems(pod: Json, node: str | None) -> list[str]:
    name, annotations = pod["metadata"]["name"], pod["metadata"].get("annotations", {})
    conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions", ())}
    if pod["spec"]["schedulerName"] != "evenkeel":
        return []
    if node:
        ready = conditions.get("PodScheduled")
        return [] if ready == "True" else [f"{name} is on {node} and PodScheduled is {ready}"]
    return [f"{name} has no node, but {key}" for key in WITH_NODE if key in annotations]


def _resource_problems(node: Json, pods: list[Json]) -> list[str]:
    has = {name: read_number(text) for name, text in node["status"]["allocatable"].items()}
    asked: Counter[str] = Counter()
    for pod in pods:
        asked["pods"] += 1
        asked.update(requests(pod["spec"]))
    return [
        f"{node['metadata']['name']}: {float(amount)} of {name} asked, {float(has.get(name, 0))} there"
        for name, amount in asked.items()
        if amount > has.get(name, 0) and name not in HAMI_ONLY
    ]


def requests(spec: Json) -> Counter[str]:
    """What a pod is charged: the sum of its containers, or an init container if that is more."""
    total: Counter[str] = Counter()
    for one in spec["containers"]:
        total.update(_asked(one))
    sidecars: Counter[str] = Counter()
    highest: Counter[str] = Counter()
    for one in spec.get("initContainers", ()):
        if one.get("restartPolicy") == "Always":
            sidecars.update(_asked(one))
            total.update(_asked(one))
            highest |= sidecars
        else:
            highest |= sidecars + _asked(one)
    total |= highest
    total.update({name: read_number(text) for name, text in spec.get("overhead", {}).items()})
    return total


def _asked(container: Json) -> Counter[str]:
    asked = container.get("resources", {}).get("requests", {})
    return Counter({name: read_number(text) for name, text in asked.items()})


def _card_problems(node: Json, pods: list[Json]) -> list[str]:
    there, name = cards(node), node["metadata"]["name"]
    if not there:
        return []
    found: list[str] = []
    held: dict[str, list[tuple[int, int, int, str]]] = defaultdict(list)
    for pod in pods:
        if GPU not in requests(pod["spec"]):
            continue
        who = pod["metadata"]["name"]
        slots = devices(pod)
        missing = [key for key in WITH_NODE if key not in pod["metadata"].get("annotations", {})]
        if missing:
            found.append(f"{who} is on {name} without {missing}")
        elif pod["metadata"]["annotations"]["hami.io/vgpu-node"] != name:
            found.append(f"{who} is on {name}, its cards are elsewhere")
        else:
            found += _slot_problems(pod, slots, there)
        for uuid, (mem, cores, sharers) in _worst(pod, slots).items():
            held[_find_card(uuid)].append((mem, cores, sharers, who))
    for uuid, shares in held.items():
        card = there.get(uuid)
        if card is None:
            found.append(f"{[who for *_, who in shares]} hold {uuid}, which {name} does not have")
            continue
        figures = ("devmem", "devcore", "count")
        sums = map(sum, zip(*(share[:3] for share in shares), strict=True))
        limits = dict(zip(figures, sums, strict=True))
        found += [
            f"{uuid} on {name}: {limit} {used} of {card.get(limit, 0)} for {shares}"
            for limit, used in limits.items()
            # The plugin rounds the cores of each MIG instance up; the plugin that is played refuses overlaps.
            if used > card.get(limit, 0) and not (limit == "devcore" and card.get("mode") == "mig")
        ]
        if len(shares) > 1 and any(cores == 100 for _, cores, *_ in shares):
            found.append(f"{uuid} on {name} is one pod's own, and shared by {shares}")
    return found


def _slot_problems(pod: Json, slots: list[list[tuple[str, int, int]]], there: Any) -> list[str]:
    containers = [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]
    who = pod["metadata"]["name"]
    if len(slots) != len(containers):
        return [f"{who} has {len(containers)} containers and {len(slots)} slots"]
    found = []
    for container, slot in zip(containers, slots, strict=True):
        limits = container.get("resources", {}).get("limits", {})
        if len({uuid for uuid, *_ in slot}) != int(limits.get(GPU, 0)):
            found.append(f"{who}/{container['name']} asks {limits} and has {slot}")
        for uuid, mem, cores in slot:
            percent = int(read_number(limits.get("nvidia.com/gpumem-percentage", "100")))
            whole = "nvidia.com/gpumem" not in limits and percent == 100
            wanted = (
                int(read_number(limits.get("nvidia.com/gpumem", "0")))
                or there.get(_find_card(uuid), {}).get("devmem", 0) * percent // 100,
                int(limits.get("nvidia.com/gpucores", 100 if whole else 0)),
            )
            if there.get(_find_card(uuid), {}).get("mode") == "mig":
                # An instance may have more than what was asked.
                wanted = max(mem, wanted[0]), cores
            if (mem, cores) != wanted:
                found.append(f"{who}/{container['name']} asks {limits} and has {slot}")
    return found


def _find_card(uuid: str) -> str:
    """The card of an instance, which HAMi up to 2.9 names UUID[template-place]."""
    return uuid.partition("[")[0]


def _worst(pod: Json, slots: list[list[tuple[str, int, int]]]) -> dict[str, tuple[int, int, int]]:
    """Per card what a pod holds at most: app containers together, or one init container."""
    n_init = len(pod["spec"].get("initContainers", ()))
    app: Counter[tuple[str, int]] = Counter()
    most: Counter[tuple[str, int]] = Counter()
    for i, slot in enumerate(slots):
        use: Counter[tuple[str, int]] = Counter()
        for uuid, mem, cores in slot:
            use[uuid, 0], use[uuid, 1], use[uuid, 2] = mem, cores, 1
        if i < n_init:
            most |= use
        else:
            app.update(use)
    most |= app
    return {uuid: (most[uuid, 0], most[uuid, 1], most[uuid, 2]) for uuid, _ in most}


def _port_problems(node: Json, pods: list[Json]) -> list[str]:
    taken = Counter(
        (port.get("protocol", "TCP"), port["hostPort"])
        for pod in pods
        for container in pod["spec"]["containers"]
        for port in container.get("ports", ())
        if port.get("hostPort")
    )
    return [f"{node['metadata']['name']}: port {port}" for port, n in taken.items() if n > 1]


def read_number(text: str) -> Fraction:
    """A quantity of the few forms that tests write."""
    for length in (2, 1):
        if text[-length:] in _SUFFIXES:
            return Fraction(text[:-length]) * _SUFFIXES[text[-length:]]
    return Fraction(text)
