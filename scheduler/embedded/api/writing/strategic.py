"""Strategic merge patch: lists merge by key, as the ``patchMergeKey`` tags of the Go types say.

Taints, tolerations and container statuses have no such tag in Kubernetes: they are replaced.
"""

from typing import Any

from scheduler.embedded.store.statuses import bad_request

Json = dict[str, Any]

# The merge key by field name. Only ports have two keys: containerPort for those of a container, and port for those of
# a Service.
MERGE_KEYS = {
    "addresses": "type",
    "allocatedResourcesStatus": "name",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "hostIPs": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "reservedFor": "uid",
    "resourceClaimStatuses": "name",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "secrets": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
_SET_LISTS = frozenset({"finalizers", "podCIDRs"})
_ORDER = "$setElementOrder/"
_FROM_LIST = "$deleteFromPrimitiveList/"


def find_merge_key(name: str, items: list[Any]) -> str | None:
    """Return the key by which a list's items are told apart; None if the list is one value."""
    if name == "ports":
        container = any(isinstance(item, dict) and "containerPort" in item for item in items)
        return "containerPort" if container else "port"
    return MERGE_KEYS.get(name)


def apply_patch(old: Json, patch: Json) -> Json:
    """Apply a strategic merge patch; the old body stays as it is."""
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if directive == "delete":
        return {}
    merged = dict(old)
    if (kept := patch.get("$retainKeys")) is not None:
        merged = {key: value for key, value in merged.items() if key in kept}
    for key, value in patch.items():
        if key in {"$patch", "$retainKeys"} or key.startswith((_ORDER, _FROM_LIST)):
            continue
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            before = merged.get(key)
            merged[key] = apply_patch(before if isinstance(before, dict) else {}, value)
        elif isinstance(value, list):
            merged[key] = _apply_list(key, merged.get(key) or [], value)
        else:
            merged[key] = value
    _apply_directives(merged, patch)
    return merged


def _apply_directives(merged: Json, patch: Json) -> None:
    """Carry out the directives beside a list."""
    for key, value in patch.items():
        if key.startswith(_FROM_LIST):
            name = key.removeprefix(_FROM_LIST)
            if name in merged:
                merged[name] = [item for item in merged[name] if item not in value]
        elif key.startswith(_ORDER):
            name = key.removeprefix(_ORDER)
            if isinstance(merged.get(name), list):
                merged[name] = _reorder(name, merged[name], value)


def _apply_list(name: str, old: list[Any], patch: list[Any]) -> list[Any]:
    if name in _SET_LISTS:
        return old + [item for item in patch if item not in old]
    key = find_merge_key(name, [*old, *patch])
    if key is None:
        return patch
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if item.get("$patch") != "replace"]
    merged = list(old)
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        place = next((i for i, one in enumerate(merged) if one.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            if place is not None:
                del merged[place]
        elif place is None:
            merged.append(apply_patch({}, item))
        else:
            merged[place] = apply_patch(merged[place], item)
    return merged


def _reorder(name: str, items: list[Any], order: list[Any]) -> list[Any]:
    """Put the items that the client ordered first, in its order; other items follow in their old order."""
    key = find_merge_key(name, items)

    def identity(item: Any) -> Any:
        return item.get(key) if isinstance(item, dict) and key else item

    ranks = {str(identity(item)): rank for rank, item in enumerate(order)}
    listed = [item for item in items if str(identity(item)) in ranks]
    others = [item for item in items if str(identity(item)) not in ranks]
    listed.sort(key=lambda item: ranks[str(identity(item))])
    return listed + others
