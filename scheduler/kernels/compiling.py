"""All kernels compiled, or read from the cache, before any is called; where there are several cores on all of them.

Each kernel is compiled for the one signature that it declares.
"""

from __future__ import annotations

import dis
import inspect
import pkgutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import cache
from importlib import import_module
from multiprocessing import cpu_count, get_context
from types import ModuleType
from typing import Any

from numba.core.dispatcher import Dispatcher

from scheduler import kernels
from scheduler.kernels import _cache, _handles, _jit

# A few kernels take most of the time, one after the other; each process takes 300 MiB.
_WORKERS_MAX = 4


def list_kernels() -> dict[str, Any]:
    """List all kernels by module and name."""
    names = [one.name for one in pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}.")]
    return {
        f"{name}:{function.__name__}": function
        for name in names
        for function in vars(import_module(name)).values()
        if _is_kernel(function) and function.__module__ == name
    }


def list_missing() -> list[str]:
    """List the kernels that are still to be compiled for the cache."""
    return [key for key, one in list_kernels().items() if _cache.is_missing(one)]


def has_uncached() -> bool:
    """Whether getting all kernels ready takes long, because some of them are in no cache."""
    return any(map(_cache.is_uncached, list_kernels().values()))


def compile_kernels(progressed: Callable[[int], None]) -> None:
    """Get all kernels ready in this process; ``progressed`` is told how many are ready, as the work goes on."""
    every = list_kernels()
    waits_for = {key: _list_within(one) for key, one in every.items()}
    missing = {key for key, one in every.items() if _cache.is_missing(one)}
    n_ready, n_workers = len(every) - len(missing), min(cpu_count(), _WORKERS_MAX, len(missing))
    if n_workers > 1:
        uses = Counter(key for within in waits_for.values() for key in within)
        # Kernels that are parts of most others come first.
        first = sorted(missing, key=lambda key: (-uses[key], key))
        left = {key: set(waits_for[key] & missing) for key in first}
        _fill_cache(left, n_workers, lambda n: progressed(n_ready + n))
    for _ in load_kernels():
        pass
    progressed(len(every))


def load_kernels() -> Iterator[str]:
    """Get all kernels ready in this process, and say after each which it was; from the cache it takes milliseconds."""
    for key, one in list_kernels().items():
        _compile(one)
        yield key


def _fill_cache(
    waits_for: dict[str, set[str]], n_workers: int, progressed: Callable[[int], None]
) -> None:
    """Compile kernels in processes of their own, for compiling holds the interpreter's lock.

    A kernel has its turn when those within it, for which it waits, are in the cache: else it would compile them again.
    """
    n_all = len(waits_for)
    running: dict[Future[None], str] = {}
    # Ctrl-C goes to all processes of a terminal, and one of them says so.
    quiet = signal.signal, (signal.SIGINT, signal.SIG_DFL)
    with ProcessPoolExecutor(n_workers, get_context("spawn"), *quiet) as pool:
        while waits_for or running:
            ready = [key for key, within in waits_for.items() if not within]
            for key in ready[: n_workers - len(running)]:
                del waits_for[key]
                running[pool.submit(_compile_by_name, key)] = key
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                done.result()
                key = running.pop(done)
                for within in waits_for.values():
                    within.discard(key)
            progressed(n_all - len(waits_for) - len(running))


def _compile_by_name(key: str) -> None:
    module, name = key.split(":")
    _compile(getattr(import_module(module), name))


def _compile(function: Any) -> None:
    declared = inspect.get_annotations(function.py_func, eval_str=True)
    declared.pop("return", None)
    function.compile(tuple(map(_handles.type_argument, declared.values())))


def _is_kernel(function: object) -> bool:
    return isinstance(function, Dispatcher) and not function.targetoptions.get("inline")


@cache
def _list_within(kernel: Any) -> frozenset[str]:
    """List the kernels that a kernel calls, itself or by its parts."""
    seen: set[Any] = set()
    left = [kernel]
    while left:
        function = inspect.unwrap(getattr(one := left.pop(), "py_func", one))
        new = _list_called(function) - seen
        seen |= new
        left += new
    return frozenset(f"{one.__module__}:{one.__name__}" for one in seen if _is_kernel(one))


@cache
def _list_called(function: Any) -> frozenset[Any]:
    """List the kernels and parts that a function names. The function is read once, however many kernels contain it."""
    return frozenset(_walk_called(function))


def _walk_called(function: Any) -> Iterator[Any]:
    """Yield the kernels and parts that a function names, as ``name`` or as ``module.name``."""
    value = None
    for step in dis.get_instructions(function):
        if step.opname == "LOAD_GLOBAL":
            value = function.__globals__.get(step.argval)
        elif step.opname in {"LOAD_ATTR", "LOAD_METHOD"} and isinstance(value, ModuleType):
            value = getattr(value, step.argval, None)
        else:
            continue
        if isinstance(value, Dispatcher | _jit.Part):
            yield value
