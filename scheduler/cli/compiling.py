"""Kernels are compiled before a command that needs them, and a bar shows how far that is."""

from __future__ import annotations

from scheduler import config, progress


def compile_kernels() -> None:
    """Compile all kernels into the cache."""
    from scheduler.engine import warm  # noqa: PLC0415 - numba costs half a second

    count = warm.Count()
    with (
        progress.bar("kernels compiled", len(count)) as progressed,
        # One call compiles them all, so another thread has to look.
        progress.often(lambda: progressed(count.compiled())),
    ):
        warm.warm(config.Config())


def compile_first_time() -> None:
    """Compile all kernels if none is in the cache: the first command of a version would be silent for minutes."""
    from scheduler.engine import warm  # noqa: PLC0415 - as above

    if warm.is_due():
        compile_kernels()
