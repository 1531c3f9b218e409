"""Workloads of another size: ``deploy/web=3``, and with a namespace ``team-a/deploy/web=3`` or ``deploy/team-a/web=3``."""

from __future__ import annotations

import re
from typing import NamedTuple

from scheduler.errors import BadInput
from scheduler.simulate.changes.what_if import report_unknown
from scheduler.simulate.reading import kinds
from scheduler.simulate.reading.inventory import Given, Inventory
from scheduler.simulate.reading.kinds import ObjectKey
from scheduler.simulate.workloads.workload import PODS_MAX

_TEXT = re.compile(r"(?:([^/=]+)/)?([^/=]+)/([^/=]+)=(\d+)")
# The names that kubectl uses for each kind, and the field with the size.
_KINDS = {
    "Deployment": ("replicas", "deployment", "deployments", "deploy"),
    "StatefulSet": ("replicas", "statefulset", "statefulsets", "sts"),
    "ReplicaSet": ("replicas", "replicaset", "replicasets", "rs"),
    "ReplicationController": ("replicas", "replicationcontroller", "replicationcontrollers", "rc"),
    "Job": ("parallelism", "job", "jobs"),
    "LeaderWorkerSet": ("replicas", "leaderworkerset", "leaderworkersets", "lws"),
}
_KIND_OF = {word: kind for kind, (_, *words) in _KINDS.items() for word in words}


class Scale(NamedTuple):
    """The wanted size of a workload; ``namespace`` may be empty."""

    namespace: str
    kind: str
    name: str
    size: int


def parse_scale(text: str) -> Scale:
    """Parse the wanted size of a workload.

    Raises:
        BadInput: the text is malformed; the error says what is allowed.
    """
    found = _TEXT.fullmatch(text)
    if found is None:
        raise BadInput(f"--scale {text}", "is not like deploy/web=3 or deploy/team-a/web=3")
    namespace, word, name, digits = found.groups()
    if namespace and word.lower() not in _KIND_OF and namespace.lower() in _KIND_OF:
        # This is the order of `explain`: TYPE/NAMESPACE/NAME.
        namespace, word = word, namespace
    kind = _KIND_OF.get(word.lower())
    if kind is None:
        raise BadInput(
            f"--scale {text}", f'"{word}" cannot be scaled; allowed are {", ".join(_KIND_OF)}'
        )
    if len(digits) > len(str(PODS_MAX)) or int(digits) > PODS_MAX:
        raise BadInput(f"--scale {text}", f"{digits} is not within 0..{PODS_MAX}")
    return Scale(namespace or "", kind, name, int(digits))


def scale_workloads(inventory: Inventory, texts: list[str]) -> set[ObjectKey]:
    """Give workloads another size, and return their keys.

    Raises:
        BadInput: a text is malformed, or names no workload, or more than one; the error says which workloads there are.
    """
    scaled: set[ObjectKey] = set()
    for text in texts:
        scale = parse_scale(text)
        at = _find_workload(inventory, scale, text)
        given = inventory.workloads[at]
        spec = given.body.get("spec")
        if not isinstance(spec, dict):
            raise BadInput(f"--scale {text}", "its spec is not an object")
        changed = {**spec, _KINDS[scale.kind][0]: scale.size}
        inventory.workloads[at] = Given(given.position, {**given.body, "spec": changed})
        scaled.add(kinds.read_key(given.body))
    return scaled


def _find_workload(inventory: Inventory, scale: Scale, text: str) -> int:
    keys = [kinds.read_key(given.body) for given in inventory.workloads]
    of_kind = {at: key for at, key in enumerate(keys) if key.kind == scale.kind}
    found = [
        at
        for at, key in of_kind.items()
        if key.name == scale.name and scale.namespace in {"", key.namespace}
    ]
    if not found:
        there = (f"{key.namespace}/{key.name}" for key in of_kind.values())
        wanted = f"{scale.namespace}/{scale.name}" if scale.namespace else scale.name
        raise BadInput(f"--scale {text}", report_unknown(scale.kind, wanted, there))
    if len(found) > 1:
        spaces = ", ".join(sorted(keys[at].namespace for at in found))
        raise BadInput(
            f"--scale {text}",
            f"{scale.kind} {scale.name} is in the namespaces {spaces}: name one, as namespace/{text}",
        )
    return found[0]
