"""Makes the claims that controllers would make: for StatefulSets, and for generic ephemeral volumes of pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from scheduler.api import names, storage, values, wire
from scheduler.api.storage import ClaimSpec, PersistentVolumeClaim
from scheduler.errors import BadInput
from scheduler.simulate.reading import objects
from scheduler.simulate.reading.inventory import Inventory

# The templates of a StatefulSet's claims, each with the beginning of the claims' names.
Templates = list[tuple[str, ClaimSpec]]


def read_templates(given: Iterable[Mapping[str, Any]], field: str) -> Templates:
    """Read the templates in ``volumeClaimTemplates``.

    Raises:
        BadInput: a template is malformed.
    """
    return [
        (
            str(values.read_mapping(one.get("metadata"), f"{field}[{i}].metadata").get("name", "")),
            objects.decode(values.read_mapping(one.get("spec"), f"{field}[{i}].spec"), ClaimSpec),
        )
        for i, one in enumerate(given)
    ]


def make_claims(templates: Templates, pod: wire.Pod) -> list[PersistentVolumeClaim]:
    """Make the claims of a StatefulSet's pod."""
    meta = pod.metadata
    return [_make_claim(meta.namespace, f"{name}-{meta.name}", spec) for name, spec in templates]


def add_claims(inventory: Inventory, wanted: Iterable[PersistentVolumeClaim]) -> None:
    """Add the wanted claims that do not exist, and those for ephemeral volumes of waiting pods."""
    there = {
        (one.metadata.namespace, one.metadata.name)
        for one in inventory.storage
        if isinstance(one, PersistentVolumeClaim)
    }
    made = list(wanted)
    for pod in inventory.pods:
        if not pod.spec.node_name:
            try:
                made += _make_ephemeral(pod)
            except BadInput as error:
                inventory.keep_problem(inventory.make_problem(pod.metadata.uid, error.mistake))
    default = _find_default_class(inventory)
    for one in made:
        key = one.metadata.namespace, one.metadata.name
        if key not in there:
            there.add(key)
            if one.spec.storage_class_name is None:
                one.spec.storage_class_name = default
            inventory.storage.append(one)


def _make_ephemeral(pod: wire.Pod) -> Iterator[PersistentVolumeClaim]:
    meta = pod.metadata
    for i, volume in enumerate(pod.spec.volumes or ()):
        if volume.ephemeral is None:
            continue
        field = f"spec.volumes[{i}].ephemeral.volumeClaimTemplate"
        template = values.read_mapping(volume.ephemeral.get("volumeClaimTemplate"), field)
        spec = objects.decode(values.read_mapping(template.get("spec"), f"{field}.spec"), ClaimSpec)
        claim = _make_claim(meta.namespace, f"{meta.name}-{volume.name}", spec)
        claim.metadata.owner_references = [
            wire.Owner(kind="Pod", name=meta.name, uid=meta.uid, controller=True)
        ]
        yield claim


def _make_claim(namespace: str, name: str, spec: ClaimSpec) -> PersistentVolumeClaim:
    meta = wire.Meta(name=name, namespace=namespace, uid=f"{namespace}/{name}")
    return PersistentVolumeClaim(metadata=meta, spec=spec)


def _find_default_class(inventory: Inventory) -> str | None:
    """Find the class that the API server gives to claims without one; None if there is no default class."""
    for one in inventory.storage:
        notes = one.metadata.annotations or {}
        if isinstance(one, storage.StorageClass) and notes.get(names.DEFAULT_CLASS) == "true":
            return one.metadata.name
    return None
