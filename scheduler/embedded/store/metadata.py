"""Metadata of objects: names, labels, uids, times, and the rules for changing them."""

import os
import re
import secrets
import time
from typing import Any

from scheduler.embedded.store.kinds import Kind
from scheduler.embedded.store.statuses import (
    ApiError,
    Cause,
    bad_request,
    conflict,
    forbidden_field,
    invalid_value,
    required,
)

Json = dict[str, Any]

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = _LABEL + r"(\." + _LABEL + ")*"
_VALUE = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_MATCH = re.compile(_LABEL).fullmatch
_SUBDOMAIN_MATCH = re.compile(_SUBDOMAIN).fullmatch
_VALUE_MATCH = re.compile(_VALUE).fullmatch
_NAME_MATCH = re.compile(_NAME).fullmatch

_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or"
    " '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used"
    f" for validation is '{_SUBDOMAIN}')"
)
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and"
    " must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex"
    f" used for validation is '{_LABEL}')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or"
    " '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',"
    f"  or '12345', regex used for validation is '{_VALUE}')"
)
_NAME_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end"
    " with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for"
    f" validation is '{_NAME}')"
)
_LABEL_NAMED = frozenset({"namespaces", "services"})

# Kubernetes leaves out vowels and look-alikes from generated suffixes.
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_MAX_GENERATED = 58


def write_timestamp(seconds: float | None = None) -> str:
    """Write a time the way ``metadata.creationTimestamp`` does: UTC, whole seconds."""
    moment = time.gmtime(time.time() if seconds is None else seconds)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", moment)


def make_uid() -> str:
    """Return a random version 4 UUID (the standard library's object costs four times as much)."""
    digits = bytearray(os.urandom(16))
    digits[6] = digits[6] & 0x0F | 0x40
    digits[8] = digits[8] & 0x3F | 0x80
    text = digits.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def complete_name(start: str) -> str:
    """Complete a ``generateName``."""
    suffix = "".join(secrets.choice(_SUFFIX_LETTERS) for _ in range(5))
    return start[:_MAX_GENERATED] + suffix


def find_problems(kind: Kind, metadata: Json) -> list[Cause]:
    """Return what is wrong with the metadata of a new object."""
    causes: list[Cause] = []
    name = metadata.get("name") or ""
    if not name:
        causes.append(required("metadata.name", "name or generateName is required"))
    elif kind.plural in _LABEL_NAMED:
        if not _LABEL_MATCH(name):
            causes.append(invalid_value("metadata.name", name, _LABEL_TEXT))
        if len(name) > 63:
            too_long = "must be no more than 63 characters"
            causes.append(invalid_value("metadata.name", name, too_long))
    elif len(name) > 253:
        too_long = "must be no more than 253 characters"
        causes.append(invalid_value("metadata.name", name, too_long))
    elif not _SUBDOMAIN_MATCH(name):
        causes.append(invalid_value("metadata.name", name, _SUBDOMAIN_TEXT))
    return causes + find_label_problems(metadata)


def find_label_problems(metadata: Json) -> list[Cause]:
    """Return what is wrong with labels and annotation keys."""
    causes: list[Cause] = []
    for key, value in (metadata.get("labels") or {}).items():
        causes += _find_key_problems("metadata.labels", key)
        if len(value) > 63:
            too_long = "must be no more than 63 characters"
            causes.append(invalid_value("metadata.labels", value, too_long))
        elif not _VALUE_MATCH(value):
            causes.append(invalid_value("metadata.labels", value, _VALUE_TEXT))
    for key in metadata.get("annotations") or ():
        causes += _find_key_problems("metadata.annotations", key.lower())
    return causes


def _find_key_problems(field: str, key: str) -> list[Cause]:
    prefix, slash, name = key.rpartition("/")
    if slash and (not _SUBDOMAIN_MATCH(prefix) or len(prefix) > 253):
        return [invalid_value(field, key, f"prefix part {_SUBDOMAIN_TEXT}")]
    if len(name) > 63:
        return [invalid_value(field, key, "name part must be no more than 63 characters")]
    if not _NAME_MATCH(name):
        return [invalid_value(field, key, _NAME_TEXT)]
    return []


def check_types(metadata: Any) -> None:
    """Refuse metadata whose labels or annotations are not text, as typed decoding would."""
    if not isinstance(metadata, dict):
        raise bad_request("metadata must be an object")
    for field in ("labels", "annotations"):
        pairs = metadata.get(field)
        if pairs is None:
            metadata.pop(field, None)
            continue
        if not isinstance(pairs, dict):
            raise _make_not_text(field, pairs)
        for value in pairs.values():
            if not isinstance(value, str):
                raise _make_not_text(field, value)


def _make_not_text(field: str, value: object) -> ApiError:
    kind = "number" if isinstance(value, int | float) else type(value).__name__
    return bad_request(
        f"json: cannot unmarshal {kind} into Go struct field ObjectMeta.metadata.{field}"
        " of type string"
    )


def set_system_fields(metadata: Json) -> None:
    """Set the fields of a new object that only the server may set."""
    for field in ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        metadata.pop(field, None)
    metadata["uid"] = make_uid()
    metadata["creationTimestamp"] = write_timestamp()


def carry_over(kind: Kind, name: str, new: Json, old: Json) -> Json:
    """Return the metadata of an updated object with the old system fields; refuse other ones."""
    merged = dict(new)
    if merged.get("uid", old["uid"]) != old["uid"]:
        raise conflict(
            kind.resource,
            name,
            f"Precondition failed: UID in precondition: {merged['uid']},"
            f" UID in object meta: {old['uid']}",
        )
    for field in (
        "name",
        "namespace",
        "generateName",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
    ):
        if field in old:
            merged[field] = old[field]
        else:
            merged.pop(field, None)
    return merged


def find_update_problems(new: Json, old: Json) -> list[Cause]:
    """Return what is wrong with a change of metadata."""
    causes = []
    if "deletionTimestamp" in old:
        added = set(new.get("finalizers") or ()) - set(old.get("finalizers") or ())
        if added:
            listed = ", ".join(f'"{name}"' for name in sorted(added))
            causes.append(
                forbidden_field(
                    "metadata.finalizers",
                    "no new finalizers can be added if the object is being deleted,"
                    f" found new finalizers []string{{{listed}}}",
                )
            )
    if new.get("labels") != old.get("labels") or new.get("annotations") != old.get("annotations"):
        causes += find_label_problems(new)
    return causes
