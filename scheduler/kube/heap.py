"""Settings of Python's garbage collector for a process that runs for a long time."""

from __future__ import annotations

import gc


def freeze() -> None:
    """The objects that start-up made stay for good, so the garbage collector need not look at them again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
