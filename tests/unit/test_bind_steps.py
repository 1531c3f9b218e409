"""The steps before a bind: taken in order, undone in reverse, and never out of their term."""

from collections.abc import Callable

import pytest

from scheduler.api.cards import Grant
from scheduler.api.door.decisions import Bind
from scheduler.errors import ApiError
from scheduler.kube.bind.jobs import Answer, Contended, Done, Job, OpenJobs, Waits
from scheduler.kube.bind.steps import Steps
from tests import make

LOST = ApiError(0, "Timeout", "no answer")
DONE, HELD = Done(), Contended("another pod")


class Step:
    """Says in ``said`` what is done with it; ``answer`` is what taking it comes to."""

    waiting = None

    def __init__(
        self,
        name: str,
        said: list[str],
        answer: Answer | Exception = DONE,
        *,
        is_in_turn: bool = True,
    ) -> None:
        self.name, self.is_in_turn, self.is_final = name, is_in_turn, False
        self.said, self.answer = said, answer
        self.is_needed = True
        self.undone: Exception | None = None

    def is_needed_by(self, job: Job) -> bool:
        assert job.node == "n"
        return self.is_needed

    async def take(self, job: Job, may_write: Callable[[], bool]) -> Answer:
        assert may_write()
        assert self.is_final or job.begun_steps[-1] is self
        self.said.append(f"take {self.name}")
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def undo(self, job: Job) -> None:
        assert job.node == "n"
        self.said.append(f"undo {self.name}")
        if self.undone:
            raise self.undone


def made_job() -> Job:
    pod = make.cluster().see_pod(make.pod(name="p"))
    assert pod is not None
    return Job(Bind(pod.uid, "n"), pod, 1, 0.0)


def yes() -> bool:
    return True


async def test_steps_are_undone_in_the_reverse_of_the_order_they_were_taken_in() -> None:
    said: list[str] = []
    steps, job = Steps([Step("a", said), Step("b", said), Step("c", said)]), made_job()
    assert await steps.take(job, yes) == DONE
    await steps.undo(job, yes)
    assert said == ["take a", "take b", "take c", "undo c", "undo b", "undo a"]
    await steps.undo(job, yes)
    assert len(said) == 6


async def test_a_step_that_does_not_concern_a_job_is_neither_taken_nor_undone() -> None:
    said: list[str] = []
    first, second = Step("a", said), Step("b", said)
    first.is_needed = False
    steps, job = Steps([first, second]), made_job()
    assert await steps.take(job, yes) == DONE
    await steps.undo(job, yes)
    assert said == ["take b", "undo b"]


async def test_a_job_that_must_wait_holds_nothing_meanwhile() -> None:
    """Nor does it undo the step that another has."""
    said: list[str] = []
    steps = Steps([Step("a", said), Step("b", said, answer=HELD), Step("c", said)])
    job = made_job()
    assert await steps.take(job, yes) == HELD
    assert said == ["take a", "take b", "undo a"]
    assert not job.begun_steps


async def test_a_step_whose_answer_was_lost_is_undone_too() -> None:
    said: list[str] = []
    steps, job = Steps([Step("a", said), Step("b", said, answer=LOST), Step("c", said)]), made_job()
    with pytest.raises(ApiError):
        await steps.take(job, yes)
    await steps.undo(job, yes)
    assert said == ["take a", "take b", "undo b", "undo a"]


async def test_a_step_that_cannot_be_undone_holds_up_no_other() -> None:
    said: list[str] = []
    first, second = Step("a", said), Step("b", said)
    second.undone = LOST
    steps, job = Steps([first, second]), made_job()
    await steps.take(job, yes)
    await steps.undo(job, yes)
    assert said[2:] == ["undo b", "undo a"]


async def test_nothing_is_undone_out_of_its_term() -> None:
    """What is held may be a successor's by then, for the same pod."""
    said: list[str] = []
    steps, job = Steps([Step("a", said)]), made_job()
    await steps.take(job, yes)
    await steps.undo(job, lambda: False)
    assert said == ["take a"]


async def test_rows_before_the_turn_are_taken_first_and_the_others_when_it_is_the_turn() -> None:
    """The plugin serves one pod at a time: nobody keeps it waiting by what can be done before."""
    said: list[str] = []
    steps = Steps([Step("in", said), Step("before", said, is_in_turn=False)])
    job = Job(Bind(made_job().uid, "n", (Grant("HAMi", ((),)),)), made_job().pod, 1, 0.0)
    assert job.takes_turns
    assert steps.has_step_before_turn(job)
    assert await steps.take(job, yes) == DONE
    assert said == ["take before"]
    assert not steps.has_step_before_turn(job)
    job.has_turn = True
    assert await steps.take(job, yes) == DONE
    assert said == ["take before", "take in"]


async def test_a_turn_that_is_begun_again_takes_its_rows_again_and_no_others() -> None:
    said: list[str] = []
    before, first = Step("before", said, is_in_turn=False), Step("a", said)
    second = Step("b", said, answer=HELD)
    steps, job = Steps([before, first, second]), made_job()
    for _ in range(2):
        assert await steps.take(job, yes) == HELD
    again = ["take a", "take b", "undo a"]
    assert said == ["take before", *again, *again]
    assert job.begun_steps == [before]


async def test_a_job_is_given_back_that_the_same_step_of_its_turn_fails_again_and_again() -> None:
    """Also where another step of the turn is taken each time: its plugins have a lock, and others have none."""
    said: list[str] = []
    steps = Steps([Step("a", said), Step("b", said, answer=LOST)])
    job = Job(Bind(made_job().uid, "n", (Grant("HAMi", ((),)),)), made_job().pod, 1, 0.0)
    job.has_turn = True
    for _ in range(6):
        assert isinstance(await steps.take(job, yes), Contended)
    with pytest.raises(ApiError):
        await steps.take(job, yes)


async def test_a_step_that_waits_is_behind_the_job_once_it_goes_on() -> None:
    said: list[str] = []
    waits = Waits("news")
    steps, job = Steps([Step("a", said, answer=waits), Step("b", said)]), made_job()
    assert await steps.take(job, yes) == waits
    assert await steps.take(job, yes) == DONE
    assert said == ["take a", "take b"]
    await steps.undo(job, yes)
    assert said[2:] == ["undo b", "undo a"]


async def test_what_is_final_is_never_undone() -> None:
    said: list[str] = []
    first = Step("a", said)
    first.is_final = True
    steps, job = Steps([first, Step("b", said, answer=HELD)]), made_job()
    await steps.take(job, yes)
    await steps.undo(job, yes)
    assert said == ["take a", "take b"]


def test_a_job_ends_once() -> None:
    ledger, job = OpenJobs(), made_job()
    ledger.add_job(job)
    ledger.end_job(job)
    with pytest.raises(KeyError):
        ledger.end_job(job)


def test_a_pod_that_goes_while_its_job_is_on_its_way_is_remembered_with_that_job_only() -> None:
    """Seen again after a list that was behind, it is another decision's."""
    ledger, first, second = OpenJobs(), made_job(), made_job()
    ledger.add_job(first)
    ledger.note_pod_gone(first.uid)
    ledger.add_job(second)
    assert (first.is_pod_gone, second.is_pod_gone) == (True, False)
    ledger.end_job(first)
    assert list(ledger) == [second.uid]
    assert len(ledger) == 1
