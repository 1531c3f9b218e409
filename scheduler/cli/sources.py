"""Reads nodes and pods from files or a cluster, or everything in a cluster that affects placement."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scheduler.api import steering, wire
from scheduler.api.claims.objects import DeviceObject, ResourceClaimTemplate
from scheduler.api.kinds import (
    CLAIM_TEMPLATES,
    CONFIG_MAPS,
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    TAINT_RULES,
)
from scheduler.errors import ApiError, BadInput
from scheduler.progress import Tell

if TYPE_CHECKING:
    from scheduler.audit.unread import Unread
    from scheduler.simulate.reading.gathering import Live
    from scheduler.simulate.reading.inventory import InputProblem, Inventory

Json = dict[str, Any]
_DEVICES = RESOURCE_SLICES, DEVICE_CLASSES, TAINT_RULES, RESOURCE_CLAIMS
_KINDS = frozenset(one.name for one in (NODES, PODS, CONFIG_MAPS, CLAIM_TEMPLATES, *_DEVICES))


@dataclass(frozen=True, slots=True)
class Found:
    """The objects that were read.

    Attributes:
        nodes, pods: all nodes and pods whose form can be read, even if some of their values cannot.
        source: where they are from, in words.
        unread: malformed objects that no cluster could have.
        passed_over: how many objects of each other kind there are.
        config_maps: ConfigMaps that may configure devices.
        devices: ResourceClaims, and the objects that say which devices there are for them.
        unlisted: kinds of these that could not be read, and why.
    """

    nodes: list[wire.Node]
    pods: list[wire.Pod]
    source: str
    unread: tuple[Unread, ...] = ()
    passed_over: Mapping[str, int] = field(default_factory=dict)
    config_maps: Sequence[steering.ConfigMap] = ()
    devices: Sequence[DeviceObject] = ()
    unlisted: Sequence[str] = ()


def read_files(names: list[str], tell: Tell) -> Found:
    """Read nodes and pods from files; ``-`` is standard input.

    Raises:
        BadInput: a file cannot be read, or holds something that is no Kubernetes object.
    """
    from scheduler.simulate.reading import files, gathering, inventory, kinds  # noqa: PLC0415 - numba costs half a second
    from scheduler.simulate.workloads import device_claims  # noqa: PLC0415 - as above

    objects: list[Json] = []
    origins: list[str] = []
    passed_over: Counter[str] = Counter()
    for name in names:
        tell(f"reading {files.describe_file(name)}")
        for body, place in files.read_placed(name, sys.stdin, command="audit"):
            # An object without a kind is a mistake, as the inventory reports.
            if kinds.find_kind(body) in _KINDS or not isinstance(body.get("kind"), str):
                objects.append(body)
                has_name = kinds.read_key(body).name or not place
                origins.append(name if has_name else f"{name}: {place}")
            else:
                passed_over[str(body["kind"])] += 1
    tell("reading what the objects say")
    gathering.refuse_illegible(zip(origins, objects, strict=True))
    found = inventory.read_inventory(objects, strict=False)
    nodes, unread = list(found.nodes), []
    # The audit reports the mistakes of these pods as it does for a cluster.
    read = set(found.positions.values()) - {one.position for one in found.unread}
    for problem in found.mistakes.values():
        if (node := _find_cluster_node(found, problem)) is not None:
            nodes.append(node)
        elif problem.position not in read:
            unread.append(_make_unread(origins[problem.position], problem))
    device_claims.add_resource_claims(found)
    shown = ("standard input" if name == "-" else name for name in names)
    passed_over.update(found.passed_over)
    return Found(
        nodes,
        found.pods,
        ", ".join(shown),
        tuple(unread),
        dict(sorted(passed_over.items())),
        [one for _, one in found.config_maps],
        [one for one in found.claiming if not isinstance(one, ResourceClaimTemplate)],
    )


def _find_cluster_node(found: Inventory, problem: InputProblem) -> wire.Node | None:
    """Find a node that a cluster may have: its form can be read, but not what it offers."""
    from scheduler.devices.table import DEFAULT_DEVICES  # noqa: PLC0415 - as above
    from scheduler.simulate.reading import objects  # noqa: PLC0415 - as above
    from scheduler.state import facts  # noqa: PLC0415 - as above

    body = found.objects[problem.position]
    if body.get("kind") != NODES.name:
        return None
    try:
        node = objects.decode(body, wire.Node)
    except BadInput:
        return None
    is_named = bool(node.metadata.name)
    return (
        node
        if is_named and facts.read_facts(node, DEFAULT_DEVICES).problem == problem.mistake
        else None
    )


def _make_unread(origin: str, problem: InputProblem) -> Unread:
    from scheduler.audit.unread import Unread  # noqa: PLC0415 - as above

    return Unread(": ".join(filter(None, (origin, problem.name))), problem.mistake)


def read_cluster(
    kubeconfig: str | None, context: str | None, config_maps: Sequence[str] = ()
) -> Found:
    """Read nodes and pods from a cluster, and these ConfigMaps.

    Raises:
        BadInput: there is no such kubeconfig or context, or the cluster cannot be read.
    """
    from scheduler.kube import client  # noqa: PLC0415 - as for run
    from scheduler.kube.watch import listing  # noqa: PLC0415 - as for run

    access = client.load_access(kubeconfig, context)
    shown = describe_cluster(access.url, context)
    try:
        nodes, pods = asyncio.run(listing.read_nodes_and_pods(access))
        found = asyncio.run(listing.read_config_maps(access, config_maps))
        devices = asyncio.run(listing.read_optional(access, _DEVICES))
    except ApiError as error:
        raise BadInput(shown, str(error)) from error
    return Found(
        nodes, pods, shown, config_maps=found, devices=devices.items, unlisted=devices.unlisted
    )


def read_whole_cluster(
    kubeconfig: str | None, context: str | None, tell: Tell, config_maps: Sequence[str] = ()
) -> Live:
    """Read everything from a cluster that decides where pods go, and these ConfigMaps.

    Raises:
        BadInput: as ``read_cluster``.
    """
    from scheduler.kube import client  # noqa: PLC0415 - as for run
    from scheduler.kube.watch import snapshot  # noqa: PLC0415 - as for run
    from scheduler.simulate.reading.gathering import Live  # noqa: PLC0415 - as above

    access = client.load_access(kubeconfig, context)
    shown = describe_cluster(access.url, context)
    tell(f"reading {shown}")
    try:
        found = asyncio.run(snapshot.read_snapshot(access, config_maps))
    except ApiError as error:
        raise BadInput(shown, str(error)) from error
    return Live(found.objects, found.unlisted)


def describe_cluster(url: str, context: str | None) -> str:
    """Describe a cluster: the context, if it was given, and the server, without a password before its name."""
    server = urlsplit(url)
    shown = f"{server.scheme}://{server.netloc.rpartition('@')[2]}"
    return f"context {context} at {shown}" if context else shown
