"""Media types: reads what clients send, and chooses what they get."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from scheduler.documents import reading
from scheduler.embedded.api import protobuf
from scheduler.embedded.store.statuses import (
    ApiError,
    bad_request,
    not_acceptable,
    unsupported_media_type,
)

Json = dict[str, Any]

JSON = "application/json"
YAML = "application/yaml"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_DECODER = msgspec.json.Decoder()


class Accepted(NamedTuple):
    """How a client wants the answer: as it is, or transformed by the server."""

    form: str = ""
    version: str = ""


def choose_accepted(header: str) -> Accepted:
    """Choose the first form of JSON that the client names and this server can write."""
    if not header or header in {JSON, "*/*"}:
        return Accepted()
    for part in header.split(","):
        media, *parameters = (piece.strip() for piece in part.split(";"))
        options = dict(parameter.partition("=")[::2] for parameter in parameters)
        if media not in {JSON, "application/*", "*/*"}:
            continue
        form, version = options.get("as", ""), options.get("v", "")
        if form in {"", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"}:
            return Accepted(form, version)
        if form == "APIGroupDiscoveryList" and version in {"v2", "v2beta1"}:
            return Accepted(form, version)
    raise not_acceptable([JSON])


def read_media_type(headers: Mapping[str, str]) -> str:
    """Return the type of the body without its parameters."""
    return headers.get("Content-Type", JSON).partition(";")[0].strip()


def read_object(raw: bytes, media: str) -> Json:
    """Decode one object."""
    if media in {JSON, "text/plain", "application/octet-stream", ""}:
        value = read_json(raw)
    elif media in {YAML, "application/x-yaml", "text/yaml", APPLY_PATCH}:
        value = _read_yaml(raw)
    elif media == protobuf.MEDIA:
        value = protobuf.read_envelope(raw)
    else:
        raise unsupported_media_type([JSON, YAML])
    if not isinstance(value, dict):
        raise bad_request("couldn't get version/kind; json parse error: not an object")
    return value


def read_json(raw: bytes) -> Any:
    """Decode JSON of any shape."""
    try:
        return _DECODER.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _make_unreadable(error) from None


def _read_yaml(raw: bytes) -> Any:
    try:
        return reading.read_first(raw.decode())
    except ValueError as error:
        raise _make_unreadable(error) from None


def _make_unreadable(error: Exception) -> ApiError:
    return bad_request(f"couldn't get version/kind; json parse error: {error}")
