"""JSON patch (RFC 6902) and JSON merge patch (RFC 7396).

Both return a new body and leave the old one as it is; unchanged parts are shared.
"""

import copy
from typing import Any

from scheduler.embedded.store.statuses import ApiError, bad_request

Json = dict[str, Any]


def merge_patch(old: Any, patch: Any) -> Any:
    """Apply a merge patch: objects merge, null deletes, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def apply_operations(old: Json, operations: Any) -> Json:
    """Apply a JSON patch; a failed operation is a 422 as in the real server."""
    if not isinstance(operations, list):
        raise bad_request("error decoding patch: a JSON patch is a list of operations")
    # Paths may point anywhere, so the patch works on a copy; JSON patches are rare and objects small.
    document = copy.deepcopy(old)
    for operation in operations:
        try:
            document = _apply(document, operation)
        except (KeyError, IndexError, TypeError, ValueError):
            raise _make_rejection() from None
    return document


def _make_rejection() -> ApiError:
    # As in the real server, the answer does not say which operation was wrong, nor why.
    message = "the server rejected our request due to an error in our request"
    return ApiError(422, "Invalid", message, {})


def _apply(document: Any, operation: Json) -> Any:
    path = _split(operation["path"])
    match operation["op"]:
        case "test":
            if _read(document, path) != operation.get("value"):
                raise ValueError("testing value failed")
            return document
        case "remove":
            _remove(document, path)
            return document
        case "add":
            return _add(document, path, copy.deepcopy(operation["value"]))
        case "replace":
            return _replace(document, path, copy.deepcopy(operation["value"]))
        case "move":
            source = _split(operation["from"])
            value = _read(document, source)
            _remove(document, source)
            return _add(document, path, value)
        case "copy":
            value = copy.deepcopy(_read(document, _split(operation["from"])))
            return _add(document, path, value)
    raise ValueError(f"unexpected operation {operation['op']!r}")


def _split(pointer: str) -> list[str]:
    if not pointer:
        return []
    if not pointer.startswith("/"):
        raise ValueError("a path starts with a slash")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def _read(document: Any, path: list[str]) -> Any:
    for part in path:
        document = document[_index(document, part)]
    return document


def _index(container: Any, part: str) -> Any:
    if not isinstance(container, list):
        return part
    index = int(part)
    # The library of the real server accepts negative indices, too; no client should rely on that.
    if index < 0:
        raise IndexError(part)
    return index


def _remove(document: Any, path: list[str]) -> None:
    parent = _read(document, path[:-1])
    del parent[_index(parent, path[-1])]


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _read(document, path[:-1])
    if isinstance(parent, list):
        index = len(parent) if path[-1] == "-" else _index(parent, path[-1])
        if index > len(parent):
            raise IndexError(path[-1])
        parent.insert(index, value)
    else:
        parent[path[-1]] = value
    return document


def _replace(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    # To replace an absent field adds it: the library of the real server allows that.
    parent = _read(document, path[:-1])
    parent[_index(parent, path[-1])] = value
    return document
