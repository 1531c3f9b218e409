"""The one place that sets numba's flags.

``nogil`` and ``cache`` on; ``fastmath`` and ``parallel`` off: a sum must not depend on the
machine, and at 20 µs a pass forking threads costs more than it brings.

No reference counts (``_nrt``): kernels never allocate; one that tries does not compile. Division as in C: the check
for zero that Python's rule adds is a branch, and keeps LLVM from vectorising (79 ns against 15 ns for a full score of
six dimensions).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import types
from numba.extending import models, register_model

from scheduler.kernels import (
    _cache,
    _handles,  # noqa: F401 - tells numba of them
)

P = ParamSpec("P")
R = TypeVar("R")

_config: Any = numba.config
_flags: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}


def is_compiled() -> bool:
    """Whether kernels are compiled; else Python runs them as they are written."""
    return not _config.DISABLE_JIT


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """What Python calls: compiled at the first call, if ``compiling`` has not done it before."""
    if _config.DISABLE_JIT:
        # As Python runs it, slowly: so that tests measure which of its lines they reach.
        return function
    dispatcher: Any = numba.njit(no_cfunc_wrapper=True, **_flags)(function)
    if (found := _cache.make_cache(function)) is not None:
        dispatcher._cache = found  # noqa: SLF001 - numba has no door for it
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
