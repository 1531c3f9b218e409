"""What a bundle of arrays costs a kernel: as a tuple of arrays, as numba's ``structref``, and as a handle.

A tree of functions, each of which reads ten of the arrays and calls the next, is compiled with nothing cached, and
called. Every kind has a process of its own, for what one has compiled the next would find.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.experimental import structref

from bench.floors import Floor
from scheduler.kernels import _jit  # noqa: F401 - tells numba of handles
from scheduler.schema import handles

_ARRAYS = 130
_DEPTH, _READS, _LENGTH = 12, 10, 64
_CALLS, _NESTED, _LOOPS = 20_000, 2_000_000, 500_000
_KINDS = ("tuple", "structref", "handle")

FLOORS = (
    Floor("times_as_fast_as_a_tuple.compile_seconds", at_least=4),
    Floor("times_as_fast_as_a_tuple.call_us", at_least=4),
    Floor("times_as_fast_as_a_structref.ready_seconds", at_least=1.5),
    Floor("times_as_fast_as_a_structref.loop_ns", at_least=2),
)


def run() -> dict[str, Any]:
    """Seconds until a bundle can be passed (``ready``, of which compiling the tree), and what calls cost then."""
    found = {kind: _measure_apart(kind) for kind in _KINDS}
    handle = found["handle"]
    return {
        "arrays": _ARRAYS,
        **found,
        **{
            f"times_as_fast_as_a_{kind}": {
                figure: round(found[kind][figure] / handle[figure], 1) for figure in handle
            }
            for kind in ("tuple", "structref")
        },
    }


def _measure_apart(kind: str) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.handles", kind]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _measure(kind: str) -> dict[str, float]:
    names = [f"a{i}" for i in range(_ARRAYS)]
    began = time.perf_counter()
    bundle = _make_bundle(kind, names)
    made = time.perf_counter()
    tree, loop = _make_functions(kind, names)
    tree(bundle, 1)
    compiled = time.perf_counter()
    loop(bundle, 1)
    return {
        "ready_seconds": round(compiled - began, 3),
        "compile_seconds": round(compiled - made, 3),
        "call_us": _time(lambda: [tree(bundle, 0) for _ in range(_CALLS)], _CALLS, 1e6),
        "nested_ns": _time(lambda: tree(bundle, _NESTED), _NESTED, 1e9),
        "loop_ns": _time(lambda: loop(bundle, _LOOPS), _LOOPS, 1e9),
    }


def _time(function: Callable[[], object], n: int, per_second: float) -> float:
    """The fastest of three, for each of n."""
    took = []
    for _ in range(3):
        began = time.perf_counter()
        function()
        took.append(time.perf_counter() - began)
    return round(min(took) / n * per_second, 3)


def _make_bundle(kind: str, names: list[str]) -> Any:
    arrays = [np.ones(_LENGTH, np.int64) for _ in names]
    if kind == "tuple":
        return namedtuple("Bundle", names)(*arrays)  # noqa: PYI024 - the names are made here
    if kind == "handle":
        declared = {"__annotations__": dict.fromkeys(names, handles.Ints1), "__module__": __name__}
        made: Callable[..., Any] = type("Bundle", (handles.Handle,), declared)
        return made(*arrays)

    class BundleType(numba.types.StructRef):  # type: ignore[misc]
        """As numba's manual says."""

    class Bundle(structref.StructRefProxy):  # type: ignore[misc]
        """Likewise."""

    structref.register(BundleType)
    structref.define_proxy(Bundle, BundleType, names)
    return Bundle(*arrays)


def _make_functions(kind: str, names: list[str]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The tree, which calls itself so many times, and a loop over two arrays that LLVM can vectorise."""
    sources = []
    for level in range(_DEPTH):
        reads = [f"    t += b.{names[(level * _READS + i) % len(names)]}[i]" for i in range(_READS)]
        below = [f"    t += level_{level - 1}(b, i)"] if level else []
        sources.append(
            "\n".join([f"def level_{level}(b, i):", "    t = 0", *reads, *below, "    return t"])
        )
    sources += [
        f"def tree(b, n):\n    t = 0\n    for k in range(n):\n        t += level_{_DEPTH - 1}(b, k & 63)\n    return t",
        "def loop(b, n):\n    for _ in range(n):\n        for i in range(b.a0.size):\n            b.a1[i] += 3 * b.a0[i]",
    ]
    # Reference counts belong to structref alone.
    flags = {"nogil": True, "error_model": "numpy", "_nrt": kind == "structref"}
    space: dict[str, Any] = {}
    for source in sources:
        exec(source, space)
        name = source.split("(")[0].removeprefix("def ")
        space[name] = numba.njit(**flags)(space[name])
    return space["tree"], space["loop"]


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1])))
