"""``make differential``: many random cases asked of kube-scheduler and of Evenkeel."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.controlplane import build
from tests.differential import oracle, run

_EVERY = 500


def main() -> int:
    """Run; 1 if any case differs for a reason that is not known."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1, help="another seed, other clusters")
    parser.add_argument("--world", type=int, default=0, help="the first world of the seed")
    parser.add_argument("--folder", type=Path, help="where cases that differ are written to")
    chosen = parser.parse_args()
    build.ensure("etcd", "kube-apiserver", "kube-scheduler")
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="evenkeel-differential-"))
    began_at = time.monotonic()

    def tell(n_asked: int) -> None:
        if n_asked % _EVERY == 0:
            rate = n_asked / (time.monotonic() - began_at)
            print(f"{n_asked} cases, {rate:.1f} a second", file=sys.stderr, flush=True)

    async def ask() -> run.Tally:
        async with oracle.start() as kube_scheduler:
            return await run.run(
                kube_scheduler, chosen.seed, chosen.cases, tell, first_world=chosen.world
            )

    tally = asyncio.run(ask())
    for case in tally.failed:
        print(f"{case.name} ({', '.join(case.features)}): {run.write(case, folder)}")
    print(tally.report())
    print(f"{tally.cases / (time.monotonic() - began_at):.1f} cases a second")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
