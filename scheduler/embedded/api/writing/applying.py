"""Server-side apply: merges what a manager declares, and removes what it no longer declares.

Simpler than the real thing in one way: only applying managers are recorded, so a conflict is
found between two appliers, never with a plain update or patch.
"""

import json
from collections.abc import Iterator
from typing import Any

from scheduler.embedded.api.paths import Target
from scheduler.embedded.api.writing import strategic
from scheduler.embedded.api.writing.registry import Options, Registry
from scheduler.embedded.store.metadata import write_timestamp
from scheduler.embedded.store.statuses import (
    ApiError,
    bad_request,
    invalid,
    not_found,
    required,
)
from scheduler.embedded.store.store import Record

Json = dict[str, Any]

# These are set by the path or the server, so no applier owns them.
_UNOWNED = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generation",
        "managedFields",
        "selfLink",
        "deletionTimestamp",
    }
)
_SECOND_KEYS = {"containerPort": "protocol", "port": "protocol", "topologyKey": "whenUnsatisfiable"}
_KEY_DEFAULTS = {"protocol": "TCP"}


def apply_object(
    registry: Registry,
    target: Target,
    config: Json,
    *,
    manager: str,
    force: bool,
    options: Options,
) -> tuple[Record, bool]:
    """Create or merge an object for a manager; return it and whether it is new."""
    kind, namespace, name, subresource = target
    if not manager:
        raise invalid(
            "PatchOptions.meta.k8s.io",
            "",
            [required("fieldManager", "is required for apply patch")],
        )
    if (config.get("metadata") or {}).get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    entry: Json = {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": kind.api_version,
        "time": write_timestamp(),
        "fieldsType": "FieldsV1",
        "fieldsV1": _list_owned_fields(config, kind.schema),
    }
    if subresource:
        entry["subresource"] = subresource
    key = (namespace, name)
    if key not in registry.store.get_bucket(kind.bucket).objects:
        if subresource:
            raise not_found(kind.resource, name)
        meta = {**(config.get("metadata") or {}), "name": name, "managedFields": [entry]}
        return registry.create(kind, namespace, {**config, "metadata": meta}, options), True

    def change(old: Json | None) -> Json:
        before = old or {}
        if kind.from_store is not None:
            before = kind.from_store(before)
        return _apply_to(before, config, entry, kind.schema, force=force)

    record, _ = registry.update(kind, key, change, subresource, options)
    return record, False


def _apply_to(old: Json, config: Json, entry: Json, schema: Json | None, *, force: bool) -> Json:
    entries = list(old["metadata"].get("managedFields") or ())
    identity = ("manager", "operation", "subresource")
    mine = [one for one in entries if all(one.get(k) == entry.get(k) for k in identity)]
    others = [one for one in entries if one not in mine]
    wanted = {key: value for key, value in config.items() if key not in {"apiVersion", "kind"}}
    fields = entry["fieldsV1"]
    found = list(_find_conflicts(old, wanted, fields, others))
    if found and not force:
        raise _make_conflict(found)
    if found:
        # The apply is forced: fields that are taken over no longer belong to the other manager.
        others = [{**one, "fieldsV1": _subtract(one["fieldsV1"], fields)} for one in others]
    merged = _merge(old, wanted, "", schema)
    for previous in mine:
        rest = [one["fieldsV1"] for one in others]
        merged = _remove_undeclared(merged, previous["fieldsV1"], fields, rest)
    meta = {**merged["metadata"], "managedFields": [*others, entry]}
    if "resourceVersion" not in (config.get("metadata") or {}):
        meta.pop("resourceVersion", None)
        # The version is filled in again, because some kinds refuse an update without it.
        meta["resourceVersion"] = old["metadata"]["resourceVersion"]
    return {**merged, "metadata": meta}


def _find_keys(name: str, items: list[Any], schema: Json | None) -> tuple[str, ...]:
    """Return the fields by which the items of a list are told apart; none if the list is one value."""
    if not items or not all(isinstance(item, dict) for item in items):
        return ()
    if schema is not None:
        if schema.get("x-kubernetes-list-type") == "map":
            return tuple(schema.get("x-kubernetes-list-map-keys") or ())
        # The metadata of custom objects follows the built-in rules.
        return ("uid",) if name == "ownerReferences" else ()
    first = strategic.find_merge_key(name, items)
    if first is None or not all(first in item for item in items):
        return ()
    second = _SECOND_KEYS.get(first)
    return (first, second) if second else (first,)


def _make_mark(item: Json, keys: tuple[str, ...]) -> str:
    values = {key: item.get(key, _KEY_DEFAULTS.get(key)) for key in sorted(keys)}
    return "k:" + json.dumps(values, separators=(",", ":"))


def _find_inner(schema: Json | None, name: str) -> Json | None:
    if schema is None:
        return None
    inner = (schema.get("properties") or {}).get(name)
    if inner is None:
        extra = schema.get("additionalProperties")
        inner = extra if isinstance(extra, dict) else {}
    return dict(inner)


def _is_set(name: str, schema: Json | None) -> bool:
    return name == "finalizers" or (schema or {}).get("x-kubernetes-list-type") == "set"


def _list_owned_fields(config: Json, schema: Json | None) -> Json:
    wanted = {key: value for key, value in config.items() if key not in {"apiVersion", "kind"}}
    meta = wanted.pop("metadata", None) or {}
    owned = {key: value for key, value in meta.items() if key not in _UNOWNED}
    fields = _list_fields(wanted, "", schema)
    if owned:
        fields["f:metadata"] = _list_fields(owned, "metadata", None)
    return fields


def _list_fields(value: Any, name: str, schema: Json | None) -> Json:
    """Return the FieldsV1 of a value: nested maps that end in empty ones."""
    if isinstance(value, dict):
        return {
            f"f:{key}": _list_fields(one, key, _find_inner(schema, key))
            for key, one in value.items()
        }
    if not isinstance(value, list):
        return {}
    if _is_set(name, schema):
        return {f"v:{json.dumps(item)}": {} for item in value}
    keys = _find_keys(name, value, schema)
    items = (schema or {}).get("items") if schema is not None else None
    return {
        _make_mark(item, keys): {".": {}, **_list_fields(item, "", items)} for item in value if keys
    }


def _merge(old: Any, new: Any, name: str, schema: Json | None) -> Any:
    if isinstance(new, dict) and isinstance(old, dict):
        merged = dict(old)
        for key, value in new.items():
            merged[key] = _merge(old.get(key), value, key, _find_inner(schema, key))
        return merged
    if not isinstance(new, list) or not isinstance(old, list):
        return new
    if _is_set(name, schema):
        return old + [item for item in new if item not in old]
    keys = _find_keys(name, [*old, *new], schema)
    if not keys:
        return new
    items = (schema or {}).get("items") if schema is not None else None
    merged_list = list(old)
    places = {_make_mark(item, keys): place for place, item in enumerate(old)}
    for item in new:
        place = places.get(_make_mark(item, keys))
        if place is None:
            merged_list.append(item)
        else:
            merged_list[place] = _merge(merged_list[place], item, "", items)
    return merged_list


def _find_child(value: Any, step: str) -> Any:
    """Return the part of a value that a step of FieldsV1 names; None if it is absent."""
    mark, _, rest = step.partition(":")
    if mark == "f":
        return value.get(rest) if isinstance(value, dict) else None
    if not isinstance(value, list):
        return None
    wanted = json.loads(rest)
    if mark == "v":
        return wanted if wanted in value else None
    return next((item for item in value if _is_item(item, wanted)), None)


def _is_item(item: Any, wanted: Json) -> bool:
    return isinstance(item, dict) and all(
        item.get(key, _KEY_DEFAULTS.get(key)) == value for key, value in wanted.items()
    )


def _remove_undeclared(value: Any, mine: Json, now: Json, others: list[Json]) -> Any:
    """Remove what was declared before and is no longer, unless another manager owns it."""
    for step, inner in mine.items():
        if step == ".":
            continue
        child = _find_child(value, step)
        if child is None:
            continue
        shared = [other[step] for other in others if step in other]
        if step not in now and not shared:
            value = _drop_child(value, step, child)
        elif inner:
            value = _replace_child(
                value, step, child, _remove_undeclared(child, inner, now.get(step, {}), shared)
            )
    return value


def _drop_child(value: Any, step: str, child: Any) -> Any:
    if isinstance(value, list):
        return [item for item in value if item is not child and item != child]
    return {key: one for key, one in value.items() if f"f:{key}" != step}


def _replace_child(value: Any, step: str, child: Any, new: Any) -> Any:
    if new is child:
        return value
    if isinstance(value, list):
        return [new if item is child else item for item in value]
    return {**value, step.partition(":")[2]: new}


def _subtract(fields: Json, taken: Json) -> Json:
    left = {}
    for step, inner in fields.items():
        if step not in taken:
            left[step] = inner
        elif inner and (rest := _subtract(inner, taken[step])):
            left[step] = rest
    return left


def _find_conflicts(
    old: Any, new: Any, fields: Json, others: list[Json], path: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield (manager, path) for each value that another applier set to something else."""
    for step, inner in fields.items():
        owners = [one for one in others if step in one["fieldsV1"]]
        if step == "." or not owners:
            continue
        before, after = _find_child(old, step), _find_child(new, step)
        mark, _, rest = step.partition(":")
        where = f"{path}.{rest}" if mark == "f" else f"{path}[{rest}]"
        if inner:
            deeper = [{**one, "fieldsV1": one["fieldsV1"][step]} for one in owners]
            yield from _find_conflicts(before, after, inner, deeper, where)
        elif before != after and not (isinstance(before, dict) and isinstance(after, dict)):
            for owner in owners:
                yield owner["manager"], where


def _make_conflict(found: list[tuple[str, str]]) -> ApiError:
    managers = sorted({manager for manager, _ in found})
    plural = "s" if len(found) > 1 else ""
    if len(managers) == 1:
        who = f'conflict{plural} with "{managers[0]}"'
    else:
        who = "conflicts with " + ", ".join(f'"{manager}"' for manager in managers)
    listed = found[0][1] if len(found) == 1 else "\n- " + "\n- ".join(path for _, path in found)
    many = f"{len(found)} conflict{plural}"
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{manager}"',
            "field": path,
        }
        for manager, path in found
    ]
    message = f"Apply failed with {many}: {who}: {listed}"
    return ApiError(409, "Conflict", message, {"causes": causes})
