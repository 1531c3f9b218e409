"""Reads KAI's Queues as a policy of a replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from scheduler.api import kai, kinds
from scheduler.api.queues.kai import KaiQueue, read_queue
from scheduler.errors import BadInput

API = "scheduling.run.ai/"
KIND = "Queue"
# Of a Configuration: how KAI's queues share.
SETTINGS = "kai"


def is_of_kai(body: Mapping[str, Any]) -> bool:
    """Whether a document is one of KAI's Queues."""
    return body.get("kind") == KIND and str(body.get("apiVersion")).startswith(API)


def read_one(body: Mapping[str, Any], where: str) -> tuple[kai.Queue, KaiQueue]:
    """Read a queue.

    Raises:
        BadInput: it has a mistake; the error names the field.
    """
    meta = body.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else None
    if not name or not isinstance(name, str):
        raise BadInput(where, "metadata.name: is missing")
    wanted = {
        "kind": kinds.KAI_QUEUES.name,
        "metadata": {"name": name, "uid": f"{KIND}/{name}"},
        "spec": body.get("spec") or {},
    }
    try:
        found = msgspec.convert(wanted, kai.Queue)
        return found, read_queue(found)
    except msgspec.ValidationError as error:
        raise BadInput(where, str(error)) from error
    except BadInput as error:
        raise BadInput(where, str(error)) from error


def list_leaves(queues: Mapping[str, KaiQueue], file: str) -> list[str]:
    """List the queues in which pods run: those without a queue below.

    Raises:
        BadInput: a queue names one above it that there is not, or is above itself.
    """
    for one in queues.values():
        where = f"{file}: {KIND} {one.name}"
        if one.parent and one.parent not in queues:
            raise BadInput(where, f"spec.parentQueue: there is no Queue {one.parent!r}")
        above, seen = one.parent, {one.name}
        while above:
            if above in seen:
                raise BadInput(where, "spec.parentQueue: the queues above it lead in a circle")
            seen.add(above)
            above = queues[above].parent
    inner = {one.parent for one in queues.values()}
    return [name for name in queues if name not in inner]


def list_children(queues: Mapping[str, KaiQueue], above: str) -> Sequence[KaiQueue]:
    """List the queues directly below one; the top ones of the empty name."""
    return [one for one in queues.values() if one.parent == above]
