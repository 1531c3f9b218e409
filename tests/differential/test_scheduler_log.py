"""Lines of kube-scheduler's log become answers."""

from pathlib import Path
from threading import Timer

import pytest

from tests.differential.answers import Answer
from tests.differential.scheduler_log import Log, SilentError

HEAD = "I1123 04:43:59.897457   17370"
LINES = rf"""
{HEAD} round_trippers.go:560] "Response" pod="blue/p" url="schedule_one.go:1"
{HEAD} schedule_one.go:984] "Plugin scored node for pod" pod="blue/p" plugin="TaintToleration" node="a" score=300
{HEAD} schedule_one.go:984] "Plugin scored node for pod" pod="blue/other" plugin="TaintToleration" node="z" score=1
{HEAD} schedule_one.go:984] "Plugin scored node for pod" pod="blue/p" plugin="ImageLocality" node="a" score=0
{HEAD} schedule_one.go:984] "Plugin scored node for pod" pod="blue/p" plugin="ImageLocality" node="b" score=0
{HEAD} schedule_one.go:483] "Successfully bound pod to node" pod="blue/p" node="a" evaluatedNodes=2 feasibleNodes=2
"""
WAITS = rf"""
{HEAD} schedule_one.go:1194] "Unable to schedule pod; no fit; waiting" pod="blue/p" err="0/1 nodes are available: 1 \"odd\"."
"""
FAILS = r"""
E1123 04:43:59.897457   17370 schedule_one.go:1199] "Error scheduling pod; retrying" err="plugin \"X\" failed" pod="blue/p"
"""
PREEMPTS = rf"""
{HEAD} executor.go:153] "Preemptor Pod preempted victim Pod" preemptor="blue/p" victim="red/v" node="a"
{HEAD} schedule_one.go:1194] "Unable to schedule pod; no fit; waiting" pod="blue/p" err="0/1 nodes are available: 1 Insufficient cpu. preemption: found a potential placement for pod on node a, preempting 2 victims"
{HEAD} executor.go:153] "Preemptor Pod preempted victim Pod" preemptor="blue/other" victim="red/w" node="b"
{HEAD} executor.go:210] "Victim Pod is already being deleted, skipping the API call for it" preemptor="blue/p" node="a" victim="red/u"
"""
FOR_IT = Answer(
    None,
    frozenset(),
    {},
    "0/1 nodes are available: 1 Insufficient cpu."
    " preemption: found a potential placement for pod on node a, preempting 2 victims",
    "a",
    frozenset({"red/v", "red/u"}),
)
ALONE = rf"""
{HEAD} schedule_one.go:483] "Successfully bound pod to node" pod="blue/p" node="a" evaluatedNodes=2 feasibleNodes=1
"""

BINDS = rf"""
{HEAD} schedule_one.go:984] "Plugin scored node for pod" pod="blue/p" plugin="VolumeBinding" node="a" score=50
{HEAD} binder.go:558] "BindPodVolumes" pod="blue/p" node="a"
"""
GATED = rf"""
{HEAD} scheduling_queue.go:787] "Status after running PreEnqueue plugin" pod="blue/p" plugin="SchedulingGates" status="gate"
{HEAD} scheduling_queue.go:787] "Status after running PreEnqueue plugin" pod="blue/p" plugin="DynamicResources" status="none"
"""


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        (LINES, Answer("a", frozenset("ab"), {"a": {"TaintToleration": 300}, "b": {}}, "")),
        (WAITS, Answer(None, frozenset(), {}, '0/1 nodes are available: 1 "odd".')),
        (FAILS, Answer(None, frozenset(), {}, 'error: plugin "X" failed')),
        (PREEMPTS, FOR_IT),
        (GATED, Answer(None, frozenset(), {}, "none", is_gated=True)),
        (ALONE, Answer("a", frozenset("a"), {}, "")),
        (BINDS, Answer("a", frozenset("a"), {"a": {"VolumeBinding": 50}}, "", is_binding=True)),
    ],
)
def test_an_answer_is_read_from_what_is_printed_of_the_pod(
    tmp_path: Path, lines: str, answer: Answer
) -> None:
    path = tmp_path / "log"
    path.write_text(
        f'{HEAD} schedule_one.go:483] "Successfully bound pod to node" pod="blue/p" node="old"\n'
    )
    log = Log(path)
    with path.open("a") as file:
        file.write(lines)
    assert log.answer("blue/p") == answer
    log.close()


def test_it_is_waited_until_a_pod_that_is_gone_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("")
    log = Log(path)
    of_another = FAILS.replace("blue/p", "blue/other")
    path.write_text(of_another)
    later = Timer(0.05, lambda: path.write_text(of_another + FAILS))
    later.start()
    log.wait_for_failure("blue/p")
    assert path.read_text() == of_another + FAILS
    later.join()
    log.close()


def test_who_says_nothing_is_not_waited_for_forever(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("")
    log = Log(path)
    with pytest.raises(SilentError):
        next(log.news(seconds=0.01))
    log.close()
