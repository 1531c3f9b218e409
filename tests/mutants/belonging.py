"""Which test files have most to do with a module: those that import it, or what imports it, over the fewest steps."""

from __future__ import annotations

import ast
from collections import deque
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
_ROOMS = ("scheduler", "tests", "bench")
# They want a control plane, or start programs and wait for them; none of them tries many examples.
_LEFT_OUT = (
    "tests/cluster/",
    "tests/embedded/",
    "tests/unit/test_interrupts.py",
    "tests/unit/test_warm.py",
)
_MANY_STEPS = 1000


def find_nearest_tests(module: str, n: int) -> list[str]:
    """Return the ``n`` test files nearest to a module, by their paths.

    Of those that are as near, files that share words with the module's name come first, then those that import least.
    """
    words = set(module.replace("_", ".").split(".")) - {"scheduler"}
    ranked = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        name = str(path.relative_to(ROOT))
        if not name.startswith(_LEFT_OUT):
            steps = _steps(path).get(module, _MANY_STEPS)
            shared = len(words & set(path.stem.split("_")))
            ranked.append((steps, -shared, len(_imports(path)), name))
    return [name for *_, name in sorted(ranked)[:n]]


def tries_more(test: str) -> bool:
    """Tell whether a test file tries more when all examples are tried."""
    text = (ROOT / test).read_text(encoding="utf-8")
    return "slices." in text or "@given" in text


@cache
def _steps(path: Path) -> dict[str, int]:
    """How many imports away from a file each module is."""
    found: dict[str, int] = {}
    left = deque([(path, 0)])
    while left:
        at, steps = left.popleft()
        for name in _imports(at):
            if name not in found:
                found[name] = steps + 1
                left.append((_path(name), steps + 1))
    return found


@cache
def _imports(path: Path) -> frozenset[str]:
    """The modules of this tree that a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            inner = {f"{node.module}.{one.name}" for one in node.names}
            modules = {name for name in inner if _exists(name)}
            found |= modules or {node.module}
    return frozenset(name for name in found if name.startswith(_ROOMS) and _exists(name))


def _exists(name: str) -> bool:
    return _path(name).is_file()


@cache
def _path(name: str) -> Path:
    place = ROOT / name.replace(".", "/")
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
