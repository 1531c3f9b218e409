"""The loop gives others their turn: a list is handed in, and dear pods are compiled, a slice at a time."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import structlog

from scheduler.api import limits
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.engine import Engine
from scheduler.errors import Mistake
from scheduler.kube.inbox import Inbox
from scheduler.kube.loop import Hands, Loop
from scheduler.kube.report.metrics.counting import Metrics
from scheduler.kube.report.metrics.tally import Tally
from scheduler.state.pods import PodRecord
from tests import make

KEYS = {f"k{i}": "v" for i in range(limits.LIGHT_WORDS + 1)}


class Silent:
    """A reporter, a policy status and a binder, to whom nothing is said and who do nothing."""

    n_queued = 0

    def __getattr__(self, _: str) -> Any:
        return lambda *_, **__: None


@pytest.fixture
async def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes a millisecond further with every look at it."""
    now = 0.0

    def read() -> float:
        nonlocal now
        now += 0.001
        return now

    monkeypatch.setattr(asyncio.get_running_loop(), "time", read)


class Parts:
    """A loop, and what it ties together."""

    def __init__(
        self,
        *,
        leads: Callable[[], bool] = lambda: True,
        reporter: Any = None,
        binder: Any = None,
        evictor: Any = None,
    ) -> None:
        nobody: Any = Silent()
        self.engine = Engine(Config())
        self.inbox = Inbox(self.engine)
        self.loop = Loop(
            self.inbox,
            Hands(binder or nobody, evictor or nobody, nobody, nobody),
            is_leading=leads,
            reporter=reporter or nobody,
            tally=Tally(Metrics(Config()), self.engine, nobody, asyncio.get_running_loop().time),
            policy_status=nobody,
        )
        self.cluster, self.put = self.engine._cluster, self.inbox.put

    def turns_until(self, done: Any) -> int:
        """Turns of about ten looks at the clock each until something is so."""
        for turn in range(1, 1000):
            self.loop.turn()
            if done():
                return turn
        raise AssertionError("never")

    @property
    def is_quiet(self) -> bool:
        return not len(self.inbox) and not self.engine.is_compiling


@pytest.mark.usefixtures("ticking")
async def test_a_list_is_applied_in_slices_and_nothing_is_decided_before_its_end() -> None:
    parts = Parts()
    parts.put(events.Seen(make.node(name="roomy")))
    parts.put(events.Page("Pod", [make.pod(name=f"p{i}") for i in range(200)], "evenkeel"))
    parts.put(events.Seen(make.node(name="behind")))
    parts.loop.turn()
    assert 0 < len(parts.cluster.pods) < 20
    turns = 0
    while parts.inbox.lists_waiting:
        assert "behind" not in parts.cluster.nodes.rows
        assert not parts.cluster.pods_on
        parts.loop.turn()
        turns += 1
    assert turns > 10
    assert len(parts.cluster.pods) == 200
    assert parts.turns_until(lambda: "behind" in parts.cluster.nodes.rows) <= 1
    assert parts.turns_until(lambda: parts.cluster.pods_on)


@pytest.mark.usefixtures("ticking")
async def test_a_list_drops_what_is_gone_of_what_waits_to_be_compiled_too() -> None:
    parts = Parts()
    gone, stays = (make.pod(name=n, node_selector=KEYS) for n in ("gone", "stays"))
    parts.engine.handle(events.Seen(gone), 0.0)
    parts.engine.handle(events.Seen(make.pod(name="old")), 0.0)
    parts.put(events.Page("Pod", [stays], "evenkeel"))
    parts.turns_until(lambda: parts.is_quiet)
    assert set(parts.cluster.pods) == {"default/stays"}


@pytest.mark.usefixtures("ticking")
@pytest.mark.parametrize("meanwhile", ["nothing", "changes", "bound"])
async def test_what_was_listed_first_is_no_arrival_though_it_waits_to_be_compiled(
    meanwhile: str,
) -> None:
    """Pods that were there before anybody watched do not tell how many come while others leave."""
    parts = Parts()
    dear = make.pod(name="dear", gpu=1, node_selector=KEYS)
    parts.put(events.Page("Pod", [dear], "evenkeel"))
    # News go first, so this one comes while the listed pod waits.
    if meanwhile != "nothing":
        node = "n" if meanwhile == "bound" else ""
        parts.put(events.Seen(make.pod(name="dear", gpu=1, node_selector=KEYS, node=node)))
    parts.turns_until(lambda: "default/dear" in parts.cluster.pods)
    devices = parts.cluster.demand.devices
    assert (devices.seen, devices._watched) == (1, 0)
    parts.put(events.Seen(make.pod(name="comes", gpu=1, node_selector=KEYS)))
    parts.turns_until(lambda: "default/comes" in parts.cluster.pods)
    assert (devices.seen, devices._watched) == (2, 1)


@pytest.mark.usefixtures("ticking")
@pytest.mark.parametrize("is_leading", [True, False])
async def test_news_go_before_what_is_dear_to_compile(*, is_leading: bool) -> None:
    """On a standby too, which compiles and does not decide."""
    parts = Parts(leads=lambda: is_leading)
    for i in range(100):
        pod = make.pod(name=f"dear{i}", namespace=f"tenant-{i % 3}", node_selector=KEYS)
        parts.put(events.Seen(pod))
    parts.put(events.Seen(make.pod(name="normal")))
    parts.turns_until(lambda: "default/normal" in parts.cluster.pods)
    assert len(parts.engine._intake) > 30
    parts.turns_until(lambda: not parts.engine.is_compiling)
    assert len(parts.cluster.pods) == 101


async def test_what_became_of_a_bind_is_told_though_the_loop_has_ended() -> None:
    """The next leader does not tell it, for it has not bound the pod."""
    told: list[str] = []

    class Told(Silent):
        def report_scheduled(self, _: Any, note: str) -> None:
            told.append(note)

    parts = Parts(leads=lambda: False, reporter=Told())
    parts.cluster.see_node(make.node(name="n"))
    pod = make.pod(name="p")
    parts.cluster.see_pod(pod)
    parts.cluster.assume(pod.metadata.uid, "n", ())
    parts.put(events.Seen(make.pod(name="other")))
    parts.put(events.BindDone(pod.metadata.uid))
    parts.loop.finish()
    assert told == ["Successfully assigned default/p to n"]


async def test_a_pod_that_finished_before_its_bind_was_known_gets_its_event() -> None:
    """The answer to the bind was lost, and the pod was short."""
    told: list[tuple[str, str]] = []

    class Told(Silent):
        def report_scheduled(self, pod: PodRecord, note: str) -> None:
            told.append((pod.uid, note))

    parts = Parts(reporter=Told())
    pods = [make.pod(name=name) for name in ("bound", "failed")]
    parts.put(events.Seen(make.node(name="n")))
    for pod in pods:
        parts.put(events.Seen(pod))
    parts.turns_until(lambda: len(parts.cluster.pods_on.get("n", ())) == 2)
    bound, failed = (pod.metadata.uid for pod in pods)
    for uid in (bound, failed):
        parts.put(events.Gone("Pod", uid))
    parts.put(events.BindFailed(failed, "the pod is gone", gone=True))
    parts.put(events.BindDone(bound))
    parts.put(events.BindDone(bound))
    parts.turns_until(lambda: parts.is_quiet)
    assert told == [(bound, "Successfully assigned default/bound to n")]
    assert not parts.loop._decided


@pytest.mark.usefixtures("ticking")
async def test_a_pod_of_which_nothing_can_be_told_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is charged all the same, and what comes behind it is seen."""
    parts = Parts(leads=lambda: False)
    claim_problem = parts.cluster.find_claim_problem

    def fails_on_one(pod: PodRecord) -> Mistake | None:
        if pod.name == "odd":
            raise ZeroDivisionError
        return claim_problem(pod)

    monkeypatch.setattr(parts.cluster, "find_claim_problem", fails_on_one)
    parts.put(events.Seen(make.node(name="n", cpu="4")))
    parts.put(events.Seen(make.pod(name="odd", cpu="1", node="n")))
    parts.put(events.Page("Pod", [make.pod(name="odd", cpu="1", node="n")]))
    parts.put(events.Seen(make.pod(name="behind", cpu="1")))
    with structlog.testing.capture_logs() as logs:
        parts.turns_until(lambda: "default/behind" in parts.cluster.pods)
        parts.loop.mistakes.report_all()
    assert [(log["log_level"], log["pod"]) for log in logs] == [("error", "default/odd")] * 3
    assert set(parts.cluster.pods_on["n"]) == {"default/odd"}
    assert [pod.key for pod in parts.engine._pending.list_pods()] == ["default/behind"]
