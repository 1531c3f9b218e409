"""Applies the changes that a user names to the objects that were read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from scheduler.api import names, wire
from scheduler.errors import BadInput
from scheduler.simulate.reading.inventory import Inventory

_NAMED_MAX, _CLOSE_MAX = 10, 3
# No object has such a long name, and to compare it takes long.
_LONG = 254
_NODE_OWNERS = frozenset({"DaemonSet", "Node"})
_FINISHED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes to simulate on top of the objects.

    Attributes:
        without: names of nodes that are removed; their pods wait for another node.
        cordoned: names of nodes that take no new pods.
        drained: texts like ``rack=r7,zone=a``: the nodes with all these labels take no new pods, and lose theirs.
        scale: texts like ``deploy/web=3``, see ``scale``.
        nodes: Node objects that are added.
        policies: BalancePolicy objects that are added, or replace those of the same name.
    """

    without: Sequence[str] = ()
    cordoned: Sequence[str] = ()
    drained: Sequence[str] = ()
    scale: Sequence[str] = ()
    nodes: Sequence[Mapping[str, Any]] = ()
    policies: Sequence[Mapping[str, Any]] = ()

    @property
    def moves_pods(self) -> bool:
        """Whether there are other nodes, or other pods, than without the changes."""
        return bool(self.without or self.cordoned or self.drained or self.scale or self.nodes)


def apply_changes(inventory: Inventory, changes: Changes) -> dict[str, str]:
    """Remove, cordon and drain nodes, and return the node that each pod had to leave, by uid.

    Pods that belong to their node go with it, and so do pods that are being deleted. On a drained node both stay.

    Raises:
        BadInput: there is no such node; the error names some that there are.
    """
    there = [node.metadata.name for node in inventory.nodes]
    for option, wanted in (("--without-node", changes.without), ("--cordon", changes.cordoned)):
        for name in wanted:
            if name not in there:
                raise BadInput(f"{option} {name}", report_unknown("node", name, there))
    gone = frozenset(changes.without)
    drained = frozenset(
        name for text in changes.drained for name in _list_selected(text, inventory.nodes)
    )
    for node in inventory.nodes:
        if node.metadata.name in drained.union(changes.cordoned):
            node.spec = structs.replace(node.spec, unschedulable=True)
    inventory.nodes[:] = [node for node in inventory.nodes if node.metadata.name not in gone]
    displaced: dict[str, str] = {}
    kept: list[wire.Pod] = []
    for pod in inventory.pods:
        was_on = pod.spec.node_name or ""
        stays = belongs_to_its_node(pod) or bool(pod.metadata.deletion_timestamp)
        if was_on not in gone | drained or pod.status.phase in _FINISHED:
            kept.append(pod)
        elif not stays:
            displaced[pod.metadata.uid] = was_on
            kept.append(_take_from_node(pod))
        elif was_on not in gone:
            kept.append(pod)
    inventory.pods[:] = kept
    return displaced


def parse_labels(text: str) -> dict[str, str]:
    """Read labels that are written ``key=value,key=value``.

    Raises:
        BadInput: the text is no such list.
    """
    found: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = part.strip().partition("=")
        if not (key and equals):
            raise BadInput(
                f"--drain {text}", "is no list of labels such as topology.kubernetes.io/rack=r7"
            )
        found[key] = value
    return found


def _list_selected(text: str, nodes: Sequence[wire.Node]) -> list[str]:
    """List the nodes that have some labels."""
    wanted = parse_labels(text)
    labels = {node.metadata.name: node.metadata.labels or {} for node in nodes}
    found = [name for name, there in labels.items() if wanted.items() <= there.items()]
    if not found:
        for key, value in wanted.items():
            known = {there[key] for there in labels.values() if key in there}
            if value not in known:
                raise BadInput(f"--drain {text}", report_unknown(f"node with {key}", value, known))
        raise BadInput(f"--drain {text}", "no node has all these labels")
    return found


def belongs_to_its_node(pod: wire.Pod) -> bool:
    """Whether a pod can run on no other node: a DaemonSet's pod, or one that a kubelet runs from a file."""
    meta = pod.metadata
    return names.MIRROR in (meta.annotations or {}) or any(
        owner.kind in _NODE_OWNERS for owner in meta.owner_references or ()
    )


def _take_from_node(pod: wire.Pod) -> wire.Pod:
    """Take a pod from its node, as if it were new. Marks of its bind may stay: they are read only if it has a node."""
    return structs.replace(
        pod,
        spec=structs.replace(pod.spec, node_name=None),
        status=wire.PodStatus(phase="Pending"),
    )


def report_unknown(what: str, name: str, there: Iterable[str]) -> str:
    """Say that a name does not exist, and which do: the names that are most like it, or the first ones."""
    known = sorted(set(there))
    if not known:
        return f'there is no {what} "{name}", and no other'
    close = difflib.get_close_matches(name, known, _CLOSE_MAX) if len(name) < _LONG else []
    shown = sorted(close) or known[:_NAMED_MAX]
    more = len(known) - len(shown)
    rest = f" and {more} more" if more else ""
    return f'there is no {what} "{name}"; there are {", ".join(shown)}{rest}'
