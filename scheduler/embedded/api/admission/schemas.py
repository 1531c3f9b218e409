"""Structural OpenAPI v3 schemas of CRDs: defaults, unknown fields, validation.

The messages are those of the real server. Not evaluated: ``x-kubernetes-validations`` (CEL rules
pass, whatever they say, and the client is warned of it), ``format``, and references (which structural schemas may not have).
"""

import copy
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from scheduler.embedded.store.statuses import Cause, invalid_value, required, unsupported_value

Json = dict[str, Any]

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_OBJECT_HEAD = frozenset({"apiVersion", "kind", "metadata"})


def fill_in(schema: Json, value: Any) -> None:
    """Set the defaults of missing fields, in place."""
    if isinstance(value, list):
        for item in value:
            fill_in(schema.get("items") or {}, item)
        return
    if not isinstance(value, dict):
        return
    properties = schema.get("properties") or {}
    _fill_in_properties(properties, value)
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        for name, inner_value in value.items():
            if name not in properties:
                fill_in(extra, inner_value)


def _fill_in_properties(properties: Json, value: Json) -> None:
    for name, inner in properties.items():
        # A null where none is allowed counts as if the field had not been sent.
        if name in value and value[name] is None and not inner.get("nullable"):
            del value[name]
        if "default" in inner and name not in value:
            value[name] = copy.deepcopy(inner["default"])
        if name in value:
            fill_in(inner, value[name])


def prune(schema: Json, value: Any) -> list[str]:
    """Remove fields the schema does not know, in place; return their paths."""
    return list(_prune(schema, value, "", root=True))


def _prune(schema: Json, value: Any, path: str, *, root: bool = False) -> Iterator[str]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _prune(schema.get("items") or {}, item, f"{path}[{index}]")
        return
    if not isinstance(value, dict):
        return
    properties = schema.get("properties") or {}
    extra = schema.get("additionalProperties")
    keep_head = root or schema.get(_EMBEDDED)
    for name in list(value):
        where = f"{path}.{name}" if path else name
        if keep_head and name in _OBJECT_HEAD:
            continue
        if name in properties:
            yield from _prune(properties[name], value[name], where)
        elif isinstance(extra, dict):
            yield from _prune(extra, value[name], where)
        elif not extra and not schema.get(_PRESERVE):
            del value[name]
            yield where


def find_problems(schema: Json, body: Json) -> list[Cause]:
    """Return where an object breaks its schema."""
    checked = {name: value for name, value in body.items() if name not in _OBJECT_HEAD}
    # Rules on kind, apiVersion and metadata are for clients; the server checks metadata itself.
    rules = {
        **schema,
        "required": [n for n in schema.get("required") or () if n not in _OBJECT_HEAD],
    }
    return list(_check(rules, checked, ""))


def _check(schema: Json, value: Any, path: str) -> Iterator[Cause]:
    wrong_type = _find_type_problem(schema, value, path)
    if wrong_type is not None:
        # As in the real server, a value of the wrong type is not checked any further.
        yield wrong_type
        if isinstance(value, float) and schema.get("type") == "integer":
            text = f"Checked value must be of type integer (default format) in {path}"
            yield invalid_value("<nil>", "", text)
        return
    if value is None:
        return
    if "enum" in schema and value not in schema["enum"]:
        choices = [one if isinstance(one, str) else json.dumps(one) for one in schema["enum"]]
        yield unsupported_value(path, value, choices)
    yield from _check_combined(schema, value, path)
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield from _check_number(schema, value, path)
    elif isinstance(value, str):
        yield from _check_text(schema, value, path)
    elif isinstance(value, list):
        yield from _check_list(schema, value, path)
    elif isinstance(value, dict):
        yield from _check_object(schema, value, path)


def _find_type_problem(schema: Json, value: Any, path: str) -> Cause | None:
    wanted = schema.get("type", "")
    if schema.get(_INT_OR_STRING):
        wanted = "integer,string"
    found = name_type(value)
    if not wanted or (value is None and schema.get("nullable")) or found in wanted.split(","):
        return None
    whole = isinstance(value, float) and value.is_integer()
    if (found == "integer" and wanted == "number") or (whole and "integer" in wanted):
        return None
    message = f'{_find_name(path)} in body must be of type {wanted}: "{found}"'
    return Cause("FieldValueTypeInvalid", path, f'Invalid value: "{found}": {message}')


def name_type(value: Any) -> str:
    """Return the JSON type of a value."""
    for kind, name in (
        (bool, "boolean"),
        (int, "integer"),
        (float, "number"),
        (str, "string"),
        (list, "array"),
        (dict, "object"),
    ):
        if isinstance(value, kind):
            return name
    return "null"


def _find_name(path: str) -> str:
    return path or "<nil>"


def _check_combined(schema: Json, value: Any, path: str) -> Iterator[Cause]:
    for inner in schema.get("allOf") or ():
        yield from _check(inner, value, path)
    any_of = schema.get("anyOf") or ()
    if any_of and all(any(_check(inner, value, path)) for inner in any_of):
        text = f'"{path}" must validate at least one schema (anyOf)'
        yield invalid_value(path, "", text)
    if one_of := schema.get("oneOf"):
        valid = sum(not any(_check(inner, value, path)) for inner in one_of)
        if valid != 1:
            found = "Found none valid" if valid == 0 else f"Found {valid} valid alternatives"
            text = f'"{path}" must validate one and only one schema (oneOf). {found}'
            yield invalid_value(path, "", text)
    if (inner := schema.get("not")) and not any(_check(inner, value, path)):
        yield invalid_value(path, "", f'"{path}" must not validate the schema (not)')


def _check_number(schema: Json, value: float, path: str) -> Iterator[Cause]:
    where = f"{path} in body should be"
    if (low := schema.get("minimum")) is not None:
        if schema.get("exclusiveMinimum") and value <= low:
            yield invalid_value(path, value, f"{where} greater than {low}")
        elif value < low:
            yield invalid_value(path, value, f"{where} greater than or equal to {low}")
    if (high := schema.get("maximum")) is not None:
        if schema.get("exclusiveMaximum") and value >= high:
            yield invalid_value(path, value, f"{where} less than {high}")
        elif value > high:
            yield invalid_value(path, value, f"{where} less than or equal to {high}")
    if (factor := schema.get("multipleOf")) is not None and value % factor:
        yield invalid_value(path, value, f"{where} a multiple of {factor}")


def _check_text(schema: Json, value: str, path: str) -> Iterator[Cause]:
    # Only the first problem of a text is named.
    pattern = schema.get("pattern")
    if (most := schema.get("maxLength")) is not None and len(value) > most:
        yield Cause("FieldValueTooLong", path, f"Too long: may not be more than {most} bytes")
    elif (least := schema.get("minLength")) is not None and len(value) < least:
        text = f"{path} in body should be at least {least} chars long"
        yield invalid_value(path, value, text)
    elif pattern and not re.search(pattern, value):
        yield invalid_value(path, value, f"{path} in body should match '{pattern}'")


def _check_list(schema: Json, value: list[Any], path: str) -> Iterator[Cause]:
    if (most := schema.get("maxItems")) is not None and len(value) > most:
        yield _refuse_too_many(path, len(value), most)
    if (least := schema.get("minItems")) is not None and len(value) < least:
        text = f"{path} in body should have at least {least} items"
        yield invalid_value(path, len(value), text)
    inner = schema.get("items") or {}
    for index, item in enumerate(value):
        yield from _check(inner, item, f"{path}[{index}]")
    identity = _find_identity(schema)
    seen = []
    for index, item in enumerate(value if identity else ()):
        mark = identity(item) if identity else None
        if mark in seen:
            text = json.dumps(mark, separators=(",", ":"))
            where = f"{path}[{index}]"
            yield Cause("FieldValueDuplicate", where, f"Duplicate value: {text}")
        seen.append(mark)


def _find_identity(schema: Json) -> Callable[[Any], Any] | None:
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return lambda item: item
        case "map":
            keys = schema.get("x-kubernetes-list-map-keys") or []
            return lambda item: {key: item.get(key) for key in keys}
    return None


def _check_object(schema: Json, value: Json, path: str) -> Iterator[Cause]:
    if (most := schema.get("maxProperties")) is not None and len(value) > most:
        yield _refuse_too_many(path, len(value), most)
    if (least := schema.get("minProperties")) is not None and len(value) < least:
        text = f"{path} in body should have at least {least} properties"
        yield invalid_value(path, len(value), text)
    properties = schema.get("properties") or {}
    extra = schema.get("additionalProperties")
    for name in sorted(value):
        inner = properties.get(name, extra if isinstance(extra, dict) else None)
        if inner is not None:
            yield from _check(inner, value[name], f"{path}.{name}" if path else name)
    for name in schema.get("required") or ():
        if name not in value:
            yield required(f"{path}.{name}" if path else name)


def _refuse_too_many(path: str, found: int, most: int) -> Cause:
    items = "item" if most == 1 else "items"
    return Cause("FieldValueTooMany", path, f"Too many: {found}: must have at most {most} {items}")
