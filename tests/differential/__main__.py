"""``make differential``: many random cases asked of kube-scheduler and of Evenkeel."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.controlplane import build
from tests.differential import oracle, run
from tests.differential.features import FEATURES
from tests.differential.groups import oracle as group_oracle
from tests.differential.groups import run as groups
from tests.differential.queues import __main__ as queues
from tests.differential.selectors import __main__ as selectors

_EVERY = 500


def main() -> int:
    """Run; 1 if any case differs for a reason that is not known."""
    if sys.argv[1:2] == ["kueue"]:
        return queues.main(sys.argv[2:])
    if sys.argv[1:2] == ["selectors"]:
        return selectors.main(sys.argv[2:])
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument(
        "--groups",
        type=int,
        default=0,
        metavar="N",
        help="ask about so many groups of pods instead",
    )
    parser.add_argument("--seed", type=int, default=1, help="another seed, other clusters")
    parser.add_argument("--world", type=int, default=0, help="the first world of the seed")
    parser.add_argument(
        "--feature", default="", choices=[one.name for one in FEATURES], metavar="NAME",
        help="only worlds with this feature, alone and with others",
    )  # fmt: skip
    parser.add_argument("--folder", type=Path, help="where cases that differ are written to")
    chosen = parser.parse_args()
    build.ensure("etcd", "kube-apiserver", "kube-scheduler")
    folder: Path = chosen.folder or Path(tempfile.mkdtemp(prefix="evenkeel-differential-"))
    began_at = time.monotonic()
    if chosen.groups:
        return _compare_groups(
            chosen.seed, range(chosen.world, chosen.world + chosen.groups), folder
        )
    written: list[Path] = []

    def tell(tally: run.Tally) -> None:
        for case in tally.failed[len(written) :]:
            written.append(run.write(case, folder))
            print(f"{case.name} ({', '.join(case.features)}): {written[-1]}", flush=True)
        if tally.cases % _EVERY == 0:
            rate = tally.cases / (time.monotonic() - began_at)
            told = f"{len(tally.failed)} different, {rate:.1f} a second"
            print(f"{tally.cases} cases, {told}", file=sys.stderr, flush=True)

    async def ask() -> run.Tally:
        async with oracle.start(chosen.seed) as kube_scheduler:
            plan = run.Plan(chosen.seed, chosen.cases, chosen.world, chosen.feature)
            return await run.run(kube_scheduler, plan, tell)

    tally = asyncio.run(ask())
    print(tally.report())
    print(f"{tally.cases / (time.monotonic() - began_at):.1f} cases a second")
    return 1 if tally.failed else 0


def _compare_groups(seed: int, numbers: Sequence[int], folder: Path) -> int:
    """Ask about groups; 1 if one differs for a reason that is not known."""
    began_at = time.monotonic()
    n_told = 0

    def tell(tally: groups.Tally) -> None:
        nonlocal n_told
        for case in tally.failed[n_told:]:
            print(f"{case.name}: {groups.write(case, folder)}", flush=True)
        n_told = len(tally.failed)

    async def ask() -> groups.Tally:
        async with group_oracle.start() as kube_scheduler:
            return await groups.run(kube_scheduler, seed, numbers, tell)

    tally = asyncio.run(ask())
    print(tally.report())
    print(f"{tally.cases / (time.monotonic() - began_at):.1f} groups a second")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
