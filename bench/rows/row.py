"""What a row is: how its nodes, existing and incoming pods are made, what runs beside, and what would be right."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from tests.controlplane.objects import Manifest

# A row is done when as many pods with this label have a node as were to come.
INCOMING = {"bench": "incoming"}


class Size(NamedTuple):
    """How large: nodes, and incoming pods."""

    nodes: int
    pods: int


class Decision(NamedTuple):
    """Where a pod may rightly go, whatever came before it.

    Attributes:
        node: the node's name.
        claim: the name of a claim that has to be provisioned there first, empty for none.
        victim: the name of a pod that has to go first, empty for none.
    """

    node: str
    claim: str = ""
    victim: str = ""


def _nothing(_: Size) -> Iterable[Manifest]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row. Pods and nodes are made by their number, from 0.

    Attributes:
        name: what it is called on the command line and in the JSON.
        title: what it is called in the table.
        node: the nodes.
        pod: the incoming pods. Whoever loads them adds the scheduler's name and the label ``INCOMING``.
        decide: what the null scheduler does with an incoming pod.
        before: what else there is before them, claims and bound pods included; of pods the scheduler's name is set.
        beside: programs of ``bench.beside`` that run beside the scheduler.
        arrive: incoming pods are made by such a program as others are bound, not all before the start.
        from_start: time counts from the scheduler's start on, and not from the first bind.
        alike: the pods of a batch differ in nothing that decides, so a batch should cost less than its pods.
        times_kube_scheduler: the floor at 5,000 nodes, 0 for none.
        of_null_scheduler: the floor at every size, 0 for none.
        most_mib: the bound on our memory at 5,000 nodes, 0 for none.
        in_groups: the API server and kube-scheduler know pod groups.
    """

    name: str
    title: str
    node: Callable[[int], Manifest]
    pod: Callable[[int, Size], Manifest]
    decide: Callable[[int, Size], Decision]
    before: Callable[[Size], Iterable[Manifest]] = _nothing
    beside: tuple[str, ...] = ()
    arrive: bool = False
    from_start: bool = False
    alike: bool = True
    times_kube_scheduler: float = 0.0
    of_null_scheduler: float = 0.85
    most_mib: int = 0
    in_groups: bool = False

    def incoming(self, number: int, size: Size, scheduler_name: str) -> Manifest:
        """An incoming pod for a scheduler."""
        made = for_scheduler(self.pod(number, size), scheduler_name)
        made["metadata"]["labels"].update(INCOMING)
        return made


def for_scheduler(manifest: Manifest, scheduler_name: str) -> Manifest:
    """The same, for a scheduler if it is a pod."""
    if manifest["kind"] == "Pod":
        manifest["spec"]["schedulerName"] = scheduler_name
    return manifest
