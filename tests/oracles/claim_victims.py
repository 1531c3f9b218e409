"""Whose place a pod takes that needs devices: all sets of victims on all nodes, in a world of a few pods and claims."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product


@dataclass(frozen=True)
class Running:
    """A pod on a node; no two have one priority."""

    name: str
    node: str
    priority: int
    cpu: int = 1


@dataclass(frozen=True)
class Held:
    """A claim: its devices, by name, and the names of those who have it, of whom some may be on no node."""

    devices: frozenset[str]
    users: frozenset[str]


@dataclass(frozen=True)
class Small:
    """A world.

    Attributes:
        cpu: by node how much it has.
        devices: by device the nodes that can use it.
    """

    cpu: dict[str, int]
    devices: dict[str, frozenset[str]]
    pods: tuple[Running, ...]
    claims: tuple[Held, ...]


def fits(world: Small, node: str, gone: frozenset[str], n: int) -> bool:
    """Whether a pod of one CPU gets ``n`` devices on a node once some pods are gone."""
    there = [pod for pod in world.pods if pod.node == node and pod.name not in gone]
    if sum(pod.cpu for pod in there) + 1 > world.cpu[node]:
        return False
    taken = frozenset[str]().union(*(one.devices for one in world.claims if not one.users or one.users - gone))  # fmt: skip
    return sum(node in nodes and name not in taken for name, nodes in world.devices.items()) >= n


def list_sets(world: Small, priority: int) -> Iterator[tuple[tuple[bool, ...], frozenset[str]]]:
    """Yield each set of pods that may go, with who stays: the most important pod first."""
    lower = sorted((pod for pod in world.pods if pod.priority < priority), key=lambda pod: -pod.priority)  # fmt: skip
    for stays in product((True, False), repeat=len(lower)):
        yield stays, frozenset(pod.name for pod, here in zip(lower, stays, strict=True) if not here)


def find_victims(world: Small, priority: int, n: int) -> tuple[str, frozenset[str]] | None:
    """Find the node that a pod takes, and who goes for it; None if nobody's going helps.

    On each node the most important pods stay. Of the nodes the one is taken where the most important victim is the least
    important, then the sum of priorities the least, then the fewest go.
    """
    found = []
    of = {pod.name: pod.priority for pod in world.pods}
    for node in sorted(world.cpu):
        some = [one for one in list_sets(world, priority) if fits(world, node, one[1], n)]
        if some and (gone := max(some, key=lambda one: one[0])[1]):
            top, total = max(of[name] for name in gone), sum(of[name] + 2**31 for name in gone)
            found.append((top, total, len(gone), node, gone))
    return min(found)[3:] if found else None
