"""Compiles kernels before a command that needs them, and shows the progress in a bar."""

from __future__ import annotations

from scheduler import progress


def compile_kernels() -> None:
    """Compile all kernels into the cache."""
    from scheduler.kernels import compiling  # noqa: PLC0415 - numba costs half a second

    with progress.show_bar("kernels compiled", len(compiling.list_kernels())) as progressed:
        compiling.compile_kernels(progressed)


def compile_first_time() -> None:
    """Compile all kernels if the cache lacks any: otherwise the first command of a version would be silent for a minute."""
    from scheduler.kernels import compiling  # noqa: PLC0415 - as above

    if compiling.list_missing():
        compile_kernels()
