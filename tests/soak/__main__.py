"""``python -m tests.soak``: prints the seed, then one line of JSON; exits with 1 if something was wrong."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path

from tests.soak.run import Plan, soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long things happen")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="what draws them")
    parser.add_argument(
        "--logs", type=Path, help="folder for the logs of the scheduler's processes"
    )
    given = parser.parse_args()
    print(f"{given.minutes:g} minutes of random things, by the seed {given.seed}", flush=True)
    figures, wrongs = asyncio.run(soak(Plan(given.minutes * 60.0, given.seed), given.logs))
    for wrong in wrongs:
        print(wrong)
    print(json.dumps({**figures, "wrongs": len(wrongs)}), flush=True)
    return 1 if wrongs else 0


if __name__ == "__main__":
    sys.exit(main())
