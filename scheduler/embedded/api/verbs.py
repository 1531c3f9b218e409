"""Answers decoded requests, with one function per verb."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from scheduler.embedded.api import bodies, tables
from scheduler.embedded.api.listing import Lister, Page, read_truth
from scheduler.embedded.api.paths import Target
from scheduler.embedded.api.writing import (
    applying,
    bindings,
    evictions,
    patching,
    scales,
    strategic,
)
from scheduler.embedded.api.writing.registry import Options, Registry
from scheduler.embedded.store.kinds import Kind
from scheduler.embedded.store.statuses import (
    NoSuchPathError,
    bad_request,
    invalid,
    invalid_value,
    method_not_allowed,
    success,
    unsupported_media_type,
)
from scheduler.embedded.store.store import Record

Json = dict[str, Any]

_ENCODER = msgspec.json.Encoder()
_PATCHES = (
    bodies.JSON_PATCH,
    bodies.MERGE_PATCH,
    bodies.STRATEGIC_PATCH,
    bodies.APPLY_PATCH,
)


class Request(NamedTuple):
    """A request as the verbs see it."""

    target: Target
    query: Mapping[str, str]
    media: str
    raw: bytes
    accepted: bodies.Accepted
    warnings: list[str]

    def read_options(self) -> Options:
        """Read the options of a write."""
        return Options(
            dry_run="dryRun" in self.query,
            field_validation=self.query.get("fieldValidation") or "Warn",
            warnings=self.warnings,
        )

    def read_object(self) -> Json:
        """Read the object in the body, of any kind."""
        return bodies.read_object(self.raw, self.media)

    def read_own_object(self) -> Json:
        """Read the object in the body, which must be of the kind of the path."""
        sent = self.read_object()
        if self.target.kind.custom:
            _check_custom_type(self.target.kind, sent, self.raw)
        else:
            _check_type(self.target.kind, sent)
        return sent


class JsonAnswer(NamedTuple):
    """Status code and JSON body."""

    code: int
    body: bytes


def get_object(registry: Registry, request: Request) -> JsonAnswer:
    """Answer GET of one object; the status subresource reads like the object."""
    kind, namespace, name, subresource = request.target
    _check_subresource(kind, subresource)
    record = registry.get(kind, namespace, name)
    return _answer_scale(record) if subresource == "scale" else _answer_object(200, request, record)


def list_objects(lister: Lister, request: Request) -> JsonAnswer:
    """Answer GET of a collection."""
    kind, namespace, _, _ = request.target
    page = lister.read_page(kind, namespace, request.query)
    if request.accepted.form == "Table":
        table = tables.make_table(
            kind, page.records, request.query.get("includeObject", "Metadata")
        )
        table["metadata"] = _make_list_metadata(page)
        return JsonAnswer(200, _ENCODER.encode(table))
    if request.accepted.form.startswith("PartialObjectMetadata"):
        return JsonAnswer(200, _make_partial_list(page, kind))
    head = _ENCODER.encode(
        {
            "kind": kind.list_kind,
            "apiVersion": kind.api_version,
            "metadata": _make_list_metadata(page),
        }
    )
    # Items of lists of custom kinds have kind and apiVersion, those of built-in kinds do not.
    start = kind.prefix if kind.custom else b"{"
    items = b",".join([start + record.encode_tail(kind) for record in page.records])
    return JsonAnswer(200, head[:-1] + b',"items":[' + items + b"]}")


def create_object(registry: Registry, request: Request) -> JsonAnswer:
    """Answer POST."""
    kind, namespace, name, subresource = request.target
    if not name and subresource == "binding":
        return bind_pod(registry, request, namespace, name)
    if not name:
        record = registry.create(kind, namespace, request.read_own_object(), request.read_options())
        return _answer_object(201, request, record)
    if kind.resource != "pods":
        raise method_not_allowed() if not subresource else NoSuchPathError
    if subresource == "binding":
        return bind_pod(registry, request, namespace, name)
    if subresource == "eviction":
        sent = request.read_object() if request.raw else {}
        return JsonAnswer(
            201,
            _ENCODER.encode(
                evictions.evict_pod(registry, namespace, name, sent, request.read_options())
            ),
        )
    raise NoSuchPathError


def bind_pod(registry: Registry, request: Request, namespace: str, name: str) -> JsonAnswer:
    """Answer POST of a Binding, at the pod or in the collection of bindings."""
    binding = request.read_object()
    meta = binding.get("metadata") or {}
    if meta.get("namespace", namespace) != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    key = (namespace, name or meta.get("name", ""))
    bindings.bind_pod(registry, key, binding, request.read_options())
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    }
    return JsonAnswer(201, _ENCODER.encode(body))


def update_object(registry: Registry, request: Request) -> JsonAnswer:
    """Answer PUT."""
    kind, namespace, name, subresource = request.target
    if subresource == "scale" and kind.has_scale:
        scale = request.read_object()
        key = (namespace, name)
        return _answer_scale(
            scales.update_scale(registry, kind, key, lambda _: scale, request.read_options())
        )
    sent = request.read_own_object()
    if kind.resource == "namespaces" and subresource == "finalize":
        subresource = ""
    _check_subresource(kind, subresource)
    record, created = registry.update(
        kind, (namespace, name), lambda _: sent, subresource, request.read_options()
    )
    return _answer_object(201 if created else 200, request, record)


def patch_object(registry: Registry, request: Request) -> JsonAnswer:
    """Answer PATCH with any of the four kinds of patches."""
    kind, namespace, name, subresource = request.target
    _check_subresource(kind, subresource)
    media = request.media
    if media not in _PATCHES or (media == bodies.STRATEGIC_PATCH and kind.custom):
        listed = [one for one in _PATCHES if one != bodies.STRATEGIC_PATCH or not kind.custom]
        raise unsupported_media_type(listed)
    key = (namespace, name)
    if media == bodies.APPLY_PATCH:
        if subresource == "scale":
            raise method_not_allowed()
        record, created = applying.apply_object(
            registry,
            request.target,
            request.read_object(),
            manager=request.query.get("fieldManager", ""),
            force=read_truth(request.query.get("force", "false")),
            options=request.read_options(),
        )
        return _answer_object(201 if created else 200, request, record)
    operations = bodies.read_json(request.raw)
    if media != bodies.JSON_PATCH and not isinstance(operations, dict):
        raise bad_request("error decoding patch: not an object")

    def change(old: Json | None) -> Json:
        # A patch is applied to the object in the form of the patch's API version.
        before = old or {}
        if kind.from_store is not None:
            before = kind.from_store(before)
        if media == bodies.JSON_PATCH:
            return patching.apply_operations(before, operations)
        if media == bodies.MERGE_PATCH:
            return dict(patching.merge_patch(before, operations))
        return strategic.apply_patch(before, operations)

    if subresource == "scale":
        return _answer_scale(
            scales.update_scale(registry, kind, key, change, request.read_options())
        )
    registry.get(kind, *key)
    record, _ = registry.update(kind, key, change, subresource, request.read_options())
    return _answer_object(200, request, record)


def delete_object(registry: Registry, request: Request) -> JsonAnswer:
    """Answer DELETE of one object."""
    kind, namespace, name, subresource = request.target
    if subresource:
        raise method_not_allowed()
    record, gone = registry.delete(
        kind, (namespace, name), _read_delete_options(request), request.read_options()
    )
    if gone and not kind.returns_deleted:
        uid = record.body["metadata"]["uid"]
        return JsonAnswer(200, _ENCODER.encode(success(name, kind.resource, uid)))
    return _answer_object(200, request, record)


def delete_collection(registry: Registry, lister: Lister, request: Request) -> JsonAnswer:
    """Answer DELETE of a collection: everything the selectors match."""
    kind, namespace, _, _ = request.target
    page = lister.read_page(kind, namespace, request.query)
    options = _read_delete_options(request)
    for record in page.records:
        registry.delete(kind, record.key, options, request.read_options())
    head = {
        "kind": kind.list_kind,
        "apiVersion": kind.api_version,
        "metadata": {"resourceVersion": str(registry.store.version)},
    }
    items = b",".join([b"{" + record.encode_tail(kind) for record in page.records])
    return JsonAnswer(200, _ENCODER.encode(head)[:-1] + b',"items":[' + items + b"]}")


def _read_delete_options(request: Request) -> Json:
    options = request.read_object() if request.raw else {}
    if "gracePeriodSeconds" in request.query:
        options["gracePeriodSeconds"] = int(request.query["gracePeriodSeconds"])
    return options


def _check_type(kind: Kind, sent: Json) -> None:
    """Refuse a wrong kind; objects of built-in kinds may leave their kind out."""
    name, version = sent.get("kind", kind.kind), sent.get("apiVersion", kind.api_version)
    start = f'{name} in version "{kind.version}" cannot be handled as a {kind.kind}: '
    if version != kind.api_version:
        raise bad_request(f'{start}no kind "{name}" is registered for version "{version}"')
    if name != kind.kind:
        raise bad_request(f"{start}unknown conversion")


def _check_custom_type(kind: Kind, sent: Json, raw: bytes) -> None:
    """Refuse objects of custom kinds without kind and apiVersion, or with wrong ones."""
    name, version = sent.get("kind", ""), sent.get("apiVersion", "")
    if not name:
        text = raw.decode(errors="replace")
        short = text if len(text) <= 30 else f"{text[:30]} ..."
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind.kind}):"
            f" Object 'Kind' is missing in '{text}' ({short})"
        )
    if version != kind.api_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version"
            f" ({kind.api_version})"
        )
    if name != kind.kind:
        cause = invalid_value("kind", name, f"must be {kind.kind}")
        object_name = (sent.get("metadata") or {}).get("name", "")
        raise invalid(f"{name}.{kind.group}", object_name, [cause])


def _check_subresource(kind: Kind, subresource: str) -> None:
    served = {"": True, "status": kind.has_status, "scale": kind.has_scale}
    if not served.get(subresource):
        raise NoSuchPathError


def _answer_scale(record: Record) -> JsonAnswer:
    return JsonAnswer(200, _ENCODER.encode(scales.make_scale(record.body)))


def _answer_object(code: int, request: Request, record: Record) -> JsonAnswer:
    kind = request.target.kind
    if request.accepted.form == "Table":
        table = tables.make_table(kind, [record], request.query.get("includeObject", "Metadata"))
        table["metadata"] = {"resourceVersion": record.body["metadata"]["resourceVersion"]}
        return JsonAnswer(code, _ENCODER.encode(table))
    if request.accepted.form == "PartialObjectMetadata":
        return JsonAnswer(code, _ENCODER.encode(tables.make_partial(record)))
    return JsonAnswer(code, record.encode_whole(kind))


def _make_list_metadata(page: Page) -> Json:
    metadata: Json = {"resourceVersion": str(page.version)}
    if page.continues:
        metadata["continue"] = page.continues
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
    return metadata


def _make_partial_list(page: Page, _: Kind) -> bytes:
    return _ENCODER.encode(
        {
            "kind": "PartialObjectMetadataList",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": _make_list_metadata(page),
            "items": [tables.make_partial(record) for record in page.records],
        }
    )
