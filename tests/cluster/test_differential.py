"""kube-scheduler and Evenkeel answer alike, on random clusters."""

import asyncio
from pathlib import Path

import pytest

from tests.differential import oracle, run
from tests.differential.features import claims
from tests.differential.groups import oracle as group_oracle
from tests.differential.groups import run as groups

# Each feature alone, and some of the pairs; `make differential` asks more of them, of other seeds too.
SEED, CASES = 1, 300
# Of each feature of ResourceClaims, with the features that it meets first.
CLAIMS, CLAIM_CASES = tuple(one.name for one in claims.FEATURES), 20
# Worlds with groups that are placed whole and in part, that room is made for, that wait, and whose minimum is raised;
# and with pods by themselves, for which whole groups have to go.
GROUP_SEED = 3
GROUPS = (*range(20), 23, 25, 26, 28, 37, 39, 51, 68, 71, 72, 82, 90, 107, 123, 138)


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


@pytest.mark.usefixtures("peers")
def test_what_kube_scheduler_allocates_evenkeel_allocates(tmp_path: Path) -> None:
    """The same devices for the same claims; and who must wait for devices is told the same."""

    async def ask() -> list[run.Tally]:
        async with oracle.start(SEED) as kube_scheduler:
            return [
                await run.run(kube_scheduler, run.Plan(SEED, CLAIM_CASES, 0, name), lambda _n: None)
                for name in CLAIMS
            ]

    tallies = asyncio.run(ask())
    files = [run.write(case, tmp_path) for tally in tallies for case in tally.failed]
    told = "\n".join(tally.report() for tally in tallies)
    assert not files, f"{told}\n{files}"
    assert sum(tally.allocated for tally in tallies) >= CLAIM_CASES
    print(told)


@pytest.mark.usefixtures("peers")
def test_what_kube_scheduler_decides_about_groups_evenkeel_decides(tmp_path: Path) -> None:
    """The same members get the same nodes, the same pods have to go, and the same is told."""

    async def ask() -> groups.Tally:
        async with group_oracle.start() as kube_scheduler:
            return await groups.run(kube_scheduler, GROUP_SEED, GROUPS, lambda _n: None)

    tally = asyncio.run(ask())
    files = [groups.write(case, tmp_path) for case in tally.failed]
    assert not tally.failed, f"{tally.report()}\n{files}"
    fates = "placed whole", "placed in part", "promised room", "told that they wait"
    assert min(tally.became[fate] for fate in fates) >= len(GROUPS) / 7
    assert sum(n for what, n in tally.became.items() if what.endswith("raised")) >= 5
    print(tally.report())
