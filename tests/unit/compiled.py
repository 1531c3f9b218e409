"""How often a kernel was compiled, and how much a test does where Python runs the kernels."""

import os
import re
from typing import Any

import pytest

JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
needs_jit = pytest.mark.skipif(not JIT, reason="nothing is compiled without the JIT")


def examples(n: int) -> int:
    """The number of examples to try: ``n``, or a tenth without the JIT, when kernels take a hundred times as
    long."""
    return n if JIT else -(-n // 10)


def seeds(*every: int) -> tuple[int, ...]:
    """The seeds to try: all of them, or the first without the JIT."""
    return every if JIT else every[:1]


def versions(kernel: Any) -> set[str]:
    """The argument types it was compiled for; a constant in a calling kernel counts as its type.

    Empty where it was only called from a kernel that came from the disk cache.
    """
    return {re.sub(r"Literal\[int\]\(-?\d+\)", "int64", str(types)) for types in kernel.signatures}
