"""The memory of a long process: what the garbage collector looks at, and what goes back to the system."""

from __future__ import annotations

import asyncio
import ctypes
import gc

# A trim takes some milliseconds for each 100 MiB.
_TRIM_SECONDS = 20.0
_malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)


def freeze() -> None:
    """Freeze all objects: those of the start stay for good, so the garbage collector need not look at them again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    trim()


def freeze_anew() -> None:
    """Free frozen objects that are no longer in use, and freeze the rest; do nothing if nothing is frozen.

    The garbage collector frees no frozen object.
    """
    if gc.get_freeze_count():
        gc.unfreeze()
        freeze()


def trim() -> None:
    """Give freed memory back to the system.

    glibc keeps freed memory, which is tens of MiB after a burst of large pods. With a C library that has no
    ``malloc_trim``, nothing is given back.
    """
    if _malloc_trim is not None:
        _malloc_trim(0)


async def trim_forever() -> None:
    """Give freed memory back to the system from time to time."""
    while True:
        await asyncio.sleep(_TRIM_SECONDS)
        trim()
