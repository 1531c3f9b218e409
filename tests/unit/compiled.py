"""How often a kernel was compiled, and which tests need it compiled."""

import re
from typing import Any

import pytest

from tests import slices

needs_jit = pytest.mark.skipif(not slices.IS_COMPILED, reason="nothing is compiled without the JIT")


def versions(kernel: Any) -> set[str]:
    """The argument types it was compiled for; a constant in a calling kernel counts as its type.

    Empty where it was only called from a kernel that came from the disk cache.
    """
    return {re.sub(r"Literal\[int\]\(-?\d+\)", "int64", str(types)) for types in kernel.signatures}
