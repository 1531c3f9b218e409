"""``make bench``: everything, as one JSON document on standard output, progress on standard error.

``ARGS="kernels replay small end-to-end scale hostile"`` picks parts; ``ARGS="end-to-end --quick"`` runs the smallest sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from typing import Any

from bench import end_to_end, hostile, kernels, replay, scale, small

_PARTS: dict[str, Callable[[bool], Any]] = {
    "kernels": lambda _: kernels.run(),
    "replay": replay.run,
    "small": small.run,
    "end-to-end": end_to_end.run,
    "scale": scale.run,
    "hostile": hostile.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(_PARTS))
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    for part in given.parts:
        if part not in _PARTS:
            parser.error(f"{part} is not one of {', '.join(_PARTS)}")
    result: dict[str, Any] = {
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()}
    }
    for part in given.parts or _PARTS:
        print(f"bench: {part}", file=sys.stderr, flush=True)
        result[part] = _PARTS[part](given.quick)
    print(json.dumps(result, indent=2))


main()
