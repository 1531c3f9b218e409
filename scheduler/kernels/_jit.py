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
if _folder is not None:
    _config.CACHE_DIR = _folder


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile at the first call; keeps the signature for the type checker."""
    compiled = numba.njit(nogil=True, cache=_folder is not None)(function)
    return cast("Callable[P, R]", compiled)
