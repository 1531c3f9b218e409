"""The memory of a process that runs for long: what the garbage collector looks at, and what goes back to the system."""

from __future__ import annotations

import asyncio
import ctypes
import gc

# A trim takes some milliseconds for each 100 MiB.
_TRIM_SECONDS = 20.0
_malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)


def freeze() -> None:
    """The objects that start-up made stay for good, so the garbage collector need not look at them again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    trim()


def freeze_anew() -> None:
    """Free what is frozen and no longer in use, and freeze the rest; nothing where nothing is frozen.

    The garbage collector frees nothing that is frozen.
    """
    if gc.get_freeze_count():
        gc.unfreeze()
        freeze()


def trim() -> None:
    """Give freed memory back to the system.

    glibc keeps what is freed, and after a burst of large pods that is tens of MiB. A C library without ``malloc_trim``
    keeps what it keeps.
    """
    if _malloc_trim is not None:
        _malloc_trim(0)


async def trim_forever() -> None:
    """Give freed memory back to the system from time to time."""
    while True:
        await asyncio.sleep(_TRIM_SECONDS)
        trim()
