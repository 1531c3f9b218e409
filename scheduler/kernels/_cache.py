"""The cache of compiled kernels: where it is, and how numba reads it.

When numba loads a compiled function, it also gets ready to compile callers of it: it parses the bitcode of the function and
imports every module that declares functions and types. A start that finds all kernels in the cache compiles nothing.
Without that work it loads the kernels in a ninth of the time.
"""

from __future__ import annotations

import functools
import hashlib
import pickle
import tempfile
import warnings
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core import caching, codegen, compiler

_config: Any = numba.config
_HERE = Path(__file__).parent
# What a file raises that a crash has cut short.
_DAMAGED = EOFError, pickle.UnpicklingError
NO_BITCODE: bytes = llvm.parse_assembly("").as_bitcode()


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

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """Make what was read callable. Its bitcode is parsed only if a caller of it is compiled."""
        (name, kind, (object_code, bitcode)), function, *rest = payload
        # numba reads from the bitcode which symbols there are.
        symbols = {function.llvm_func_name, function.llvm_cpython_wrapper_name}
        target_context.codegen()._engine._defined_symbols |= symbols  # noqa: SLF001 - numba has no door for it
        code = name, kind, (object_code, NO_BITCODE)
        found = compiler.CompileResult._rebuild(target_context, code, function, *rest)  # noqa: SLF001
        found.library._get_module_for_linking = functools.cache(  # noqa: SLF001
            functools.partial(llvm.parse_bitcode, bitcode)
        )
        return found


class Cache(caching.FunctionCache):  # type: ignore[misc]
    _impl_class = _Files

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a kernel, without making the compiler ready first; return None if the cache does not have it, or a damaged one."""
        with self._guard_against_spurious_io_errors():
            try:
                return self._load_overload(sig, target_context)
            except _DAMAGED as error:
                index = Path(self._cache_file._index_path)  # noqa: SLF001 - numba has no door for it
                warnings.warn(
                    f"{index} or its data is damaged ({error!r}), so the kernel is compiled again",
                    stacklevel=2,
                )
                if _is_writable:
                    index.unlink(missing_ok=True)
                return None

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
    digest.update(str((_config.BOUNDSCHECK, *_describe_processor())).encode())
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


def _describe_processor() -> tuple[str, str]:
    """Return the name and the features of the processor that kernels are compiled for: others cannot run them."""
    name, features = _config.CPU_NAME, _config.CPU_FEATURES
    return (
        llvm.get_host_cpu_name() if name is None else name,
        codegen.get_host_cpu_features() if features is None else features,
    )


_folder, _is_writable = _cache_folder()
if _folder is not None:
    _config.CACHE_DIR = str(_folder)


def make_cache(function: Any) -> Cache | None:
    """Make the cache of a function; None for a function that is no kernel here, or if there is no cache."""
    is_here = Path(function.__code__.co_filename).is_relative_to(_HERE)
    return Cache(function) if _folder is not None and is_here else None


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
    try:
        names = cache_file._load_index().values()  # noqa: SLF001
    except _DAMAGED:
        return True
    # numba writes the index first.
    return not names or not all(Path(cache_file._data_path(name)).exists() for name in names)  # noqa: SLF001
