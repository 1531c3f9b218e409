"""The one place that sets numba's flags and its cache folder.

``nogil`` and ``cache`` on; ``fastmath`` and ``parallel`` off: a sum must not depend on the
machine, and at 20 µs a pass forking threads costs more than it brings.

No reference counts (``_nrt``): kernels never allocate; one that tries does not compile. Division as in C: the check
for zero that Python's rule adds is a branch, and keeps LLVM from vectorising (79 ns against 15 ns for a full score of
six dimensions).
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import caching, types
from numba.extending import models, register_model

from scheduler.kernels import _handles  # noqa: F401 - tells numba of them

P = ParamSpec("P")
R = TypeVar("R")

_config: Any = numba.config
_HERE = Path(__file__).parent


class _Locator(caching.UserProvidedCacheLocator):  # type: ignore[misc]
    """The folder has the name of all sources: neither where they are matters nor how old they are."""

    def __init__(self, function: Any, path: str) -> None:
        self._py_file, self._lineno = path, function.__code__.co_firstlineno
        self._cache_path = str(Path(_config.CACHE_DIR) / Path(path).relative_to(_HERE).parent)

    def get_source_stamp(self) -> str:
        """Nothing: the folder would be another one."""
        return ""

    def ensure_cache_path(self) -> None:
        """It is there, or there is nothing in it to find."""
        if _is_writable:
            super().ensure_cache_path()

    @classmethod
    def from_function(cls, function: Any, path: str) -> Any:
        """The place of a kernel; None for a function that is none."""
        return cls(function, path) if Path(path).is_relative_to(_HERE) else None


_only_that: Any = (_Locator,)


class _Files(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = _only_that


class _Cache(caching.FunctionCache):  # type: ignore[misc]
    _impl_class = _Files

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save what was compiled. What an image brings is only read; whoever wonders about a slow start shall find out why."""
        if _is_writable:
            super().save_overload(sig, data)
            return
        warnings.warn(
            f"{self._name} is not in the read-only cache of kernels {_folder} and was compiled",
            stacklevel=2,
        )


def _cache_folder() -> tuple[Path | None, bool]:
    """Where compiled kernels are, None where there is no place for them, and whether it can be written."""
    digest = hashlib.sha256(numba.__version__.encode())
    digest.update(str((_config.BOUNDSCHECK, _config.CPU_NAME)).encode())
    for room in (_HERE, _HERE.parent / "schema"):
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
_flags: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
if _folder is not None:
    _config.CACHE_DIR = str(_folder)


def is_missing(kernel: Any) -> bool:
    """Whether a kernel is still to be compiled for the cache, which takes up to some seconds."""
    return _folder is not None and _is_writable and is_uncached(kernel)


def is_uncached(kernel: Any) -> bool:
    """Whether a kernel cannot be read from a cache, so that each process has to compile it."""
    if _config.DISABLE_JIT:
        return False
    if _folder is None:
        return True
    cache_file = kernel._cache._cache_file  # noqa: SLF001 - numba has no door for it
    return not Path(cache_file._index_path).exists()  # noqa: SLF001


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """What Python calls: compiled at the first call, if ``compiling`` has not done it before."""
    if _config.DISABLE_JIT:
        # As Python runs it, slowly: so that tests measure which of its lines they reach.
        return function
    dispatcher: Any = numba.njit(no_cfunc_wrapper=True, **_flags)(function)
    if _folder is not None and Path(function.__code__.co_filename).is_relative_to(_HERE):
        dispatcher._cache = _Cache(function)  # noqa: SLF001 - numba has no door for it
    return cast("Callable[P, R]", dispatcher)


def part(function: Callable[P, R]) -> Callable[P, R]:
    """A part of kernels, compiled with those that call it; what Python calls is the function as it stands."""
    return function if _config.DISABLE_JIT else cast("Callable[P, R]", Part(function))


def tiny(function: Callable[P, R]) -> Callable[P, R]:
    """A part of a few lines, which LLVM copies to wherever it is called: a call would take longer."""
    if _config.DISABLE_JIT:
        return function
    return cast("Callable[P, R]", Part(function, forceinline=True))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A part that numba copies into its caller: for one that is called at one place, and has a large part in it.

    Whatever is compiled has all its parts in it, so each step of a chain of calls compiles them all again.
    """
    if _config.DISABLE_JIT:
        return function
    return cast("Callable[P, R]", numba.njit(inline="always", **_flags)(function))


class Part:
    """What numba takes for a compiled function and Python for the function itself."""

    def __init__(self, function: Callable[..., Any], *, forceinline: bool = False) -> None:
        wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        # A type keeps no dispatcher alive.
        self._dispatcher: Any = numba.njit(forceinline=forceinline, **wrappers, **_flags)(function)
        # What numba looks for in a name that a kernel uses.
        self._numba_type_ = _PartType(self._dispatcher)
        self.__wrapped__ = function
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any) -> Any:
        return self.__wrapped__(*args)


class _PartType(types.Dispatcher):
    """Of a part: whatever numbers it is called with, it is compiled once."""

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        dispatcher: Any = self.dispatcher
        declared = inspect.get_annotations(dispatcher.py_func, eval_str=True).values()
        args = tuple(map(_type_argument, args, declared))
        return super().get_call_type(context, args, kws)


register_model(_PartType)(models.OpaqueModel)


def _type_argument(given: types.Type, declared: Any) -> types.Type:
    """A constant is a number like any other, and an integer is a float where one is declared."""
    plain = types.unliteral(given)  # type: ignore[attr-defined]
    return types.float64 if declared is float and isinstance(plain, types.Integer) else plain
