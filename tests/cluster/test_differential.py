"""kube-scheduler and Evenkeel answer alike, on random clusters."""

import asyncio
from pathlib import Path

import pytest

from tests.differential import oracle, run

# Each feature alone, and some of the pairs; `make differential` asks more of them, of other seeds too.
SEED, CASES = 1, 500


@pytest.mark.usefixtures("peers")
def test_what_kube_scheduler_decides_evenkeel_decides(tmp_path: Path) -> None:
    """The same nodes fit, with the same scores, and who must wait is told the same."""

    async def ask() -> run.Tally:
        async with oracle.start(SEED) as kube_scheduler:
            return await run.run(kube_scheduler, run.Plan(SEED, CASES), lambda _n: None)

    tally = asyncio.run(ask())
    files = [run.write(case, tmp_path) for case in tally.failed]
    assert not tally.failed, f"{tally.report()}\n{files}"
    assert tally.cases == CASES
    assert min(tally.fits[kind] for kind in ("none", "some", "all")) >= CASES / 20
    print(tally.report())
