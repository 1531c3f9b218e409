"""The one place that sets numba's flags and its cache folder.

``nogil`` and ``cache`` on; ``fastmath`` and ``parallel`` off: a sum must not depend on the
machine, and at 20 µs a pass forking threads costs more than it brings.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")

_config: Any = numba.config


def _cache_folder() -> str | None:
    digest = hashlib.sha256(numba.__version__.encode())
    digest.update(str((_config.BOUNDSCHECK, _config.CPU_NAME)).encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    root = Path(_config.CACHE_DIR or Path.home() / ".cache" / "evenkeel" / "kernels")
    folder = root / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except OSError:
        # A read-only container without a volume for the cache: compile at every start instead.
        return None


_folder = _cache_folder()
# No reference counts (``_nrt``): with bundles of arrays they cost 1,500 ns a node, and kernels never
# allocate; one that tries does not compile. Division as in C: the check for zero that Python's rule adds is a branch, and keeps LLVM from
# vectorising (79 ns against 15 ns for a full score of six dimensions).
_flags: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "cache": _folder is not None,
}
if _folder is not None:
    _config.CACHE_DIR = _folder


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile at the first call; keeps the signature for the type checker."""
    return cast("Callable[P, R]", numba.njit(**_flags)(function))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that is part of its callers.

    A call that hands over bundles of arrays costs half a microsecond in reference counts, more than
    most kernels compute for a node; inlined, it costs nothing.
    """
    return cast("Callable[P, R]", numba.njit(forceinline=True, **_flags)(function))
