"""Names that controllers give, in the documented formats, and pods as templates make them."""

import json
from typing import Any

Json = dict[str, Any]

# Kubernetes leaves out vowels and look-alikes, so that no suffix is a word.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_FNV_START, _FNV_PRIME = 0x811C9DC5, 0x01000193
HASH_LABEL = "pod-template-hash"


def hash_template(template: Json, collisions: int = 0) -> str:
    """Return the hash of a pod template: up to ten letters, the same for the same template.

    The letters are made as kube-controller-manager makes them (FNV-1a of 32 bits, its decimal digits
    in the safe alphabet), of another text than Go's dump, so they differ from a real cluster's.
    """
    text = json.dumps(template, sort_keys=True, separators=(",", ":"))
    if collisions:
        text += str(collisions)
    value = _FNV_START
    for byte in text.encode():
        value = (value ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return "".join(_LETTERS[int(digit)] for digit in str(value))


def make_owner_reference(api_version: str, kind: str, owner: Json) -> Json:
    """Return the reference by which an object says that a controller manages it."""
    meta = owner["metadata"]
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def find_controller(item: Json) -> Json:
    """Return the reference to the controller of an object; empty if it has none that can be read."""
    references = item["metadata"].get("ownerReferences")
    for one in references if isinstance(references, list) else ():
        if isinstance(one, dict) and one.get("controller"):
            names = (one.get(field) for field in ("kind", "name", "uid"))
            return one if all(isinstance(name, str) for name in names) else {}
    return {}


def make_pod(
    template: Json,
    reference: Json,
    *,
    namespace: str,
    name: str = "",
    labels: Json | None = None,
    annotations: Json | None = None,
) -> Json:
    """Return a pod made from a template: named, or with the owner's name and a random suffix."""
    meta = template.get("metadata") or {}
    metadata: Json = {"namespace": namespace, "ownerReferences": [reference]}
    for field, more in (("labels", labels), ("annotations", annotations)):
        if merged := {**(meta.get(field) or {}), **(more or {})}:
            metadata[field] = merged
    if name:
        metadata["name"] = name
    else:
        metadata["generateName"] = f"{reference['name']}-"
    spec = json.loads(json.dumps(template.get("spec") or {}))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
