"""Who holds what, from raw Node and Pod objects alone: the judge of a whole cluster.

Shares no code with the scheduler: registers and allocations are read here with json and split.
"""

import json
from collections import Counter
from typing import Any

from tests.oracles import requests

Json = dict[str, Any]
REGISTER = "hami.io/node-nvidia-register"
ALLOCATED = "hami.io/vgpu-devices-allocated"
HAMI_ONLY = {
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
    "nvidia.com/priority",
}
MIG_ALLOCATIONS = "hami.io/vgpu-mig-allocations"
FIGURES = ("mib", "cores", "sharers")


def violations(nodes: list[Json], pods: list[Json]) -> list[str]:
    """Everything of which more is given away than there is, in words; empty when all is well."""
    found: list[str] = []
    for node in nodes:
        name = node["metadata"]["name"]
        there = [pod for pod in pods if pod["spec"].get("nodeName") == name]
        found += _resources(node, there) + _cards(node, there) + _ports(name, there)
    return found


def _resources(node: Json, there: list[Json]) -> list[str]:
    name = node["metadata"]["name"]
    managed = bool(cards_of(node))
    used: Counter[str] = Counter(pods=len(there))
    for pod in there:
        used.update(requests.everything(pod))
    allocatable = node["status"]["allocatable"]
    return [
        f"{name}: {n} of {resource}"
        for resource, n in used.items()
        if not (managed and resource in HAMI_ONLY)
        and n > requests.amount(resource, allocatable.get(resource, 0))
    ]


def _cards(node: Json, there: list[Json]) -> list[str]:
    name, cards = node["metadata"]["name"], cards_of(node)
    used: dict[str, Counter[str]] = {uuid: Counter() for uuid in cards}
    found = []
    for pod in there:
        for uuid, peak in peaks(pod).items():
            if uuid not in used:
                found.append(f"{name}: {pod['metadata']['name']} has {uuid}, which is not there")
            else:
                used[uuid].update(peak)
    for uuid, card in cards.items():
        there_is = {
            "mib": card.get("devmem", 0),
            "cores": card.get("devcore", 0),
            "sharers": card.get("count", 0),
        }
        found += [
            f"{name}: {used[uuid][figure]} {figure} of {uuid}"
            for figure in FIGURES
            if used[uuid][figure] > there_is[figure]
            # The plugin rounds the cores of each instance up, and its slots limit them.
            and not (figure == "cores" and card.get("mode") == "mig")
        ]
    return found + _instances(name, there, {u for u, c in cards.items() if c.get("mode") == "mig"})


def _instances(name: str, there: list[Json], cut: set[str]) -> list[str]:
    """Slots of cards in MIG mode that two instances have, and pods on such a card without an instance for each share."""
    taken: dict[tuple[str, int], str] = {}
    found = []
    for pod in there:
        who = pod["metadata"]["name"]
        text = (pod["metadata"].get("annotations") or {}).get(MIG_ALLOCATIONS, "[]")
        told = [
            (one["containerIndex"], one["deviceIndex"], one["gpuUUID"]) for one in json.loads(text)
        ]
        held = [
            (i, k, uuid)
            for i, slot in enumerate(slots_of(pod))
            for k, (uuid, *_) in enumerate(slot)
            if uuid in cut
        ]
        if told != held:
            found.append(f"{name}: {who} has the instances {told} for {held}")
        for one in json.loads(text):
            place = one["placement"]
            for slot in range(place["start"], place["start"] + place["size"]):
                other = taken.setdefault((one["gpuUUID"], slot), who)
                if other != who:
                    found.append(f"{name}: {who} and {other} have slot {slot} of {one['gpuUUID']}")
    return found


def _ports(name: str, there: list[Json]) -> list[str]:
    held = Counter(
        (port.get("protocol") or "TCP", port["hostPort"])
        for pod in there
        for container in pod["spec"]["containers"]
        for port in container.get("ports") or ()
        if port.get("hostPort")
    )
    return [f"{name}: port {port} held {n} times" for port, n in held.items() if n > 1]


def cards_of(node: Json) -> dict[str, Json]:
    text = (node["metadata"].get("annotations") or {}).get(REGISTER)
    return {card["id"]: card for card in json.loads(text)} if text else {}


def peaks(pod: Json) -> dict[str, Counter[str]]:
    """The most that a pod claims at once on each card, over the moments of its life.

    Of pods that the scheduler has bound, whose claims are what they ask; see ``oracles.claims``.
    """
    slots = slots_of(pod)
    init = pod["spec"].get("initContainers", [])
    n_init = len(init)
    stays = [i for i in range(len(slots)) if i >= n_init or requests.is_sidecar(init[i])]
    moments = [stays]
    if not _is_initialized(pod):
        moments += [
            [j for j in stays if j < i] + [i]
            for i in range(min(n_init, len(slots)))
            if i not in stays
        ]
    most: dict[str, Counter[str]] = {}
    for moment in moments:
        held: dict[str, Counter[str]] = {}
        for i in moment:
            for uuid, mib, cores in slots[i]:
                held.setdefault(uuid, Counter()).update(mib=mib, cores=cores, sharers=1)
        for uuid, figures in held.items():
            most[uuid] = most.get(uuid, Counter()) | figures
    return most


def slots_of(pod: Json) -> list[list[tuple[str, int, int]]]:
    """(uuid, MiB, cores) of every container of a pod with a node, by position."""
    notes = pod["metadata"].get("annotations") or {}
    if not pod["spec"].get("nodeName"):
        return []
    records = [slot.split(":")[:-1] for slot in notes.get(ALLOCATED, "").split(";")[:-1]]
    return [
        [(uuid, int(mib), int(cores)) for uuid, _, mib, cores in (r.split(",") for r in slot)]
        for slot in records
    ]


def _is_initialized(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(one["type"] == "Initialized" and one["status"] == "True" for one in conditions)
