"""How often a kernel was compiled."""

import os
import re
from typing import Any

import pytest

needs_jit = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="nothing is compiled without the JIT"
)


def versions(kernel: Any) -> set[str]:
    """The argument types it was compiled for; a constant in a calling kernel counts as its type.

    Empty where it was only called from a kernel that came from the disk cache.
    """
    return {re.sub(r"Literal\[int\]\(-?\d+\)", "int64", str(types)) for types in kernel.signatures}
