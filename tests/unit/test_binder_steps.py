"""The binder walks a table of steps, whatever they are: nobody who waits has a worker, and what was begun is undone."""

from collections.abc import Callable, Iterable

import pytest

from scheduler.api.cards import Grant
from scheduler.api.door import events
from scheduler.api.door.decisions import Bind
from scheduler.kube.bind.jobs import (
    Answer,
    Contended,
    Done,
    GiveBack,
    Impossible,
    Job,
    Start,
    Waits,
)
from tests.unit.test_binder import Api, binder, pod, submit, until


class Book:
    """The jobs that wait for a step: they go on with any object of the kind ``Go``."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def __len__(self) -> int:
        return len(self.jobs)

    def see_object(self, kind: str, namespace: str, name: str) -> Iterable[Start | GiveBack]:
        assert (namespace, name) == ("default", "x")
        return [Start(job) for job in self._take_all()] if kind == "Go" else []

    def note_node_gone(self, node: str) -> Iterable[Start | GiveBack]:
        return [GiveBack(job, f"{node} is gone") for job in self._take_all()]

    def pass_time(self, now: float) -> Iterable[Start | GiveBack]:
        assert now > 0
        return ()

    def give_up_waiting(self, why: str) -> Iterable[Start | GiveBack]:
        return [GiveBack(job, why) for job in self._take_all()]

    def drop_job(self, job: Job) -> bool:
        if job not in self.jobs:
            return False
        self.jobs.remove(job)
        return True

    def _take_all(self) -> list[Job]:
        taken, self.jobs = self.jobs, []
        return taken


class Row:
    """A step that answers what it is told to."""

    is_final = False

    def __init__(
        self, name: str, did: list[str], answer: Answer | Exception, *, is_in_turn: bool = False
    ) -> None:
        self.name, self.is_in_turn = name, is_in_turn
        self.waiting = Book()
        self._did, self._answer = did, answer

    def is_needed_by(self, job: Job) -> bool:
        return job.node.startswith("n")

    async def take(self, job: Job, may_write: Callable[[], bool]) -> Answer:
        assert may_write()
        self._did.append(self.name)
        if isinstance(self._answer, Exception):
            raise self._answer
        if isinstance(self._answer, Waits):
            self.waiting.jobs.append(job)
        return self._answer

    async def undo(self, job: Job) -> None:
        assert job not in self.waiting.jobs
        self._did.append(f"no {self.name}")


async def test_a_job_goes_on_behind_the_step_that_it_has_waited_for() -> None:
    did: list[str] = []
    rows = [Row("a", did, Done()), Row("b", did, Waits("news")), Row("c", did, Done())]
    api = Api(lambda *_: {})
    async with binder(api, steps=rows, in_flight=1) as (made, reported):
        submit(made, "p")
        await until(lambda: made._steps.n_waiting == 1)
        made.see_object("Other", "default", "x")
        assert did == ["a", "b"]
        assert not api.asked
        made.see_object("Go", "default", "x")
        await until(lambda: bool(reported))
    assert did == ["a", "b", "c"]
    assert reported == [events.BindDone("default/p")]


async def test_a_job_that_is_given_back_while_it_waits_has_undone_what_it_began() -> None:
    did: list[str] = []
    rows = [Row("a", did, Done()), Row("b", did, Waits("news"))]
    async with binder(Api(lambda *_: {}), steps=rows) as (made, reported):
        submit(made, "p")
        await until(lambda: made._steps.n_waiting == 1)
        made.note_node_gone("node")
        await until(lambda: bool(reported))
        assert made.backlog == 0
    assert did == ["a", "b", "no b", "no a"]
    assert reported == [events.BindFailed("default/p", "node is gone")]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Contended("another"), "contended by another"),
        (Impossible("it is not there"), "it is not there"),
    ],
)
async def test_a_job_without_turns_that_cannot_go_on_is_decided_anew(
    answer: Answer | Exception, why: str
) -> None:
    did: list[str] = []
    rows = [Row("a", did, Done()), Row("b", did, answer)]
    api = Api(lambda *_: {})
    async with binder(api, steps=rows) as (made, reported):
        submit(made, "p")
        await until(lambda: bool(reported))
    assert reported == [events.BindFailed("default/p", why)]
    assert did[-1] == "no a"
    assert not api.asked


@pytest.mark.parametrize("goes_on", [True, False])
async def test_a_job_that_waits_in_its_turn_keeps_it(*, goes_on: bool) -> None:
    """The next one begins when it has come to something."""
    did: list[str] = []
    rows = [Row("a", did, Waits("news"), is_in_turn=True)]
    async with binder(Api(lambda *_: {}), steps=rows) as (made, reported):
        for name in ("p", "q"):
            one = pod(name)
            made.submit_binds([Bind(one.uid, "n", (Grant("HAMi", ((),)),))], {one.uid: one})
        await until(lambda: made._steps.n_waiting == 1)
        assert did == ["a"]
        if goes_on:
            made.see_object("Go", "default", "x")
            await until(lambda: bool(reported))
            assert reported == [events.BindDone("default/p")]
            assert did == ["a"]
        else:
            assert made.withdraw_bind("default/p", "preempted")
            await until(lambda: made._steps.n_waiting == 1)
            assert reported == [events.BindFailed("default/p", "preempted")]
            assert did == ["a", "no a", "a"]
