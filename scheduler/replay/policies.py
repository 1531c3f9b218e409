"""Reads the file of a policy: Kueue's queues, cohorts and flavors, or KAI's queues, and which rules share among them.

The teams of a trace are its LocalQueues. Where the file has none, each ClusterQueue has one with its own name. What only
matters in a cluster is not read: the namespaces of queues, and admission checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from scheduler.api import kai, kinds, kueue, selectors, wire
from scheduler.api.queues import configuration, reading
from scheduler.api.queues.definitions import LocalQueueDefinition, QueueDefinition
from scheduler.api.queues.kai import KaiQueue
from scheduler.api.queues.settings import QueueSettings
from scheduler.documents import reading as documents
from scheduler.errors import BadInput
from scheduler.replay import kai_policies

Json = Mapping[str, Any]
NAMESPACE = "replay"
_OPTION = "--queues"
_CONFIGURATION = "Configuration"
# What is read of Kueue's own configuration: the rest is about a cluster.
_SETTINGS = "fairSharing", "admissionFairSharing"
# What no node or pod of a trace has.
_NOT_IN_TRACES = {
    "nodeTaints": "must be left out: pods of a trace tolerate no taints",
    "topologyName": "must be left out: nodes of a trace have no topology",
}
_READERS: Mapping[str, Callable[[Any], object]] = {
    kinds.CLUSTER_QUEUES.name: reading.read_queue,
    kinds.LOCAL_QUEUES.name: reading.read_local_queue,
    kinds.COHORTS.name: reading.read_cohort,
    kinds.FLAVORS.name: reading.read_flavor,
}
_SHAPES = {
    one.name: one.shape
    for one in (kinds.CLUSTER_QUEUES, kinds.LOCAL_QUEUES, kinds.COHORTS, kinds.FLAVORS)
}


class Team(NamedTuple):
    """A team: the ClusterQueue that its LocalQueue leads to, and its weight among the teams there."""

    queue: str
    weight: float


@dataclass(frozen=True, slots=True)
class Policy:
    """How queues share a cluster.

    Attributes:
        name: the name of its file, without the ending.
        settings: which rules share among queues.
        objects: the objects as they are decoded, LocalQueues for all teams among them.
        queues: the definitions of the ClusterQueues, by name.
        teams: the teams, by the names of their LocalQueues.
        kai: the definitions of KAI's queues, by name; a team is one that has no queue below. Empty if the queues are
            Kueue's.
    """

    name: str
    settings: QueueSettings
    objects: tuple[kueue.QueueObject | kai.Queue, ...]
    queues: Mapping[str, QueueDefinition]
    teams: Mapping[str, Team]
    kai: Mapping[str, KaiQueue] = field(default_factory=dict)


def read_policy(path: Path) -> Policy:
    """Read the file of a policy.

    Raises:
        BadInput: the file cannot be read, or an object in it has a mistake; the error names object and field.
    """
    file = f"{_OPTION} {path.name}"
    bodies = list(_read_bodies(path, file))
    if any(map(kai_policies.is_of_kai, bodies)):
        return _make_kai_policy(path.stem, bodies, file)
    given: dict[str, Any] = {}
    objects: list[kueue.QueueObject] = []
    known: dict[str, dict[str, Any]] = {kind: {} for kind in _READERS}
    for body in bodies:
        if _find_kind(body) == _CONFIGURATION:
            given |= {name: body[name] for name in _SETTINGS if name in body}
            continue
        where = f"{file}: {_name_object(body)}"
        found, defined = _read_object(body, where)
        same = known[_find_kind(body)]
        if defined.name in same:
            raise BadInput(where, "appears more than once")
        same[defined.name] = defined
        objects.append(found)
    queues: dict[str, QueueDefinition] = known[kinds.CLUSTER_QUEUES.name]
    locals_: dict[str, LocalQueueDefinition] = known[kinds.LOCAL_QUEUES.name]
    _check_names(queues, locals_, known[kinds.FLAVORS.name], file)
    teams = {name: Team(name, 1.0) for name in queues}
    if locals_:
        teams = {name: Team(one.queue, one.weight) for name, one in locals_.items()}
    else:
        objects += [_make_local_queue(name) for name in queues]
    settings = _read_settings({"kueue": True, **given}, file)
    return Policy(path.stem, settings, tuple(objects), queues, teams)


def _make_kai_policy(name: str, bodies: Sequence[Json], file: str) -> Policy:
    """Make a policy of KAI's queues, and of how they share."""
    given: Any = True
    objects: list[kai.Queue] = []
    known: dict[str, KaiQueue] = {}
    for body in bodies:
        where = f"{file}: {_name_object(body)}"
        if _find_kind(body) == _CONFIGURATION:
            given = body.get(kai_policies.SETTINGS, given)
            continue
        if not kai_policies.is_of_kai(body):
            raise BadInput(where, f"is no {kai_policies.KIND} of KAI, as others in the file are")
        found, defined = kai_policies.read_one(body, where)
        if defined.name in known:
            raise BadInput(where, "appears more than once")
        known[defined.name] = defined
        objects.append(found)
    leaves = kai_policies.list_leaves(known, file)
    settings = _read_settings({"kai": given}, file)
    teams = {leaf: Team(leaf, 1.0) for leaf in leaves}
    return Policy(name, settings, tuple(objects), {}, teams, known)


def _read_settings(given: Json, file: str) -> QueueSettings:
    try:
        return configuration.read_settings(dict(given), _CONFIGURATION)
    except BadInput as error:
        raise BadInput(file, str(error)) from error


def _check_names(
    queues: Mapping[str, QueueDefinition],
    locals_: Mapping[str, LocalQueueDefinition],
    flavors: Mapping[str, Any],
    file: str,
) -> None:
    """Refuse a policy that names what it does not have."""
    if not queues:
        raise BadInput(file, "has no ClusterQueue")
    for name, queue in queues.items():
        where = f"{file}: ClusterQueue {name}"
        if not queue.groups:
            raise BadInput(where, "spec.resourceGroups: has none, so the queue would admit nothing")
        for one in (one for group in queue.groups for one in group.flavors):
            if one.flavor not in flavors:
                raise BadInput(where, f"there is no ResourceFlavor {one.flavor!r}")
    for name, local in locals_.items():
        if local.queue not in queues:
            where = f"{file}: LocalQueue {name}"
            raise BadInput(where, f"spec.clusterQueue: there is no ClusterQueue {local.queue!r}")


def _read_bodies(path: Path, file: str) -> Iterator[dict[str, Any]]:
    try:
        text = documents.decode(path.read_bytes())
    except OSError as error:
        raise BadInput(_OPTION, f"{path}: {error.strerror}") from error
    except UnicodeError as error:
        raise BadInput(_OPTION, f"{path}: {error}") from error
    for one in documents.read_all(text):
        where = f"{file}: document {one.number}"
        if one.problem is not None:
            raise BadInput(where, str(one.problem))
        if one.value is None:
            continue
        if not isinstance(one.value, dict):
            raise BadInput(where, "is no object")
        items = one.value.get("items") if str(one.value.get("kind")).endswith("List") else None
        for body in items if isinstance(items, list) else [one.value]:
            if not isinstance(body, dict):
                raise BadInput(where, "items: has something that is no object")
            yield body


def _name_object(body: Json) -> str:
    meta = body.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else None
    return f"{body.get('kind') or 'an object without a kind'} {name or ''}".rstrip()


def _find_kind(body: Json) -> str:
    return str(body.get("kind"))


def _read_object(body: Json, where: str) -> tuple[kueue.QueueObject, Any]:
    """Decode an object, and read what it defines."""
    kind = _find_kind(body)
    if kind not in _READERS or not str(body.get("apiVersion")).startswith("kueue.x-k8s.io/"):
        wanted = ", ".join(_READERS)
        raise BadInput(where, f"is no {wanted} or {_CONFIGURATION} of Kueue")
    meta = body.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    name = meta.get("name")
    if not name or not isinstance(name, str):
        raise BadInput(where, "metadata.name: is missing")
    selectors.check_value(name, f"{where}: metadata.name")
    for banned, why in _NOT_IN_TRACES.items():
        if kind == kinds.FLAVORS.name and (body.get("spec") or {}).get(banned):
            raise BadInput(where, f"spec.{banned}: {why}")
    # Namespaces matter in a cluster; here all teams are in one.
    meta = {"name": meta["name"], "uid": f"{kind}/{meta['name']}"}
    spec = body.get("spec") or {}
    if kind == kinds.LOCAL_QUEUES.name:
        meta["namespace"] = NAMESPACE
    elif kind == kinds.CLUSTER_QUEUES.name and isinstance(spec, dict):
        spec = {**spec, "namespaceSelector": {}, "admissionChecks": None, "admissionChecksStrategy": None}  # fmt: skip
    try:
        found: kueue.QueueObject = msgspec.convert(
            {"kind": kind, "metadata": meta, "spec": spec}, _SHAPES[kind]
        )
        return found, _READERS[kind](found)
    except msgspec.ValidationError as error:
        raise BadInput(where, str(error)) from error
    except BadInput as error:
        raise BadInput(where, str(error)) from error


def _make_local_queue(name: str) -> kueue.LocalQueue:
    return kueue.LocalQueue(
        metadata=wire.Meta(uid=f"LocalQueue/{name}", namespace=NAMESPACE, name=name),
        spec={"clusterQueue": name},
    )
