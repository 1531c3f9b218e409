"""The HTTP front of the cluster: one handler for all paths, no router, no middleware.

A router would look up every path in a table of hundreds; splitting it by slashes is faster, and
Kubernetes paths need no more.
"""

import contextlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec
from aiohttp import web

from scheduler.embedded.api import (
    bodies,
    containers,
    discovery,
    paths,
    protobuf,
    reviews,
    verbs,
    watching,
)
from scheduler.embedded.api.listing import Lister, read_truth
from scheduler.embedded.api.serving import Definitions
from scheduler.embedded.api.writing.namespaces import Namespaces
from scheduler.embedded.api.writing.priorities import seed_classes
from scheduler.embedded.api.writing.registry import Registry
from scheduler.embedded.store.builtin import BUILT_IN, PODS
from scheduler.embedded.store.kinds import Kinds
from scheduler.embedded.store.statuses import (
    ApiError,
    NoSuchPathError,
    method_not_allowed,
)
from scheduler.embedded.store.store import Store

Json = dict[str, Any]
Serve = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_ENCODER = msgspec.json.Encoder()
# The verb by method, and by whether one object is named.
_VERBS = {
    ("GET", True): "get",
    ("GET", False): "list",
    ("HEAD", True): "get",
    ("HEAD", False): "list",
    ("POST", True): "create",
    ("POST", False): "create",
    ("PUT", True): "update",
    ("PATCH", True): "patch",
    ("DELETE", True): "delete",
    ("DELETE", False): "deletecollection",
}
_WRITERS: dict[str, Callable[[Registry, verbs.Request], verbs.JsonAnswer]] = {
    "get": verbs.get_object,
    "create": verbs.create_object,
    "update": verbs.update_object,
    "patch": verbs.patch_object,
    "delete": verbs.delete_object,
}
_HEALTH = frozenset({"/readyz", "/livez", "/healthz"})
# A larger body is certainly no object that etcd would take.
_MAX_BODY = 3 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of the server."""

    # How many changes are kept per resource: a watch that resumes from an earlier one gets 410.
    history: int = 10_000
    bookmark_seconds: float = 30.0
    # If a token is set, every request must have it; without one everybody on this machine may write.
    token: str | None = None
    # By resource: why its objects are refused, for resources that are served but that nothing here runs.
    refused: Mapping[str, str] = field(default_factory=dict)


class Server:
    """The API server: state, rules and the handler that exposes them."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.store = Store(self.settings.history)
        self.kinds = Kinds(BUILT_IN)
        self.registry = Registry(self.store)
        self.lister = Lister(self.store)
        # A hook for tests. It is called with a request and with the function that serves it. It may raise an
        # ApiError, or answer late, differently, or not at all, before or after the request is served.
        self.around: Callable[[web.BaseRequest, Serve], Awaitable[web.StreamResponse]] | None = None
        self._definitions = Definitions(self.store, self.kinds)
        self._namespaces = Namespaces(self.registry, self.kinds)
        seed_classes(self.registry)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Serve one HTTP request."""
        try:
            if self.around is not None:
                return await self.around(request, self._route)
            return await self._route(request)
        except ApiError as error:
            return _make_json(error.code, _ENCODER.encode(error.make_body()))
        except NoSuchPathError:
            return web.Response(status=404, text="404 page not found\n")

    async def _route(self, request: web.BaseRequest) -> web.StreamResponse:
        path, _, query_text = request.raw_path.partition("?")
        if "%" in path:
            path = unquote(path)
        self._authenticate(request)
        if path in _HEALTH or path.startswith(("/readyz/", "/livez/", "/healthz/")):
            return web.Response(text="ok")
        query = dict(parse_qsl(query_text, keep_blank_values=True)) if query_text else {}
        group, version, rest = paths.split_path(path)
        if not path.startswith(("/api/", "/apis/")) or not rest:
            return self._discover(request, path)
        if request.body_exists and (request.content_length or 0) > _MAX_BODY:
            raise ApiError(413, "RequestEntityTooLarge", "limit is 3145728")
        raw = await request.read() if request.body_exists else b""
        review = reviews.answer_review(group, rest, request.method, raw)
        if review is not None:
            return _make_json(201, _ENCODER.encode(review))
        if group == "" and rest[-1] == "bindings" and request.method == "POST":
            target = paths.Target(PODS, rest[1], "", "binding")
        else:
            target = paths.resolve_target(self.kinds, group, version, rest)
        if containers.is_wanted(target):
            # A missing pod goes first, as in every other request.
            self.registry.get(target.kind, target.namespace, target.name)
            raise containers.make_refusal(target)
        call = verbs.Request(
            target,
            query,
            bodies.read_media_type(request.headers),
            raw,
            bodies.choose_accepted(request.headers.get("Accept", "")),
            [],
        )
        if request.method == "GET" and read_truth(query.get("watch", "false")):
            return await self._watch(request, call)
        answer = self._answer(request.method, call)
        return _make_json(answer.code, answer.body, call.warnings)

    def _answer(self, method: str, call: verbs.Request) -> verbs.JsonAnswer:
        verb = _VERBS.get((method, bool(call.target.name)))
        if verb is None:
            raise method_not_allowed()
        why = self.settings.refused.get(call.target.kind.resource)
        if why is not None and verb in {"create", "update", "patch"}:
            raise ApiError(403, "Forbidden", why)
        if verb == "list":
            return verbs.list_objects(self.lister, call)
        if verb == "deletecollection":
            return verbs.delete_collection(self.registry, self.lister, call)
        return _WRITERS[verb](self.registry, call)

    async def _watch(self, request: web.BaseRequest, call: verbs.Request) -> web.StreamResponse:
        kind, namespace, name, _ = call.target
        query = dict(call.query)
        if name:
            query["fieldSelector"] = f"metadata.name={name}"
        options = watching.read_options(kind, namespace, query, call.accepted)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        stream = watching.write_lines(
            self.store,
            options,
            announce="sendInitialEvents" in query,
            bookmark_seconds=self.settings.bookmark_seconds,
        )
        # The client may hang up at any moment; so most watches end.
        with contextlib.suppress(ConnectionError):
            async with contextlib.aclosing(stream):
                async for line in stream:
                    await response.write(line)
            await response.write_eof()
        return response

    def _discover(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        header = request.headers.get("Accept", "")
        if path.rstrip("/") == "/openapi/v2" and protobuf.OPENAPI_ASKED in header:
            encoded = protobuf.make_openapi_document("Kubernetes", discovery.VERSION["gitVersion"])
            return web.Response(body=encoded, headers={"Content-Type": protobuf.OPENAPI_MEDIA})
        aggregated = ""
        if not path.startswith("/openapi"):
            choice = bodies.choose_accepted(header)
            aggregated = choice.version if choice.form == "APIGroupDiscoveryList" else ""
        document = discovery.find_document(self.kinds, path, aggregated=aggregated)
        if document is None or request.method not in {"GET", "HEAD"}:
            raise NoSuchPathError
        media = "application/json"
        if aggregated and path in {"/api", "/apis"}:
            media += f";g=apidiscovery.k8s.io;v={aggregated};as=APIGroupDiscoveryList"
        return web.Response(body=_ENCODER.encode(document), headers={"Content-Type": media})

    def _authenticate(self, request: web.BaseRequest) -> None:
        token = self.settings.token
        if token is None:
            return
        sent = request.headers.get("Authorization", "").encode()
        if not hmac.compare_digest(sent, f"Bearer {token}".encode()):
            raise ApiError(401, "Unauthorized", "Unauthorized")


def _make_json(code: int, body: bytes, warnings: list[str] | None = None) -> web.Response:
    response = web.Response(status=code, body=body, headers={"Content-Type": "application/json"})
    for text in warnings or ():
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{quoted}"')
    return response
