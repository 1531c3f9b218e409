"""Just enough protobuf for ``kubectl create namespace`` and the like.

kubectl's commands for single kinds always send protobuf. Read here are the small kinds below, and the fields that
``kubectl create`` writes of Deployments and Jobs; everything else is a 415, and the way around it is ``create -f``.
"""

import base64
from collections.abc import Callable, Iterator
from typing import Any

from scheduler.embedded.store.metadata import write_timestamp
from scheduler.embedded.store.statuses import ApiError, bad_request

Json = dict[str, Any]
# Field number to (JSON name, type); a type is a scalar, "map", "bytes-map", another message, or a list
# of one message that may come again and again.
Message = dict[int, tuple[str, Any]]

MEDIA = "application/vnd.kubernetes.protobuf"
# The media type that clients ask for has an "@", which no media type may have; the answer's has none.
OPENAPI_ASKED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
OPENAPI_MEDIA = OPENAPI_ASKED.replace("@", ".")
_MAGIC = b"k8s\x00"

_TIME: Message = {1: ("seconds", "int"), 2: ("nanos", "int")}
_META: Message = {
    1: ("name", "text"),
    2: ("generateName", "text"),
    3: ("namespace", "text"),
    5: ("uid", "text"),
    6: ("resourceVersion", "text"),
    8: ("creationTimestamp", _TIME),
    11: ("labels", "map"),
    12: ("annotations", "map"),
    14: ("finalizers", "texts"),
}
_PRECONDITIONS: Message = {1: ("uid", "text"), 2: ("resourceVersion", "text")}
_DELETE_OPTIONS: Message = {
    1: ("gracePeriodSeconds", "int"),
    2: ("preconditions", _PRECONDITIONS),
    4: ("propagationPolicy", "text"),
    5: ("dryRun", "texts"),
}
_REFERENCE: Message = {
    1: ("kind", "text"),
    2: ("namespace", "text"),
    3: ("name", "text"),
    4: ("uid", "text"),
    5: ("apiVersion", "text"),
}
_TEMPLATE: Message = {
    1: ("metadata", _META),
    2: (
        "spec",
        {
            2: (
                "containers",
                [
                    {
                        1: ("name", "text"),
                        2: ("image", "text"),
                        3: ("command", "texts"),
                        4: ("args", "texts"),
                        6: ("ports", [{3: ("containerPort", "int"), 4: ("protocol", "text")}]),
                    }
                ],
            ),
            3: ("restartPolicy", "text"),
        },
    ),
}
_KINDS: dict[str, Message] = {
    "Namespace": {1: ("metadata", _META), 2: ("spec", {1: ("finalizers", "texts")})},
    "ConfigMap": {
        1: ("metadata", _META),
        2: ("data", "map"),
        3: ("binaryData", "bytes-map"),
        4: ("immutable", "bool"),
    },
    "Secret": {
        1: ("metadata", _META),
        2: ("data", "bytes-map"),
        3: ("type", "text"),
        4: ("stringData", "map"),
        5: ("immutable", "bool"),
    },
    "ServiceAccount": {1: ("metadata", _META)},
    "PriorityClass": {
        1: ("metadata", _META),
        2: ("value", "int"),
        3: ("globalDefault", "bool"),
        4: ("description", "text"),
        5: ("preemptionPolicy", "text"),
    },
    "Deployment": {
        1: ("metadata", _META),
        2: (
            "spec",
            {
                1: ("replicas", "int"),
                2: ("selector", {1: ("matchLabels", "map")}),
                3: ("template", _TEMPLATE),
            },
        ),
    },
    "Job": {
        1: ("metadata", _META),
        2: (
            "spec",
            {
                1: ("parallelism", "int"),
                2: ("completions", "int"),
                6: ("template", _TEMPLATE),
            },
        ),
    },
    "Binding": {1: ("metadata", _META), 2: ("target", _REFERENCE)},
    "Eviction": {1: ("metadata", _META), 2: ("deleteOptions", _DELETE_OPTIONS)},
    "DeleteOptions": _DELETE_OPTIONS,
}
# These forms are only parts of the real ones: fields that they do not name must not be lost silently.
_IN_PART = frozenset({"Deployment", "Job"})
_ENVELOPE: Message = {
    1: ("type", {1: ("apiVersion", "text"), 2: ("kind", "text")}),
    2: ("raw", "bytes"),
}


def make_openapi_document(title: str, version: str) -> bytes:
    """Make an OpenAPI v2 document without definitions, as gnostic's ``openapi.v2.Document``.

    kubectl looks here for a kind that OpenAPI v3 does not list, and reads nothing but protobuf.
    """
    info = _write_text(1, title) + _write_text(2, version)
    return _write_text(1, "2.0") + bytes((2 << 3 | 2, len(info))) + info


def _write_text(field: int, text: str) -> bytes:
    # Tag and length fit one byte each: a small field number, a text under 128 bytes.
    return bytes((field << 3 | 2, len(text.encode()))) + text.encode()


def read_envelope(data: bytes) -> Json:
    """Decode an object in Kubernetes' protobuf envelope."""
    if not data.startswith(_MAGIC):
        raise bad_request("provided data does not appear to be a protobuf message")
    try:
        envelope = _decode(data[len(_MAGIC) :], _ENVELOPE)
        kind = envelope["type"]["kind"]
        form = _KINDS.get(kind)
        if form is None or (kind in _IN_PART and not _is_known(envelope.get("raw", b""), form)):
            raise _make_unread(kind)
        return {**envelope["type"], **_decode(envelope.get("raw", b""), form)}
    except (IndexError, KeyError, UnicodeDecodeError) as error:
        raise bad_request(f"unable to decode the protobuf message: {error}") from None


def _make_unread(kind: str) -> ApiError:
    return ApiError(
        415,
        "UnsupportedMediaType",
        f"this {kind} came in protobuf, and this server cannot decode it: send it as JSON or YAML,"
        " for example with --dry-run=client -o yaml | kubectl apply -f -",
    )


def _is_known(data: bytes, form: Message) -> bool:
    """Tell whether a message has only fields that its form names."""
    for number, value in _read_fields(data):
        name, kind = form.get(number, ("", ""))
        inner = kind[0] if isinstance(kind, list) else kind
        if isinstance(inner, dict):
            if not _is_known(value, inner):
                return False
        elif not name and not _is_empty(value):
            return False
    return True


def _is_empty(value: Any) -> bool:
    """Tell whether a value is one that Go writes for unset fields, at any depth."""
    if isinstance(value, int):
        return value == 0
    try:
        return all(_is_empty(inner) for _, inner in _read_fields(value))
    except (IndexError, KeyError):
        return False


def _decode(data: bytes, form: Message) -> Json:
    found: Json = {}
    for number, value in _read_fields(data):
        name, kind = form.get(number, ("", ""))
        if not name:
            continue
        decoded = _decode_value(value, kind)
        if kind in ("map", "bytes-map"):
            found.setdefault(name, {}).update(decoded)
        elif kind == "texts" or isinstance(kind, list):
            found.setdefault(name, []).append(decoded)
        # Go writes empty texts and messages; in JSON they are left out.
        elif decoded not in ("", {}, False, None):
            found[name] = decoded
        elif kind == "int":
            found[name] = 0
    return found


def _decode_value(value: Any, kind: Any) -> Any:
    if kind is _TIME:
        seconds = _decode(value, _TIME).get("seconds", 0)
        return write_timestamp(seconds) if seconds else ""
    if isinstance(kind, list):
        return _decode(value, kind[0])
    if isinstance(kind, dict):
        return _decode(value, kind)
    return _SCALARS[kind](value)


def _decode_pair(value: bytes) -> Json:
    pair = _decode(value, {1: ("key", "text"), 2: ("value", "text")})
    return {pair.get("key", ""): pair.get("value", "")}


def _decode_bytes_pair(value: bytes) -> Json:
    pair = _decode(value, {1: ("key", "text"), 2: ("value", "bytes")})
    return {pair.get("key", ""): base64.b64encode(pair.get("value", b"")).decode()}


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "text": lambda value: value.decode(),
    "texts": lambda value: value.decode(),
    "bool": bool,
    "int": int,
    "bytes": bytes,
    "map": _decode_pair,
    "bytes-map": _decode_bytes_pair,
}


def _read_fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield field numbers with raw values: integers or bytes."""
    place = 0
    while place < len(data):
        tag, place = _read_varint(data, place)
        match tag & 7:
            case 0:
                value, place = _read_varint(data, place)
                # Negative numbers are written as 64-bit two's complements.
                yield tag >> 3, value - (1 << 64) if value >> 63 else value
            case 1:
                yield tag >> 3, data[place : place + 8]
                place += 8
            case 2:
                length, place = _read_varint(data, place)
                yield tag >> 3, data[place : place + length]
                place += length
            case 5:
                yield tag >> 3, data[place : place + 4]
                place += 4
            case _:
                raise KeyError("wire type")


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
