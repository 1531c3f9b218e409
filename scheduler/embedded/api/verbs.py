"""One function per verb: from a decoded request to an answer."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from scheduler.embedded.api import bodies, tables
from scheduler.embedded.api.listing import Lister, Page, truth
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

    def options(self) -> Options:
        """Return how a write is to be done."""
        return Options(
            dry_run="dryRun" in self.query,
            field_validation=self.query.get("fieldValidation") or "Warn",
            warnings=self.warnings,
        )

    def object(self) -> Json:
        """Return the object in the body, of whatever kind."""
        return bodies.read_object(self.raw, self.media)

    def own_object(self) -> Json:
        """Return the object in the body, which has to be of the kind of the path."""
        sent = self.object()
        if self.target.kind.custom:
            _check_custom_type(self.target.kind, sent, self.raw)
        else:
            _check_type(self.target.kind, sent)
        return sent


class JsonAnswer(NamedTuple):
    """Status code and JSON body."""

    code: int
    body: bytes


def get(registry: Registry, request: Request) -> JsonAnswer:
    """Answer GET of one object; the status subresource reads like the object."""
    kind, namespace, name, subresource = request.target
    _check_subresource(kind, subresource)
    record = registry.get(kind, namespace, name)
    return _scale(record) if subresource == "scale" else _one(200, request, record)


def list_(lister: Lister, request: Request) -> JsonAnswer:
    """Answer GET of a collection."""
    kind, namespace, _, _ = request.target
    page = lister.page(kind, namespace, request.query)
    if request.accepted.form == "Table":
        table = tables.make_table(
            kind, page.records, request.query.get("includeObject", "Metadata")
        )
        table["metadata"] = _list_metadata(page)
        return JsonAnswer(200, _ENCODER.encode(table))
    if request.accepted.form.startswith("PartialObjectMetadata"):
        return JsonAnswer(200, _partial_list(page, kind))
    head = _ENCODER.encode(
        {
            "kind": kind.list_kind,
            "apiVersion": kind.api_version,
            "metadata": _list_metadata(page),
        }
    )
    # Items of built-in lists carry neither kind nor apiVersion, those of custom ones do.
    start = kind.prefix if kind.custom else b"{"
    items = b",".join([start + record.tail(kind) for record in page.records])
    return JsonAnswer(200, head[:-1] + b',"items":[' + items + b"]}")


def create(registry: Registry, request: Request) -> JsonAnswer:
    """Answer POST."""
    kind, namespace, name, subresource = request.target
    if not name and subresource == "binding":
        return bind(registry, request, namespace, name)
    if not name:
        record = registry.create(kind, namespace, request.own_object(), request.options())
        return _one(201, request, record)
    if kind.resource != "pods":
        raise method_not_allowed() if not subresource else NoSuchPathError
    if subresource == "binding":
        return bind(registry, request, namespace, name)
    if subresource == "eviction":
        sent = request.object() if request.raw else {}
        return JsonAnswer(
            201,
            _ENCODER.encode(evictions.evict(registry, namespace, name, sent, request.options())),
        )
    raise NoSuchPathError


def bind(registry: Registry, request: Request, namespace: str, name: str) -> JsonAnswer:
    """Answer POST of a Binding, at the pod or in the collection of bindings."""
    binding = request.object()
    meta = binding.get("metadata") or {}
    if meta.get("namespace", namespace) != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    key = (namespace, name or meta.get("name", ""))
    bindings.bind(registry, key, binding, request.options())
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    }
    return JsonAnswer(201, _ENCODER.encode(body))


def update(registry: Registry, request: Request) -> JsonAnswer:
    """Answer PUT."""
    kind, namespace, name, subresource = request.target
    if subresource == "scale" and kind.has_scale:
        scale = request.object()
        key = (namespace, name)
        return _scale(scales.update(registry, kind, key, lambda _: scale, request.options()))
    sent = request.own_object()
    if kind.resource == "namespaces" and subresource == "finalize":
        subresource = ""
    _check_subresource(kind, subresource)
    record, created = registry.update(
        kind, (namespace, name), lambda _: sent, subresource, request.options()
    )
    return _one(201 if created else 200, request, record)


def patch(registry: Registry, request: Request) -> JsonAnswer:
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
        record, created = applying.apply(
            registry,
            request.target,
            request.object(),
            manager=request.query.get("fieldManager", ""),
            force=truth(request.query.get("force", "false")),
            options=request.options(),
        )
        return _one(201 if created else 200, request, record)
    operations = bodies.read_json(request.raw)
    if media != bodies.JSON_PATCH and not isinstance(operations, dict):
        raise bad_request("error decoding patch: not an object")

    def change(old: Json | None) -> Json:
        # Patches meet the object in the form of their own API version.
        before = old or {}
        if kind.from_store is not None:
            before = kind.from_store(before)
        if media == bodies.JSON_PATCH:
            return patching.apply_operations(before, operations)
        if media == bodies.MERGE_PATCH:
            return dict(patching.merge(before, operations))
        return strategic.apply(before, operations)

    if subresource == "scale":
        return _scale(scales.update(registry, kind, key, change, request.options()))
    registry.get(kind, *key)
    record, _ = registry.update(kind, key, change, subresource, request.options())
    return _one(200, request, record)


def delete(registry: Registry, request: Request) -> JsonAnswer:
    """Answer DELETE of one object."""
    kind, namespace, name, subresource = request.target
    if subresource:
        raise method_not_allowed()
    record, gone = registry.delete(
        kind, (namespace, name), _delete_options(request), request.options()
    )
    if gone and not kind.returns_deleted:
        uid = record.body["metadata"]["uid"]
        return JsonAnswer(200, _ENCODER.encode(success(name, kind.resource, uid)))
    return _one(200, request, record)


def delete_collection(registry: Registry, lister: Lister, request: Request) -> JsonAnswer:
    """Answer DELETE of a collection: everything the selectors match."""
    kind, namespace, _, _ = request.target
    page = lister.page(kind, namespace, request.query)
    options = _delete_options(request)
    for record in page.records:
        registry.delete(kind, record.key, options, request.options())
    head = {
        "kind": kind.list_kind,
        "apiVersion": kind.api_version,
        "metadata": {"resourceVersion": str(registry.store.version)},
    }
    items = b",".join([b"{" + record.tail(kind) for record in page.records])
    return JsonAnswer(200, _ENCODER.encode(head)[:-1] + b',"items":[' + items + b"]}")


def _delete_options(request: Request) -> Json:
    options = request.object() if request.raw else {}
    if "gracePeriodSeconds" in request.query:
        options["gracePeriodSeconds"] = int(request.query["gracePeriodSeconds"])
    return options


def _check_type(kind: Kind, sent: Json) -> None:
    """Built-in kinds may leave out what they are, but must not claim to be something else."""
    name, version = sent.get("kind", kind.kind), sent.get("apiVersion", kind.api_version)
    start = f'{name} in version "{kind.version}" cannot be handled as a {kind.kind}: '
    if version != kind.api_version:
        raise bad_request(f'{start}no kind "{name}" is registered for version "{version}"')
    if name != kind.kind:
        raise bad_request(f"{start}unknown conversion")


def _check_custom_type(kind: Kind, sent: Json, raw: bytes) -> None:
    """Objects of custom kinds have to say what they are."""
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


def _scale(record: Record) -> JsonAnswer:
    return JsonAnswer(200, _ENCODER.encode(scales.make_scale(record.body)))


def _one(code: int, request: Request, record: Record) -> JsonAnswer:
    kind = request.target.kind
    if request.accepted.form == "Table":
        table = tables.make_table(kind, [record], request.query.get("includeObject", "Metadata"))
        table["metadata"] = {"resourceVersion": record.body["metadata"]["resourceVersion"]}
        return JsonAnswer(code, _ENCODER.encode(table))
    if request.accepted.form == "PartialObjectMetadata":
        return JsonAnswer(code, _ENCODER.encode(tables.partial(record)))
    return JsonAnswer(code, record.encoded(kind))


def _list_metadata(page: Page) -> Json:
    metadata: Json = {"resourceVersion": str(page.version)}
    if page.continues:
        metadata["continue"] = page.continues
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
    return metadata


def _partial_list(page: Page, _: Kind) -> bytes:
    return _ENCODER.encode(
        {
            "kind": "PartialObjectMetadataList",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": _list_metadata(page),
            "items": [tables.partial(record) for record in page.records],
        }
    )
