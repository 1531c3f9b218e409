"""The table of rooms in docs/architecture.md is the code's: every room is there, from the top of the layers down."""

import re
import tomllib
from pathlib import Path

from tests.docs import blocks

CODE = blocks.ROOT / "scheduler"
PAGE = (blocks.ROOT / "docs/architecture.md").read_text(encoding="utf-8")
ROOMS = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE.partition("## Rooms")[2], re.MULTILINE))
# Starts the commands, and holds nothing else.
START = "__main__"


def _layers() -> list[set[str]]:
    """The rooms that the import law names, from the top."""
    project = tomllib.loads((blocks.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (law,) = (
        one
        for one in project["tool"]["importlinter"]["contracts"]
        if one.get("containers") == [CODE.name]
    )
    return [set(re.findall(r"\w+", layer)) - {START} for layer in law["layers"]]


def _inner() -> list[Path]:
    found = (path.parent.relative_to(CODE) for path in CODE.rglob("__init__.py"))
    return sorted(path for path in found if len(path.parts) > 1)


def test_every_room_is_in_the_table_and_below_those_that_use_it() -> None:
    layers = _layers()
    assert ROOMS.keys() == set().union(*layers)
    depths = [next(i for i, layer in enumerate(layers) if room in layer) for room in ROOMS]
    assert depths == sorted(depths)


def test_every_room_in_a_room_is_named_behind_it() -> None:
    inner = _inner()
    assert len(inner) > 10
    missing = [
        str(path) for path in inner if f"`{'/'.join(path.parts[1:])}`" not in ROOMS[path.parts[0]]
    ]
    assert missing == []
