"""The examples as objects, and what becomes of them in the small cluster that lies beside them."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from scheduler.simulate import files
from tests.docs import blocks

Json = dict[str, Any]

FOLDER = blocks.ROOT / "docs" / "examples"
NODES = FOLDER / "nodes.yaml"
ALL = tuple(sorted(path for path in FOLDER.glob("*.yaml") if path != NODES))
# How many pods a kind of workload makes.
_COPIES = {"Deployment": "replicas", "Job": "parallelism"}


def read(name: str | Path) -> list[Json]:
    """The objects of a file."""
    return files.read(str(FOLDER / name), sys.stdin)


def pods_of(objects: Sequence[Json]) -> list[Json]:
    """The objects, with each workload replaced by the pods that its controller makes of its template."""
    return [made for one in objects for made in _made(one)]


def _made(one: Json) -> Iterator[Json]:
    if one["kind"] not in _COPIES:
        yield one
        return
    for number in range(one["spec"][_COPIES[one["kind"]]]):
        pod = copy.deepcopy(one["spec"]["template"])
        meta = pod.setdefault("metadata", {})
        meta["name"] = f"{one['metadata']['name']}-{number}"
        meta["namespace"] = one["metadata"].get("namespace", "default")
        yield {"apiVersion": "v1", "kind": "Pod", **pod}
