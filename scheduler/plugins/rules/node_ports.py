"""NodePorts: host ports that are free on a node."""

from __future__ import annotations

from scheduler.api.pods.templates import PodTemplate
from scheduler.plugins.contract import (
    Change,
    Domain,
    Held,
    Hint,
    Reason,
    Rule,
    Standing,
    Tally,
    is_never_wide,
)
from scheduler.state.cluster import Cluster
from scheduler.state.counting.ports import Port

_NAME = "NodePorts"

Ports = tuple[Port, ...]


def _concerns(template: PodTemplate, _: Cluster) -> bool:
    return bool(template.ports)


def _read_ports(pod: Standing, _: Cluster) -> Ports | None:
    is_asked = _NAME not in pod.placement.kube.not_asked
    return (pod.template.ports or None) if is_asked else None


def _list_tallies(ports: Ports, cluster: Cluster) -> tuple[Tally, ...]:
    """Count on every node the held ports that conflict with the pod's; the next pod of the shape conflicts too."""
    held = cluster.nodes.ports.count_conflicts(ports, cluster.nodes.capacity)
    return (Tally(count=held, gain=held.of_one),)


def _make_hint(held: Held) -> Hint:
    """A pod that holds one of the ports leaves, whatever the address of the port."""
    ports = dict.fromkeys(port[:2] for port in held.template.ports)
    return Hint(here=tuple((Change.POD_LEFT, port) for port in ports))


RULE = Rule(
    name=_NAME,
    reasons=(Reason("node(s) didn't have free ports for the requested pod ports"),),
    domain=Domain(
        concerns=_concerns, needs=_read_ports, tallies=_list_tallies, is_wide=is_never_wide
    ),
    hint=_make_hint,
)
