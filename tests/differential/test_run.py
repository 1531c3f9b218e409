"""A run counts what it asks, and keeps what differs in files that others can read."""

from io import StringIO
from pathlib import Path
from typing import Any, cast

import pytest

from scheduler.simulate import schedule
from scheduler.simulate.reading import files
from tests.controlplane.objects import CallError
from tests.differential import ours, run
from tests.differential.answers import Answer
from tests.differential.oracle import Asked, Oracle
from tests.differential.worlds import World

Json = dict[str, Any]
# So many pods come to a world.
PER_WORLD = 6
SEED = 1
SETTINGS = ours.settings(SEED)


class Echo:
    """Answers as Evenkeel does, but for what a test makes of it."""

    def __init__(self, *, lies: int = 0, trouble: int = 0) -> None:
        self._lies, self._trouble = lies, trouble
        self._there: list[Json] = []
        self.loaded = 0
        self.was_patient = False

    async def load(self, world: World, *, patiently: bool = False) -> list[Json]:
        self.loaded += 1
        self.was_patient |= patiently
        if self._trouble and self.loaded == 1:
            raise CallError("POST /: no", self._trouble)
        self._there = world.objects
        return [*self._there]

    async def ask(self, pod: Json) -> Asked:
        answer = ours.answer(self._there, pod, SETTINGS)
        bound = None
        if answer.node:
            bound = pod | {"spec": pod["spec"] | {"nodeName": answer.node}}
            self._there.append(bound)
        return Asked(pod, self._lied(answer), bound)

    async def found(self, _world: World) -> list[Json]:
        return [*self._there]

    def _lied(self, answer: Answer) -> Answer:
        if not self._lies or answer.node is None:
            return answer
        self._lies -= 1
        return answer._replace(feasible=frozenset({"nobody"}))


async def asked(echo: Echo, n_cases: int) -> run.Tally:
    plan = run.Plan(seed=SEED, n_cases=n_cases)
    return await run.run(cast("Oracle", echo), plan, lambda _tally: None)


async def test_who_answers_alike_never_differs() -> None:
    """What kube-scheduler chose is there for the next pod on both sides."""
    tally = await asked(Echo(), 2 * PER_WORLD)
    assert tally.cases == 2 * PER_WORLD == sum(tally.fits.values())
    assert not tally.failed
    assert tally.again == 0


async def test_who_had_not_seen_all_is_asked_again() -> None:
    tally = await asked(echo := Echo(lies=1), PER_WORLD)
    assert not tally.failed
    assert tally.again == 1
    assert echo.was_patient


async def test_what_differs_twice_is_kept_in_a_file_that_simulate_reads(tmp_path: Path) -> None:
    tally = await asked(Echo(lies=2), PER_WORLD)
    (case,) = tally.failed
    assert "DIFFERENT, 1 cases: feasible" in tally.report()
    path = run.write(case, tmp_path)
    assert case.name in path.read_text(encoding="utf-8")
    result = schedule(files.read_objects(str(path), StringIO()), config=SETTINGS, with_nodes=True)
    pod = case.objects[-1]["metadata"]["name"]
    (row,) = [one for one in result["pods"] if one["name"] == pod]
    assert row["node"] == case.ours.node


async def test_a_world_for_which_the_server_is_too_slow_is_given_up() -> None:
    tally = await asked(Echo(trouble=504), 1)
    assert (tally.cases, tally.lost) == (1, 1)
    assert "given up" in tally.report()


async def test_a_world_that_the_server_refuses_is_a_mistake_of_its_makers() -> None:
    with pytest.raises(CallError):
        await asked(Echo(trouble=422), 1)
