"""Reads storage objects of the API server into the small records that are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler.api import in_tree, names, quantities, selectors, storage, wire
from scheduler.api.in_tree import Handle
from scheduler.errors import BadInput
from scheduler.state.volumes.objects import (
    Attachment,
    Capacity,
    Claim,
    Class,
    Driver,
    NodeDrivers,
    Stored,
    Terms,
    Volume,
    Wish,
    Zone,
)

_WAITS = "WaitForFirstConsumer"
_FILESYSTEM = "Filesystem"
_ZONE_LABELS = (names.OLD_ZONE, names.OLD_REGION, names.ZONE, names.REGION)


def read_claim(claim: storage.PersistentVolumeClaim) -> Claim:
    """Read a claim.

    Raises:
        BadInput: a quantity or the selector is malformed.
    """
    meta, spec = claim.metadata, claim.spec
    notes = meta.annotations or {}
    asked = ((spec.resources and spec.resources.requests) or {}).get("storage")
    selector = None
    if spec.selector is not None:
        selector = selectors.read_selector(spec.selector, "spec.selector")
    owners = (one.uid for one in meta.owner_references or () if one.controller)
    return Claim(
        key=(meta.namespace, meta.name),
        uid=meta.uid,
        version=meta.resource_version,
        volume=spec.volume_name,
        is_bound=bool(spec.volume_name) and names.BIND_COMPLETED in notes,
        wish=Wish(
            of_class=storage.find_class(claim),
            request=None
            if asked is None
            else _read_bytes(asked, "spec.resources.requests[storage]"),
            modes=tuple(sorted(set(spec.access_modes or ()))),
            selector=selector,
            mode=spec.volume_mode or _FILESYSTEM,
            attributes=spec.volume_attributes_class_name or "",
        ),
        selected=notes.get(names.SELECTED_NODE),
        is_lost=claim.status.phase == "Lost",
        is_deleting=meta.deletion_timestamp is not None,
        owner=next(owners, ""),
    )


def read_volume(volume: storage.PersistentVolume) -> Volume:
    """Read a volume.

    Raises:
        BadInput: a quantity is malformed.
    """
    meta, spec = volume.metadata, volume.spec
    labels = meta.labels or {}
    given = spec.node_affinity.required if spec.node_affinity else None
    moved = in_tree.find_moved(spec, labels)
    handle = moved.handle if moved else None
    if spec.csi is not None:
        moved, handle = None, Handle(spec.csi.driver, spec.csi.volume_handle)
    plugin = moved.plugin if moved else ""
    affinity = _drop_names(
        None if given is None else selectors.read_node_terms(given.node_selector_terms or ())
    )
    reference = spec.claim_ref
    is_deleting = meta.deletion_timestamp is not None
    return Volume(
        name=meta.name,
        version=meta.resource_version,
        capacity=_read_bytes((spec.capacity or {}).get("storage", 0), "spec.capacity[storage]"),
        handle=handle,
        plugin=plugin,
        modes=frozenset(spec.access_modes or ()),
        claim=(reference.namespace, reference.name, reference.uid) if reference else None,
        of_class=storage.find_class(volume),
        mode=spec.volume_mode or _FILESYSTEM,
        attributes=spec.volume_attributes_class_name or "",
        is_free=reference is None and not is_deleting and volume.status.phase == "Available",
        is_deleting=is_deleting,
        affinity=affinity,
        moved_affinity=_drop_names(in_tree.move_affinity(plugin, given, labels))
        if plugin
        else affinity,
        zones=tuple(zone for key in _ZONE_LABELS if (zone := _read_zone(key, labels))),
        labels=labels,
    )


def read_class(given: storage.StorageClass) -> Class:
    """Read a storage class."""
    topologies: Terms = None
    if given.allowed_topologies:
        # An empty term, or one that cannot be read, matches no node.
        asked = (
            wire.NodeTerm(
                [
                    wire.Expression(one.key, "In", one.values)
                    for one in term.match_label_expressions or ()
                ]
            )
            for term in given.allowed_topologies
        )
        topologies = selectors.read_node_terms(asked)
    waits = given.volume_binding_mode == _WAITS
    has_mode = given.volume_binding_mode is not None
    return Class(given.metadata.name, given.provisioner, waits, topologies, has_mode)


def read_node(node: storage.CSINode) -> NodeDrivers:
    """Read the drivers of a node."""
    notes = node.metadata.annotations or {}
    return NodeDrivers(
        node.metadata.name,
        {
            one.name: one.allocatable.count if one.allocatable else None
            for one in node.spec.drivers or ()
        },
        frozenset(filter(None, notes.get(names.MIGRATED_PLUGINS, "").split(","))),
    )


def read_driver(driver: storage.CSIDriver) -> Driver:
    """Read a driver."""
    spec = driver.spec
    return Driver(
        driver.metadata.name,
        bool(spec.storage_capacity),
        bool(spec.prevent_pod_scheduling_if_missing),
    )


def read_capacity(given: storage.CSIStorageCapacity) -> Capacity:
    """Read a capacity.

    Raises:
        BadInput: a quantity is malformed.
    """
    meta = given.metadata
    nodes = None
    if given.node_topology is not None:
        try:
            nodes = selectors.read_selector(given.node_topology, "nodeTopology")
        except BadInput:
            # kube-scheduler ignores a selector that it cannot read.
            nodes = None
    room, largest = given.capacity, given.maximum_volume_size
    return Capacity(
        (meta.namespace, meta.name),
        given.storage_class_name,
        nodes,
        None if room is None else _read_bytes(room, "capacity"),
        None if largest is None else _read_bytes(largest, "maximumVolumeSize"),
    )


def read_attachment(given: storage.VolumeAttachment) -> Attachment:
    """Read an attachment."""
    spec = given.spec
    volume = spec.source.persistent_volume_name or ""
    return Attachment(given.metadata.name, spec.attacher, spec.node_name, volume)


_READ: dict[type[storage.StorageObject], Callable[[Any], Stored]] = {
    storage.PersistentVolumeClaim: read_claim,
    storage.PersistentVolume: read_volume,
    storage.StorageClass: read_class,
    storage.CSINode: read_node,
    storage.CSIDriver: read_driver,
    storage.CSIStorageCapacity: read_capacity,
    storage.VolumeAttachment: read_attachment,
}


def read_object(found: storage.StorageObject) -> Stored:
    """Read a storage object of any kind.

    Raises:
        BadInput: the object is malformed; the error names the field.
    """
    return _READ[type(found)](found)


def _read_bytes(quantity: str | float, field: str) -> int:
    try:
        return quantities.read_value(quantity)
    except quantities.BadQuantity as error:
        raise BadInput(field, str(error)) from error


def _drop_names(terms: Terms) -> Terms:
    """Drop the names of nodes from terms: the terms are compared with labels of nodes only."""
    if terms is None:
        return None
    kept = (term for term in terms if all(one.operator == "NotIn" for one in term.names))
    return tuple(term._replace(names=()) for term in kept)


def _read_zone(key: str, labels: dict[str, str]) -> Zone | None:
    """Read one of the labels that tell where a volume is; None for a label with an empty part."""
    if key not in labels:
        return None
    values = [part.strip() for part in labels[key].split("__")]
    return Zone(key, frozenset(values)) if all(values) else None
