"""Create, update and delete: what a kube-apiserver does to an object before and after storing it."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from scheduler.embedded.api.admission import admission, deletion, schemas
from scheduler.embedded.store import metadata
from scheduler.embedded.store.kinds import Kind
from scheduler.embedded.store.statuses import (
    already_exists,
    bad_request,
    forbidden,
    internal,
    invalid,
    invalid_value,
    not_found,
    stale,
)
from scheduler.embedded.store.store import Key, Record, Store

Json = dict[str, Any]
# Makes the new body from the stored one (None: there is none), which it must not change.
Change = Callable[[Json | None], Json]

_PERMANENT_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})


class Options(NamedTuple):
    """The options of a write."""

    dry_run: bool = False
    # "Strict" refuses unknown fields of custom kinds, "Warn" names them, "Ignore" drops them.
    field_validation: str = "Warn"
    warnings: list[str] | None = None


DEFAULT_OPTIONS = Options()


class Registry:
    """The rules of writing; ``store`` holds the result."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def get(self, kind: Kind, namespace: str, name: str) -> Record:
        """Return an object or raise 404."""
        record = self.store.get_bucket(kind.bucket).objects.get((namespace, name))
        if record is None:
            raise not_found(kind.resource, name)
        return record

    def create(
        self, kind: Kind, namespace: str, sent: Json, options: Options = DEFAULT_OPTIONS
    ) -> Record:
        """Store a new object and return it."""
        body = receive_body(kind, sent, options)
        meta = body["metadata"]
        _match_namespace(kind, namespace, meta)
        if meta.pop("resourceVersion", None):
            # As in the real server, this is no refusal but a failure of the storage.
            raise internal("resourceVersion should not be set on objects to be created")
        if kind.namespaced:
            self._check_namespace(kind, namespace, meta.get("name", ""))
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = metadata.complete_name(meta["generateName"])
        metadata.set_system_fields(meta)
        admission.fill_in(kind, body)
        admission.admit(self.store, kind, body)
        admission.reset_status(kind, body)
        if kind.has_generation or kind.custom:
            meta["generation"] = 1
        causes = metadata.find_problems(kind, meta) + admission.find_problems(kind, body)
        if causes:
            raise invalid(kind.qualified, meta.get("name", ""), causes)
        _warn(kind, body, options)
        key = (namespace if kind.namespaced else "", meta["name"])
        if key in self.store.get_bucket(kind.bucket).objects:
            raise already_exists(kind.resource, meta["name"])
        return self._put(kind, key, body, options)

    def update(
        self,
        kind: Kind,
        key: Key,
        change: Change,
        subresource: str = "",
        options: Options = DEFAULT_OPTIONS,
    ) -> tuple[Record, bool]:
        """Store a changed object; return it, and whether it was created."""
        current = self.store.get_bucket(kind.bucket).objects.get(key)
        if current is None:
            if not kind.create_on_update or subresource:
                raise not_found(kind.resource, key[1])
            return self.create(kind, key[0], change(None), options), True
        old = current.body
        body = receive_body(kind, change(old), options)
        meta = body["metadata"]
        _match_namespace(kind, key[0], meta)
        _match_name(key[1], meta)
        _match_version(kind, key[1], meta, old)
        body["metadata"] = metadata.carry_over(kind, key[1], meta, old["metadata"])
        body = _isolate_status(kind, subresource, body, old)
        if not subresource:
            admission.fill_in(kind, body)
            admission.readmit(kind, body)
        causes = metadata.find_update_problems(body["metadata"], old["metadata"])
        causes += admission.find_change_problems(kind, body, old, subresource)
        if kind.bucket != "events":
            causes += admission.find_problems(kind, body)
        if causes:
            raise invalid(kind.qualified, key[1], causes)
        _warn(kind, body, options, subresource)
        _count_generation(kind, subresource, body, old)
        if _is_finished(body["metadata"], old["metadata"]):
            if not options.dry_run:
                # The client gets this last change, but it is not stored: watchers see only the deletion.
                self.store.remove(kind.bucket, key)
            return Record(key, body, current.version), False
        if _is_same(body, old):
            return current, False
        return self._put(kind, key, body, options), False

    def delete(
        self, kind: Kind, key: Key, sent: Json, options: Options = DEFAULT_OPTIONS
    ) -> tuple[Record, bool]:
        """Delete an object or begin to; return its last state, and whether it is gone."""
        current = self.get(kind, *key)
        meta = current.body["metadata"]
        deletion.check_preconditions(kind, key[1], meta, sent.get("preconditions") or {})
        if kind.resource == "namespaces" and key[1] in _PERMANENT_NAMESPACES:
            raise forbidden(kind.resource, key[1], "this namespace may not be deleted")
        orphans = deletion.may_leave_orphans(kind, key[1], sent)
        grace = deletion.find_grace_seconds(kind, current.body, sent)
        if grace is None:
            return current, False
        waiting = bool(meta.get("finalizers")) or (
            kind.resource == "namespaces" and bool(current.body["spec"].get("finalizers"))
        )
        if grace == 0 and not waiting:
            if options.dry_run:
                return current, True
            if orphans:
                self._let_go(kind, key[0], meta["uid"])
            # A pod is first marked and then removed: its watchers see both.
            marked = deletion.mark_deleted(kind, current.body, 0) if kind.graceful else None
            if marked is not None:
                self.store.put(kind.bucket, key, marked)
            return self.store.remove(kind.bucket, key), True
        marked = deletion.mark_deleted(kind, current.body, grace)
        if marked is None:
            return current, False
        return self._put(kind, key, marked, options), False

    def _let_go(self, kind: Kind, namespace: str, uid: str) -> None:
        """Remove the reference to an owner from all objects that it made."""
        for record in list(self.store.get_bucket(kind.owns).objects.values()):
            meta = record.body["metadata"]
            owners = meta.get("ownerReferences") or []
            others = [one for one in owners if one["uid"] != uid]
            if record.key[0] == namespace and len(others) < len(owners):
                body = {**record.body, "metadata": {**meta, "ownerReferences": others}}
                self.store.put(kind.owns, record.key, body)

    def _put(self, kind: Kind, key: Key, body: Json, options: Options) -> Record:
        if options.dry_run:
            return Record(key, body, self.store.version)
        return self.store.put(kind.bucket, key, body)

    def _check_namespace(self, kind: Kind, namespace: str, name: str) -> None:
        found = self.store.get("namespaces", "", namespace)
        if found is None:
            raise not_found("namespaces", namespace)
        if found["status"]["phase"] == "Terminating":
            why = f"unable to create new content in namespace {namespace}"
            raise forbidden(kind.resource, name, f"{why} because it is being terminated")


def receive_body(kind: Kind, sent: Json, options: Options) -> Json:
    """Turn the object that a client sent into a body of the stored form."""
    body = {key: value for key, value in sent.items() if key not in {"apiVersion", "kind"}}
    body["metadata"] = dict(body.get("metadata") or {})
    metadata.check_types(body["metadata"])
    if kind.to_store is not None:
        body = kind.to_store(body)
    if kind.schema is not None:
        # Defaults and pruning work in place, and the object may share parts with the store.
        body = copy.deepcopy(body)
        _report_unknown(kind, schemas.prune(kind.schema, body), options)
    return body


def _warn(kind: Kind, body: Json, options: Options, subresource: str = "") -> None:
    if options.warnings is not None and not subresource:
        options.warnings.extend(admission.list_warnings(kind, body))


def _report_unknown(kind: Kind, unknown: list[str], options: Options) -> None:
    if not unknown:
        return
    texts = [f'unknown field "{path}"' for path in sorted(unknown)]
    if options.field_validation == "Strict":
        raise bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}:'
            f" strict decoding error: {', '.join(texts)}"
        )
    if options.field_validation == "Warn" and options.warnings is not None:
        options.warnings.extend(texts)


def _match_namespace(kind: Kind, namespace: str, meta: Json) -> None:
    if not kind.namespaced:
        meta.pop("namespace", None)
    elif meta.setdefault("namespace", namespace) != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _match_name(name: str, meta: Json) -> None:
    if meta.setdefault("name", name) != name:
        raise bad_request(
            f"the name of the object ({meta['name']}) does not match the name on the URL ({name})"
        )


def _match_version(kind: Kind, name: str, meta: Json, old: Json) -> None:
    given = meta.get("resourceVersion")
    if not given or given == "0":
        if not kind.unconditional_update:
            cause = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid(kind.resource, name, [cause])
    elif given != old["metadata"]["resourceVersion"]:
        raise stale(kind.resource, name)


def _isolate_status(kind: Kind, subresource: str, new: Json, old: Json) -> Json:
    """Let a write of the status change only the status, and any other write everything else."""
    if not kind.has_status:
        return new
    if subresource == "status":
        kept = dict(old)
        if "status" in new:
            kept["status"] = new["status"]
        else:
            kept.pop("status", None)
        if kind.resource in {"pods", "nodes"}:
            # For these two kinds a write of the status also changes labels and annotations.
            owners = old["metadata"].get("ownerReferences")
            kept["metadata"] = new["metadata"]
            if owners:
                kept["metadata"]["ownerReferences"] = owners
        return kept
    if "status" in old:
        new["status"] = old["status"]
    else:
        new.pop("status", None)
    return new


def _count_generation(kind: Kind, subresource: str, new: Json, old: Json) -> None:
    if subresource or not (kind.has_generation or kind.custom):
        return
    apart = {"metadata", "status"} if kind.has_status else {"metadata"}
    names = (new.keys() | old.keys()) - apart
    if any(new.get(name) != old.get(name) for name in names):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _is_finished(new: Json, old: Json) -> bool:
    """Tell whether an update removed the last finalizer of an object that is being deleted."""
    return (
        "deletionTimestamp" in old
        and not new.get("finalizers")
        and bool(old.get("finalizers"))
        and not old.get("deletionGracePeriodSeconds")
    )


def _is_same(new: Json, old: Json) -> bool:
    """Tell whether a write changes nothing; then the object keeps its version."""
    if new.keys() != old.keys():
        return False
    for name, value in new.items():
        if name != "metadata" and value != old[name]:
            return False
    return _list_meta_content(new["metadata"]) == _list_meta_content(old["metadata"])


def _list_meta_content(meta: Json) -> Json:
    content = {key: value for key, value in meta.items() if key != "resourceVersion"}
    if "managedFields" in content:
        # A new time of a manager's last apply alone is no change.
        content["managedFields"] = [
            {key: value for key, value in entry.items() if key != "time"}
            for entry in content["managedFields"]
        ]
    return content
