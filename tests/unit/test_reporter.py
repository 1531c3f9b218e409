"""What is said of pods that wait: new reasons at once, new figures seldom, and nothing of who waits no more."""

import asyncio
import json
from typing import Any

import pytest

from scheduler.api.door.decisions import Detail, Diagnosis, Hold
from scheduler.errors import Mistake
from scheduler.kube.report.reporter import Reporter
from scheduler.state.pods import PodRecord
from scheduler.telling import sayings
from scheduler.telling.sayings import Saying
from tests import make


class Talk:
    """A reporter, its clock, and what it has handed to its outbox since the last look."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.waiting = 1000.0, True
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: self.now)
        nobody: Any = None
        self.reporter = Reporter(
            nobody,
            controller="evenkeel",
            instance="i",
            has_urgent=lambda: False,
            get_version=lambda _: "7",
            is_still_waiting=lambda _: self.waiting,
        )
        self._cluster = make.cluster()
        self._put: list[str] = []
        monkeypatch.setattr(self.reporter._outbox, "put", self._keep)

    def _keep(self, report: Any) -> None:
        body = json.loads(report.make_body())
        if "note" in body:
            self._put.append(body["note"])
        else:
            assert body["status"]["conditions"][0]["message"].startswith(self._put[-1][:20])

    def pod(self, name: str = "p") -> PodRecord:
        pod = self._cluster.see_pod(make.pod(name=name))
        assert pod is not None
        return pod

    def said(self) -> list[str]:
        """The notes of events since the last look."""
        put, self._put[:] = list(self._put), []
        return put

    def after(self, seconds: float) -> list[str]:
        """What is said when so many seconds have passed, one look a second."""
        for _ in range(int(seconds)):
            self.now += 1.0
            self.reporter.catch_up()
        return self.said()


def saying(free: int, reason: str = "Insufficient cpu", nodes: int = 3) -> Saying:
    detail = Detail(reason, f"requested 9, the most free is {free} on n")
    return sayings.say_why(Hold("u", Diagnosis(nodes, ((reason, nodes),), 0, (detail,))))


async def test_new_figures_are_said_when_the_old_have_stood_for_a_minute_and_only_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    talk = Talk(monkeypatch)
    pod = talk.pod()
    for free in (5, 4, 3, 2):
        talk.reporter.report_unschedulable(pod, saying(free))
        talk.now += 5.0
    assert talk.said() == [saying(5).note]
    assert talk.after(39) == []
    assert talk.after(2) == [saying(2).note]
    assert talk.after(200) == []
    talk.reporter.report_unschedulable(pod, saying(1))
    assert talk.said() == []
    assert talk.after(1) == [saying(1).note]


async def test_after_quiet_minutes_one_change_is_told_to_a_few_pods_a_second_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A pod that goes gives all that wait new figures at once."""
    talk = Talk(monkeypatch)
    pods = [talk.pod(f"p{i}") for i in range(3000)]
    for pod in pods:
        talk.reporter.report_unschedulable(pod, saying(5))
    assert len(talk.said()) == 3000
    talk.now += 61.0
    for pod in pods:
        talk.reporter.report_unschedulable(pod, saying(4))
    assert talk.said() == []
    for _ in range(9):
        assert talk.after(1) == [saying(4).note] * 10
    # Nobody waits behind them who has been told nothing, or whose reasons are others.
    talk.reporter.report_unschedulable(talk.pod("new"), saying(4))
    talk.reporter.report_unschedulable(pods[-1], saying(4, "Insufficient memory"))
    assert talk.said() == [saying(4).note, saying(4, "Insufficient memory").note]
    assert len(talk.after(400)) == 3000 - 90 - 1


async def test_how_many_nodes_give_a_reason_is_a_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk(monkeypatch)
    pod = talk.pod()
    cpu, memory = "Insufficient cpu", "Insufficient memory"
    counts = [((cpu, 3), (memory, 2)), ((cpu, 4), (memory, 1)), ((memory, 3), (cpu, 2))]
    texts = [sayings.say_why(Hold("u", Diagnosis(5, reasons))) for reasons in counts]
    for text in texts:
        talk.reporter.report_unschedulable(pod, text)
    assert talk.said() == [texts[0].note]
    assert talk.after(60) == [texts[2].note]


async def test_a_pod_is_looked_at_once_however_often_its_figures_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    talk = Talk(monkeypatch)
    pod = talk.pod()
    for i in range(100):
        talk.reporter.report_unschedulable(pod, saying(5 - i % 2))
        if i % 10 == 5:
            talk.reporter.report_unschedulable(pod, saying(5, "Insufficient memory"))
    assert len(talk.reporter._later) == 1
    # What was said last has stood for less than a minute when the first look is due.
    talk.now += 30.0
    talk.reporter.report_unschedulable(pod, saying(5, "Insufficient memory"))
    talk.reporter.report_unschedulable(pod, saying(4, "Insufficient memory"))
    talk.said()
    assert talk.after(59) == []
    assert talk.after(1) == [saying(4, "Insufficient memory").note]
    assert not talk.reporter._later


async def test_new_reasons_and_new_nodes_are_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk(monkeypatch)
    pod = talk.pod()
    texts = [saying(5), saying(5, "Insufficient memory"), saying(5, "Insufficient memory", 4)]
    texts.append(sayings.say_plain("binding failed", sayings.ERROR))
    for one in texts:
        talk.reporter.report_unschedulable(pod, one)
    assert talk.said() == [one.note for one in texts]


async def test_figures_that_come_back_are_not_said_again(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk(monkeypatch)
    pod = talk.pod()
    for free in (5, 4, 5):
        talk.reporter.report_unschedulable(pod, saying(free))
    assert talk.said() == [saying(5).note]
    assert talk.after(100) == []


async def test_of_thousands_whose_figures_change_a_few_a_second_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else every bind would write two objects for every pod that waits."""
    talk = Talk(monkeypatch)
    pods = [talk.pod(f"p{i}") for i in range(2000)]
    for free in (5, 4):
        for pod in pods:
            talk.reporter.report_unschedulable(pod, saying(free))
    assert len(talk.said()) == 2000
    assert talk.after(59) == []
    assert len(talk.after(1)) == 10
    assert len(talk.after(199)) == 1990
    assert talk.after(100) == []


async def test_of_thousands_whose_reasons_change_so_many_a_second_are_told_and_only_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A node that comes or goes gives all that wait another text, and one that does so again and again ever others."""
    talk = Talk(monkeypatch)
    pods = [talk.pod(f"p{i}") for i in range(2000)]
    for pod in pods:
        talk.reporter.report_unschedulable(pod, saying(5))
    # Who has been told nothing is told at once.
    assert len(talk.said()) == 2000
    for nodes in (4, 5):
        for pod in pods:
            talk.reporter.report_unschedulable(pod, saying(5, nodes=nodes))
    # The first were told at once what was not the last.
    assert talk.said() == [saying(5, nodes=4).note] * 100
    talk.reporter.report_unschedulable(talk.pod("new"), saying(5))
    assert talk.said() == [saying(5).note]
    assert talk.after(1) == [saying(5, nodes=5).note] * 100
    # It is as it was: nothing is to be said of those who were not told otherwise; nor of those who wait no more.
    for pod in pods[1000:1500]:
        talk.reporter.report_unschedulable(pod, saying(5))
    for pod in pods[1500:]:
        talk.reporter.forget_object(pod.uid)
    assert len(talk.after(8)) == 800
    assert len(talk.after(1)) == 100
    assert talk.after(300) == []


async def test_new_figures_of_a_pod_that_awaits_its_turn_for_new_reasons_wait_for_that_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    talk = Talk(monkeypatch)
    pods = [talk.pod(f"p{i}") for i in range(300)]
    for text in (saying(5), saying(4)):
        for pod in pods:
            talk.reporter.report_unschedulable(pod, text)
    talk.now += 61.0
    for pod in pods:
        talk.reporter.report_unschedulable(pod, saying(4, "Insufficient memory"))
    talk.said()
    assert talk.after(1) == [saying(4, "Insufficient memory").note] * 100
    assert talk.after(1) == [saying(4, "Insufficient memory").note] * 100
    assert talk.after(300) == []


async def test_who_has_the_old_reasons_again_loses_its_turn_and_is_told_new_figures_in_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    talk = Talk(monkeypatch)
    pods = [talk.pod(f"p{i}") for i in range(250)]
    for text in (saying(5), saying(5, "Insufficient memory")):
        for pod in pods:
            talk.reporter.report_unschedulable(pod, text)
    for pod in pods[150:]:
        talk.reporter.report_unschedulable(pod, saying(4))
    talk.said()
    assert talk.after(2) == [saying(5, "Insufficient memory").note] * 50
    assert talk.after(57) == []
    assert talk.after(1) == [saying(4).note] * 10


async def test_a_pod_that_waits_no_more_is_told_nothing_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another leader may have bound it: "unschedulable" would make autoscalers add a node."""
    talk = Talk(monkeypatch)
    pod = talk.pod()
    talk.reporter.report_unschedulable(pod, saying(5))
    talk.reporter.report_unschedulable(pod, saying(4))
    talk.said()
    talk.waiting = False
    assert talk.after(100) == []
    talk.waiting = True
    talk.reporter.forget_object(pod.uid)
    assert talk.after(100) == []


async def test_a_text_that_was_given_up_may_be_said_again(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk(monkeypatch)
    pod = talk.pod()
    for _ in range(2):
        talk.reporter.report_unschedulable(pod, saying(5))
        talk.reporter._forget_text(pod.uid, saying(5).message)
    assert talk.said() == [saying(5).note] * 2


@pytest.mark.parametrize(
    ("hold", "reason"),
    [
        (Hold("u"), "Unschedulable"),
        (Hold("u", Diagnosis(1, (("Insufficient cpu", 1),))), "Unschedulable"),
        (
            Hold("u", Diagnosis(1, (("no such claim", 1),), of_pod="no such claim")),
            "SchedulerError",
        ),
        (Hold("u", problem=Mistake("spec.x", "must be y")), "SchedulerError"),
    ],
    ids=["no nodes", "room", "of the pod", "mistake"],
)
def test_only_where_a_node_could_help_the_condition_says_unschedulable(
    hold: Hold, reason: str
) -> None:
    assert sayings.say_why(hold).reason == reason
