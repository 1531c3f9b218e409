"""Makes node objects for the embedded cluster: plain nodes and nodes with GPU cards."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from scheduler.embedded.agents import cards as inventory
from scheduler.embedded.store.metadata import write_timestamp

Json = dict[str, Any]


def make_plain_node(
    name: str,
    *,
    cpu: str = "32",
    memory: str = "128Gi",
    pods: str = "110",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Json] = (),
    resources: Mapping[str, str] | None = None,
) -> Json:
    """Return a Ready node; ``resources`` adds to or replaces what it can allocate."""
    amounts = {
        "cpu": cpu,
        "memory": memory,
        "pods": pods,
        "ephemeral-storage": "100Gi",
        **(resources or {}),
    }
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": write_timestamp(),
        "lastTransitionTime": write_timestamp(),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                **(labels or {}),
            },
            "annotations": {},
        },
        "spec": {"taints": list(taints)} if taints else {},
        "status": {
            "capacity": dict(amounts),
            "allocatable": amounts,
            "conditions": [ready],
            "addresses": [{"type": "Hostname", "address": name}],
            "nodeInfo": {"kubeletVersion": "v1.37.0-embedded", "osImage": "embedded"},
        },
    }


def make_gpu_node(
    name: str,
    *,
    cards: int = 4,
    model: str = "NVIDIA-Tesla T4",
    mem_mib: int = 15_360,
    split: int = 10,
    numa_nodes: int = 1,
    register: str = "json",
    **more: Any,
) -> Json:
    """Return a node whose cards are announced already; ``more`` goes to ``make_plain_node``.

    ``register`` is the form of the announcement: json, text7 or text9. Cards are spread over
    ``numa_nodes`` in blocks. For any other inventory there is ``add_cards``.
    """
    listed = tuple(
        inventory.Card(
            id=inventory.make_card_id(name, index),
            index=index,
            count=split,
            devmem=mem_mib,
            type=model,
            numa=index * numa_nodes // cards,
        )
        for index in range(cards)
    )
    return add_cards(make_plain_node(name, **more), inventory.Hardware(cards=listed, form=register))


def add_cards(node: Json, hardware: inventory.Hardware, *, registered: bool = True) -> Json:
    """Put an inventory into a node object, and announce it unless the agent does that."""
    annotations = node["metadata"]["annotations"]
    annotations[inventory.HARDWARE] = hardware.write_annotation()
    if registered:
        capacity, allocatable = hardware.count_allocatable()
        annotations[inventory.REGISTER] = inventory.write_register(hardware)
        node["status"]["capacity"][inventory.RESOURCE] = str(capacity)
        node["status"]["allocatable"][inventory.RESOURCE] = str(allocatable)
    return node


def remove_announcement(node: Json) -> Json:
    """Return a GPU node object as it is before its plugin has announced anything."""
    hardware = inventory.read_hardware(node)
    if hardware is None:
        raise ValueError(f"{node['metadata']['name']} has no cards")
    node["metadata"]["annotations"].pop(inventory.REGISTER, None)
    for part in ("capacity", "allocatable"):
        node["status"][part].pop(inventory.RESOURCE, None)
    return node


def mark_unhealthy(hardware: inventory.Hardware, *indices: int) -> inventory.Hardware:
    """Return the same cards with some of them unhealthy."""
    broken = tuple(
        replace(card, health=False) if card.index in indices else card for card in hardware.cards
    )
    return replace(hardware, cards=broken)
