"""What a month of each resource costs, so that stranded resources can be told in one figure.

The defaults are the list of the Lambda-G benchmark (0x-auth, 2026): 34.5 for a core, 4.31 for a GB of memory,
150 for compute and 50 per GB of memory of a GPU. Its compute is counted in units of which a node has 50 to
100, but at 150 a percent one GPU would cost 15,000 a month; so 150 is taken for a whole GPU and GB for GiB.
An 80 GiB card then costs 4,150 a month, about what clouds ask on demand, and a 16 GiB card 950, which is more
than they do. The same author's auditor uses lower ones: 30, 5, 200 and 15. They are somebody else's list
prices: for figures of your own, give the prices on your bill.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from scheduler.errors import BadInput

# In the order of all arrays of the audit: cpu, memory, compute of GPUs, memory of GPUs.
CPU_CORE, MEMORY_GIB, GPU, GPU_MEMORY_GIB = "cpu-core", "memory-gib", "gpu", "gpu-memory-gib"
DEFAULTS: Mapping[str, float] = {
    CPU_CORE: 34.5, MEMORY_GIB: 4.31, GPU: 150.0, GPU_MEMORY_GIB: 50.0
}  # fmt: skip
PRICE_MAX = 1e9


def of_flags(file: Path | None, flags: Sequence[str]) -> dict[str, float]:
    """The price list: the defaults, then the file's prices over them, then each ``name=price`` over these.

    Raises:
        BadInput: an unknown name, or a price that is no number of 0 or more; names the file or flag.
    """
    prices = dict(DEFAULTS)
    if file is not None:
        prices |= _of_file(file)
    for flag in flags:
        name, equals, text = flag.partition("=")
        if not equals:
            raise BadInput("--price", f'"{flag}" is not name=price, e.g. {CPU_CORE}=30')
        try:
            given: Any = float(text)
        except ValueError:
            given = text
        prices |= _one(f"--price {name}", name, given)
    return prices


def _of_file(path: Path) -> dict[str, float]:
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise BadInput(f"--prices {path}", str(error)) from error
    if not isinstance(raw, Mapping):
        raise BadInput(
            f"--prices {path}", f"must hold a mapping of {', '.join(DEFAULTS)} to prices"
        )
    found: dict[str, float] = {}
    for name, price in raw.items():
        found |= _one(f"--prices {path}: {name}", name, price)
    return found


def _one(field: str, name: Any, price: Any) -> dict[str, float]:
    if name not in DEFAULTS:
        raise BadInput(field, f"is not a resource with a price; allowed are {', '.join(DEFAULTS)}")
    # Neither .inf nor .nan is within: no comparison holds for nan.
    if (
        not isinstance(price, (int, float))
        or isinstance(price, bool)
        or not 0 <= price <= PRICE_MAX
    ):
        raise BadInput(field, f"{price!r} is not a price per month within 0..{PRICE_MAX:.0f}")
    return {name: float(price)}
