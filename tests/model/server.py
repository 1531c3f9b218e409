"""The API server as a model: objects, versions, and the rules by which writes are refused.

It does one request at a time and at once; everything that may go wrong on the way is elsewhere: late news
in ``streams``, and the network in tests/virtual.
"""

import copy
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from scheduler.api import names

Json = dict[str, Any]
Key = tuple[str, str, str]
Answer = tuple[int, bytes]
_OK, _CREATED = 200, 201
# Small, so that lists of small clusters have several pages.
_PAGE = 2


class Change(NamedTuple):
    """One write: ``before`` is None for a new object, ``after`` None for a deleted one."""

    version: int
    kind: str
    before: Json | None
    after: Json | None


class Refused(Exception):  # noqa: N818
    """The request broke a rule."""

    def __init__(self, status: int, reason: str, message: str = "") -> None:
        super().__init__(message or reason)
        self.status, self.reason = status, reason


class Server:
    """Objects by (kind, namespace, name); a stored object is never changed, only replaced.

    Attributes:
        log: all changes, oldest first.
        compacted: no watch can start from a version before this.
        on_change: called after every change.
        on_event: called with every event that is written; none is kept.
        admit: asked before every request, by method and path; raises ``Refused`` as a webhook would.
    """

    def __init__(self) -> None:
        self.version = 1
        self.compacted = 0
        self.objects: dict[Key, Json] = {}
        self.log: list[Change] = []
        self.on_change: list[Callable[[Change], None]] = []
        self.on_event: list[Callable[[Json], None]] = []
        self.admit: Callable[[str, str], None] = lambda _method, _path: None
        self._serial = 0
        # By its token the version of a list and what of it is still to come.
        self._continued: dict[str, tuple[int, list[Json]]] = {}

    # For those who need no network.

    def of_kind(self, kind: str) -> list[Json]:
        return [body for key, body in self.objects.items() if key[0] == kind]

    def find(self, kind: str, namespace: str, name: str) -> Json | None:
        return self.objects.get((kind, namespace, name))

    def create(self, kind: str, body: Json) -> None:
        key = _key(kind, body)
        if key in self.objects:
            raise Refused(409, "AlreadyExists")
        self._serial += 1
        body = copy.deepcopy(body)
        body["metadata"].setdefault("uid", f"uid-{self._serial}")
        self._store(key, body)

    def put(self, kind: str, body: Json) -> None:
        """An object as it is from now on, whatever there was under its name, and under which uid."""
        self._store(_key(kind, body), copy.deepcopy(body))

    def pod_of(self, uid: str) -> Json | None:
        return next((pod for pod in self.of_kind("pods") if pod["metadata"]["uid"] == uid), None)

    def change(self, kind: str, namespace: str, name: str, edit: Callable[[Json], None]) -> None:
        """Edit a copy of an object and store it; nothing when the object is gone or the same."""
        old = self.objects.get((kind, namespace, name))
        if old is None:
            return
        body = copy.deepcopy(old)
        edit(body)
        if body != old:
            self._store((kind, namespace, name), body)

    def bind(self, namespace: str, name: str, binding: Json) -> None:
        """What the binding subresource does: node and annotations in one write.

        Raises:
            Refused: the pod is gone, another, changed, going, or has a node.
        """
        found = self._get("pods", namespace, name)
        sent = binding["metadata"]
        _require(found, sent)
        if found["metadata"].get("deletionTimestamp"):
            raise Refused(409, "Conflict", f"pod {name} is being deleted")
        if found["spec"].get("nodeName"):
            raise Refused(409, "Conflict", f"pod {name} is already assigned")
        pod = copy.deepcopy(found)
        pod["spec"]["nodeName"] = binding["target"]["name"]
        for field in ("annotations", "labels"):
            if sent.get(field):
                pod["metadata"][field] = (pod["metadata"].get(field) or {}) | sent[field]
        _set_condition(pod, {"type": "PodScheduled", "status": "True"})
        self._store(("pods", namespace, name), pod)

    def delete(self, kind: str, namespace: str, name: str) -> None:
        before = self.objects.pop((kind, namespace, name), None)
        if before is not None:
            self._log(Change(self._next(), kind, before, None))

    # Requests.

    def handle(self, method: str, path: str, params: dict[str, str], body: bytes | None) -> Answer:
        try:
            self.admit(method, path)
            status, found = self._route(method, path.strip("/").split("/"), params, body)
        except Refused as refused:
            answer = {"kind": "Status", "code": refused.status, "reason": refused.reason}
            return refused.status, json.dumps(answer | {"message": str(refused)}).encode()
        return status, json.dumps(found).encode()

    def _route(
        self, method: str, parts: list[str], params: dict[str, str], body: bytes | None
    ) -> tuple[int, Json]:
        sent: Json = json.loads(body) if body else {}
        status = _CREATED if method == "POST" else _OK
        match method, parts:
            case "GET", ["api", "v1", kind] | [
                "apis",
                "apps" | "batch" | "policy" | "storage.k8s.io",
                "v1",
                kind,
            ]:
                found = self._list(kind, params)
            case "GET", ["apis", names.GROUP, _, _]:
                found = self._list("policies", params)
            case "GET", ["api", "v1", "nodes", name]:
                found = self._get("nodes", "", name)
            case "PATCH", ["api", "v1", "nodes", name]:
                found = self._merge("nodes", "", name, sent)
            case _, ["api", "v1", "namespaces", namespace, "pods", name, *rest]:
                found = self._pod((method, *rest), namespace, name, sent)
            case "POST", ["apis", "events.k8s.io", "v1", "namespaces", _, "events"]:
                found = sent
                for hear in self.on_event:
                    hear(sent)
            case _, ["apis", "coordination.k8s.io", "v1", "namespaces", namespace, "leases", *rest]:
                found = self._lease(method, namespace, rest, sent)
            case _:
                raise Refused(404, "NotFound", f"{method} {parts}")
        return status, found

    def _pod(self, asked: tuple[str, ...], namespace: str, name: str, sent: Json) -> Json:
        match asked:
            case ("GET",):
                return self._get("pods", namespace, name)
            case ("DELETE",):
                return self._let_go(namespace, name, sent.get("preconditions", {}))
            case "POST", "binding":
                self.bind(namespace, name, sent)
                return {"kind": "Status", "status": "Success"}
            case "PATCH", "status":
                return self._patch_status(namespace, name, sent)
        raise Refused(404, "NotFound", f"{asked} of {name}")

    def _get(self, kind: str, namespace: str, name: str) -> Json:
        found = self.objects.get((kind, namespace, name))
        if found is None:
            raise Refused(404, "NotFound", f"{kind} {name}")
        return found

    def _list(self, kind: str, params: dict[str, str]) -> Json:
        if token := params.get("continue"):
            version, items = self._continued[token]
            if version < self.compacted:
                raise Refused(410, "Expired", "the continue token is too old")
        else:
            selector = params.get("fieldSelector", "")
            # By name as etcd has them, so a replica that lists has another order than one that watched.
            found = [self.objects[key] for key in sorted(self.objects) if key[0] == kind]
            version, items = self.version, [body for body in found if matches(selector, body)]
        size = min(int(params["limit"]), _PAGE) if "limit" in params else len(items)
        metadata = {"resourceVersion": str(version)}
        if items[size:]:
            metadata["continue"] = f"{len(self._continued)}"
            self._continued[metadata["continue"]] = version, items[size:]
        return {"metadata": metadata, "items": items[:size]}

    def _patch_status(self, namespace: str, name: str, sent: Json) -> Json:
        """Conditions and the nomination, and annotations too, as the real one takes them."""
        metadata, status = sent.get("metadata", {}), sent.get("status", {})
        _require(self._get("pods", namespace, name), metadata)

        def edit(pod: Json) -> None:
            for condition in status.get("conditions", ()):
                _set_condition(pod, condition)
            if node := status.get("nominatedNodeName"):
                pod["status"]["nominatedNodeName"] = node
            elif "nominatedNodeName" in status:
                pod["status"].pop("nominatedNodeName", None)
            if notes := metadata.get("annotations"):
                pod["metadata"]["annotations"] = (pod["metadata"].get("annotations") or {}) | notes

        self.change("pods", namespace, name, edit)
        return self._get("pods", namespace, name)

    def _let_go(self, namespace: str, name: str, preconditions: Json) -> Json:
        """A pod with a node is only marked: its kubelet has it deleted when it has ended."""
        found = self._get("pods", namespace, name)
        _require(found, preconditions)
        if not found["spec"].get("nodeName"):
            self.delete("pods", namespace, name)
            return found

        def edit(pod: Json) -> None:
            pod["metadata"].setdefault("deletionTimestamp", "2026-01-01T00:00:00Z")

        self.change("pods", namespace, name, edit)
        return self._get("pods", namespace, name)

    def _merge(self, kind: str, namespace: str, name: str, sent: Json) -> Json:
        found = self._get(kind, namespace, name)
        metadata = sent["metadata"]
        version = metadata.get("resourceVersion")
        if version and version != found["metadata"]["resourceVersion"]:
            raise Refused(409, "Conflict", f"{name} was changed")

        def edit(body: Json) -> None:
            notes = (body["metadata"].get("annotations") or {}) | metadata.get("annotations", {})
            body["metadata"]["annotations"] = {k: v for k, v in notes.items() if v is not None}

        self.change(kind, namespace, name, edit)
        return self._get(kind, namespace, name)

    def _lease(self, method: str, namespace: str, rest: list[str], sent: Json) -> Json:
        name = rest[0] if rest else sent["metadata"]["name"]
        if method == "POST":
            sent["metadata"]["namespace"] = namespace
            self.create("leases", sent)
        elif method == "PUT":
            found = self._get("leases", namespace, name)
            if sent["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
                raise Refused(409, "Conflict", "the lease was changed")
            self._store(("leases", namespace, name), sent)
        return self._get("leases", namespace, name)

    # Storage.

    def _store(self, key: Key, body: Json) -> None:
        before = self.objects.get(key)
        version = self._next()
        body["metadata"]["resourceVersion"] = str(version)
        self.objects[key] = body
        self._log(Change(version, key[0], before, body))

    def _next(self) -> int:
        self.version += 1
        return self.version

    def _log(self, change: Change) -> None:
        self.log.append(change)
        for tell in self.on_change:
            tell(change)


def event_of(change: Change, kind: str, selector: str) -> tuple[str, Json] | None:
    """What a watch of a kind under a selector hears of a change: type and object, None where nothing."""
    if change.kind != kind:
        return None
    before = change.before is not None and matches(selector, change.before)
    after = change.after is not None and matches(selector, change.after)
    if after and change.after is not None:
        return ("MODIFIED" if before else "ADDED"), change.after
    last = change.after or change.before
    if before and last is not None:
        # The object as it was last seen under the selector, at the version of this change.
        metadata = last["metadata"] | {"resourceVersion": str(change.version)}
        return "DELETED", last | {"metadata": metadata}
    return None


def matches(selector: str, body: Json) -> bool:
    """Whether an object is under a field selector."""
    for term in filter(None, selector.split(",")):
        path, _, value = term.partition("!=") if "!=" in term else term.partition("=")
        found: Any = body
        for part in path.split("."):
            found = found.get(part) or {}
        if ((found or "") == value) == ("!=" in term):
            return False
    return True


def _key(kind: str, body: Json) -> Key:
    return kind, body["metadata"].get("namespace", ""), body["metadata"]["name"]


def _require(found: Json, sent: Json) -> None:
    """Refuse a write that is meant for another object of this name, or for another version of it."""
    for field in ("uid", "resourceVersion"):
        if sent.get(field) and sent[field] != found["metadata"][field]:
            raise Refused(409, "Conflict", f"precondition failed: {field}")


def _set_condition(pod: Json, condition: Json) -> None:
    status = pod.setdefault("status", {})
    others = [one for one in status.get("conditions") or () if one["type"] != condition["type"]]
    status["conditions"] = [*others, condition]
