"""Random worlds of queues asked of Kueue; a line of JSON for each."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

import msgspec

from tests.controlplane import build
from tests.differential.queues import oracle, ours, run, throughput
from tests.differential.queues.run import RunOurs


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 1 if any world differs for a reason that is not known."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential.queues", description=__doc__
    )
    parser.add_argument("--cases", type=int, default=20, help="how many worlds")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other worlds")
    parser.add_argument("--world", type=int, default=0, help="the first world of the seed")
    parser.add_argument("--fair", action="store_true", help="with fair sharing")
    parser.add_argument("--slices", action="store_true", help="with slices of elastic jobs")
    parser.add_argument(
        "--times", type=int, default=run.TIMES, help="how often each is asked of Kueue"
    )
    parser.add_argument(
        "--lanes", type=int, default=2, help="how many control planes, each with a Kueue"
    )
    parser.add_argument("--kueue-only", action="store_true", help="ask nobody else")
    parser.add_argument(
        "--throughput", type=int, default=0, metavar="N",
        help="instead, how fast Kueue admits so many workloads",
    )  # fmt: skip
    chosen = parser.parse_args(arguments)
    build.ensure("etcd", "kube-apiserver", "kueue")
    if chosen.throughput:
        measured = asyncio.run(throughput.measure_throughput(chosen.throughput))
        print(msgspec.json.encode(measured).decode())
        return 0
    numbers = range(chosen.world, chosen.world + chosen.cases)
    plan = run.Plan(chosen.seed, numbers, chosen.fair, chosen.times, chosen.slices)
    return _run(plan, chosen.lanes, None if chosen.kueue_only else ours.run)


def _run(plan: run.Plan, n_lanes: int, run_ours: RunOurs | None) -> int:
    began_at = time.monotonic()

    def tell(_: run.Tally, case: run.Case) -> None:
        told = {
            "name": case.name,
            "is_ambiguous": case.chance.is_ambiguous,
            "kueue": case.chance.answers[0],
            "chance": [one._asdict() for one in case.chance.differences],
            "ours": case.ours,
            "different": [one._asdict() for one in case.found],
        }
        print(msgspec.json.encode(told).decode(), flush=True)

    async def ask() -> run.Tally:
        async with AsyncExitStack() as stack:
            kueues = [await stack.enter_async_context(oracle.start()) for _ in range(n_lanes)]
            return await run.run(kueues, plan, run_ours, tell)

    tally = asyncio.run(ask())
    for name, text in tally.lost.items():
        print(f"{name}: {text}", file=sys.stderr)
    print(tally.report(), file=sys.stderr)
    seconds = (time.monotonic() - began_at) / max(1, tally.worlds)
    print(f"{seconds:.1f} seconds a world", file=sys.stderr)
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
