"""The one place that sets numba's flags and its cache folder.

``nogil`` and ``cache`` on; ``fastmath`` and ``parallel`` off: a sum must not depend on the
machine, and at 20 µs a pass forking threads costs more than it brings.

Kernels that hand on a counter start it with ``int(np.int64(0))``: a plain 0 is a constant to numba, and what is
called with it is compiled twice.
"""

from __future__ import annotations

import hashlib
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import caching

from scheduler.kernels._direct import Direct

P = ParamSpec("P")
R = TypeVar("R")

_config: Any = numba.config


class _ReadOnlyLocator(caching.UserProvidedCacheLocator):
    """numba's own takes no folder that it cannot write to."""

    def ensure_cache_path(self) -> None:
        """It is there, or there is nothing in it to find."""


_only_that: Any = (_ReadOnlyLocator,)


class _ReadOnlyFiles(caching.CompileResultCacheImpl):
    _locator_classes = _only_that


class _ReadOnlyCache(caching.FunctionCache):
    """What an image brings: read, never written."""

    _impl_class = _ReadOnlyFiles

    def save_overload(self, sig: Any, data: Any) -> None:
        """Nowhere to save it; whoever wonders about a slow start shall find out why."""
        del sig, data
        warnings.warn(
            f"{self._name} is not in the read-only cache of kernels {_folder} and was compiled",
            stacklevel=2,
        )


def _cache_folder() -> tuple[Path | None, bool]:
    """Where compiled kernels are, None where there is no place for them, and whether it can be written."""
    digest = hashlib.sha256(numba.__version__.encode())
    digest.update(str((_config.BOUNDSCHECK, _config.CPU_NAME)).encode())
    kernels = Path(__file__).parent
    for room in (kernels, kernels.parent / "schema"):
        for source in sorted(room.rglob("*.py")):
            digest.update(source.read_bytes())
    root = Path(_config.CACHE_DIR or Path.home() / ".cache" / "evenkeel" / "kernels")
    folder = root / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder, True
    except OSError:
        # Neither a cache nor a place for one: compile at every start.
        return (folder if folder.is_dir() else None), False


_folder, _is_writable = _cache_folder()
# No reference counts (``_nrt``): with bundles of arrays they cost 1,500 ns a node, and kernels never
# allocate; one that tries does not compile. Division as in C: the check for zero that Python's rule adds is a branch, and keeps LLVM from
# vectorising (79 ns against 15 ns for a full score of six dimensions).
_flags: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
if _folder is not None:
    _config.CACHE_DIR = str(_folder)


def is_cache_empty() -> bool:
    """Whether kernels are still to be compiled for the cache, which takes minutes."""
    if _config.DISABLE_JIT or _folder is None or not _is_writable:
        return False
    return next(_folder.iterdir(), None) is None


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile at the first call; keeps the signature for the type checker."""
    compiled = _compiled(function, _flags)
    return compiled if _config.DISABLE_JIT else cast("Callable[P, R]", Direct(compiled))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that is part of its callers.

    A call that hands over bundles of arrays costs half a microsecond in reference counts, more than
    most kernels compute for a node; inlined, it costs nothing.
    """
    return _compiled(function, {"forceinline": True, **_flags})


def _compiled(function: Callable[P, R], flags: dict[str, Any]) -> Callable[P, R]:
    if _config.DISABLE_JIT:
        # As Python runs it, slowly: so that tests measure which of its lines they reach.
        return function
    dispatcher: Any = numba.njit(**flags)(function)
    if _is_writable:
        dispatcher.enable_caching()
    elif _folder is not None:
        of: Any = _ReadOnlyCache
        dispatcher._cache = of(dispatcher.py_func)  # noqa: SLF001 - numba has no door for it
    return cast("Callable[P, R]", dispatcher)
