"""``make bench``: everything, as one JSON document on standard output, with progress on standard error.

``ARGS="kernels replay trials small distinct end-to-end scale hostile recording"`` picks parts;
``ARGS="end-to-end --quick"`` runs the smallest sizes. Every figure that has a floor is told as met or missed; with
``--strict`` a missed one fails the run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from typing import Any

from bench import (
    distinct,
    end_to_end,
    floors,
    hostile,
    kernels,
    recording,
    replay,
    scale,
    small,
    trials,
)

_PARTS: dict[str, tuple[Callable[[bool], Any], tuple[floors.Floor, ...]]] = {
    "kernels": (lambda _: kernels.run(), kernels.FLOORS),
    "replay": (replay.run, replay.FLOORS),
    "trials": (trials.run, trials.FLOORS),
    "small": (small.run, small.FLOORS),
    "distinct": (distinct.run, distinct.FLOORS),
    "end-to-end": (end_to_end.run, end_to_end.FLOORS),
    "scale": (scale.run, scale.FLOORS),
    "hostile": (hostile.run, hostile.FLOORS),
    "recording": (recording.run, recording.FLOORS),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(_PARTS))
    parser.add_argument("--quick", action="store_true", help="the smallest sizes")
    parser.add_argument("--strict", action="store_true", help="end with 1 when a floor is missed")
    given = parser.parse_args()
    for part in given.parts:
        if part not in _PARTS:
            parser.error(f"{part} is not one of {', '.join(_PARTS)}")
    result: dict[str, Any] = {
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()}
    }
    told: list[dict[str, Any]] = []
    for part in given.parts or _PARTS:
        print(f"bench: {part}", file=sys.stderr, flush=True)
        run, wanted = _PARTS[part]
        result[part] = run(given.quick)
        told += floors.judged(part, result[part], wanted)
    print(json.dumps(result | {"floors": told}, indent=2))
    for one in told:
        word = "met   " if one["met"] else "MISSED"
        print(f"bench: {word} {one['floor']:>8} {one['figure']}: {one['found']}", file=sys.stderr)
    if given.strict and not all(one["met"] for one in told):
        sys.exit(1)


main()
