"""The examples as objects."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from scheduler.simulate.reading import files
from tests.docs import blocks

Json = dict[str, Any]

FOLDER = blocks.ROOT / "docs" / "examples"
NODES = FOLDER / "nodes.yaml"
ALL = tuple(sorted(path for path in FOLDER.glob("*.yaml") if path != NODES))


def read(name: str | Path) -> list[Json]:
    """The objects of a file."""
    return files.read_objects(str(FOLDER / name), sys.stdin)
