"""Serves custom kinds: the kinds of an accepted CustomResourceDefinition are served at once."""

from typing import Any

from scheduler.embedded.api.admission import crds
from scheduler.embedded.store.builtin import CRDS
from scheduler.embedded.store.kinds import Kinds
from scheduler.embedded.store.metadata import write_timestamp
from scheduler.embedded.store.store import Change, Store

Json = dict[str, Any]


class Definitions:
    """Keeps the served kinds in step with the stored CRDs."""

    def __init__(self, store: Store, kinds: Kinds) -> None:
        self._store = store
        self._kinds = kinds
        store.listen(self._follow_change)

    def _follow_change(self, bucket: str, change: Change) -> None:
        if bucket != CRDS.bucket:
            return
        store, body = self._store, change.record.body
        name = _find_bucket(body)
        if change.deleted:
            self._kinds.remove(name)
            for key in list(store.get_bucket(name).objects):
                store.remove(name, key)
            store.drop_bucket(name)
            return
        spec, previous = body["spec"], change.previous
        if previous is None or previous.body["spec"] != spec:
            self._kinds.remove(name)
            for kind in crds.make_kinds(body):
                self._kinds.add(kind)
        if not (body.get("status") or {}).get("conditions"):
            _establish(store, body)


def _find_bucket(body: Json) -> str:
    return f"{body['spec']['names']['plural']}.{body['spec']['group']}"


def _establish(store: Store, body: Json) -> None:
    now = write_timestamp()
    conditions = [
        {
            "type": kind,
            "status": "True",
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }
        for kind, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    stored = [version["name"] for version in body["spec"]["versions"] if version.get("storage")]
    status = {
        "conditions": conditions,
        "acceptedNames": body["spec"]["names"],
        "storedVersions": stored,
    }
    store.put(CRDS.bucket, ("", body["metadata"]["name"]), {**body, "status": status})
