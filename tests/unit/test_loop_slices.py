"""The loop gives others their turn: a list is applied, and dear pods are compiled, a slice at a time."""

import asyncio
from typing import Any

import pytest
import structlog

from scheduler.api import events, limits
from scheduler.config import Config
from scheduler.kube.loop import Loop
from scheduler.kube.report.metrics import Metrics
from scheduler.state.pods import PodRecord
from tests import make


class Silent:
    """A reporter, and a policy status, to whom nothing is said."""

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


def a_loop() -> Loop:
    nobody: Any = Silent()
    return Loop(
        Config(),
        is_leading=lambda: True,
        reporter=nobody,
        metrics=Metrics("test"),
        policy_status=nobody,
    )


def turns_until(loop: Loop, done: Any) -> int:
    """Turns of ten looks at the clock each until something is so."""
    for turn in range(1, 1000):
        loop._apply(asyncio.get_running_loop().time() + 0.010)
        if done():
            return turn
    raise AssertionError("never")


@pytest.mark.usefixtures("ticking")
async def test_a_list_is_applied_in_slices_and_nothing_is_decided_before_its_end() -> None:
    loop = a_loop()
    loop.put(events.PodsListed([make.pod(name=f"p{i}") for i in range(200)], ours=True))
    loop.put(events.NodeSeen(make.node(name="behind")))
    loop._apply(asyncio.get_running_loop().time() + 0.010)
    assert 0 < len(loop.cluster.pods) < 20
    assert loop._lists_waiting == 1
    assert "behind" not in loop.cluster.nodes.rows
    assert turns_until(loop, lambda: not loop._lists_waiting) > 10
    assert len(loop.cluster.pods) == 200
    assert turns_until(loop, lambda: "behind" in loop.cluster.nodes.rows) <= 1


@pytest.mark.usefixtures("ticking")
async def test_a_list_drops_what_is_gone_of_what_waits_to_be_compiled_too() -> None:
    loop = a_loop()
    keys = {f"k{i}": "v" for i in range(limits.LIGHT_WORDS + 1)}
    gone, stays = (make.pod(name=n, node_selector=keys) for n in ("gone", "stays"))
    loop._intake.takes(gone)
    loop.cluster.see_pod(make.pod(name="old"))
    loop.put(events.PodsListed([stays], ours=True))
    turns_until(loop, lambda: not loop._lists_waiting and not len(loop._intake))
    assert set(loop.cluster.pods) == {"default/stays"}


@pytest.mark.usefixtures("ticking")
@pytest.mark.parametrize("meanwhile", ["nothing", "changes", "bound"])
async def test_what_was_listed_first_is_no_arrival_though_it_waits_to_be_compiled(
    meanwhile: str,
) -> None:
    """Pods that were there before anybody watched do not tell how many come while others leave."""
    loop = a_loop()
    keys = {f"k{i}": "v" for i in range(limits.LIGHT_WORDS + 1)}
    dear = make.pod(name="dear", gpu=1, node_selector=keys)
    loop.put(events.PodsListed([dear], ours=True))
    # News go first, so this one comes while the listed pod waits.
    if meanwhile != "nothing":
        node = "n" if meanwhile == "bound" else ""
        loop.put(events.PodSeen(make.pod(name="dear", gpu=1, node_selector=keys, node=node)))
    turns_until(loop, lambda: "default/dear" in loop.cluster.pods)
    assert (loop.cluster.demand.seen, loop.cluster.demand._watched) == (1, 0)
    loop.put(events.PodSeen(make.pod(name="comes", gpu=1, node_selector=keys)))
    turns_until(loop, lambda: "default/comes" in loop.cluster.pods)
    assert (loop.cluster.demand.seen, loop.cluster.demand._watched) == (2, 1)


@pytest.mark.usefixtures("ticking")
async def test_news_go_before_what_is_dear_to_compile() -> None:
    loop = a_loop()
    keys = {f"k{i}": "v" for i in range(limits.LIGHT_WORDS + 1)}
    for i in range(100):
        pod = make.pod(name=f"dear{i}", namespace=f"tenant-{i % 3}", node_selector=keys)
        loop.put(events.PodSeen(pod))
    loop.put(events.PodSeen(make.pod(name="normal")))
    turns_until(loop, lambda: "default/normal" in loop.cluster.pods)
    assert len(loop._intake) > 50
    turns_until(loop, lambda: not len(loop._intake))
    assert len(loop.cluster.pods) == 101


async def test_what_became_of_a_bind_is_told_though_the_loop_has_ended() -> None:
    """The next leader does not tell it, for it has not bound the pod."""
    told: list[str] = []

    class Told(Silent):
        def scheduled(self, pod: Any, node: str) -> None:
            told.append(f"{pod.name} to {node}")

    nobody: Any = Silent()
    loop = Loop(
        Config(),
        is_leading=lambda: False,
        reporter=Told(),  # type: ignore[arg-type]
        metrics=Metrics("test"),
        policy_status=nobody,
    )
    loop.cluster.see_node(make.node(name="n"))
    pod = make.pod(name="p")
    loop.cluster.see_pod(pod)
    loop.cluster.assume(pod.metadata.uid, "n", ())
    loop.put(events.PodSeen(make.pod(name="other")))
    loop.put(events.BindDone(pod.metadata.uid))
    loop.finish()
    assert told == ["p to n"]


@pytest.mark.usefixtures("ticking")
async def test_a_pod_of_which_nothing_can_be_told_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is charged all the same, and what comes behind it is seen."""
    loop = a_loop()
    problem_of = loop.cluster.problem_of

    def fails_on_one(pod: PodRecord) -> str:
        if pod.name == "odd":
            raise ZeroDivisionError
        return problem_of(pod)

    monkeypatch.setattr(loop.cluster, "problem_of", fails_on_one)
    loop.put(events.NodeSeen(make.node(name="n", cpu="4")))
    loop.put(events.PodSeen(make.pod(name="odd", cpu="1", node="n")))
    loop.put(events.PodsListed([make.pod(name="odd", cpu="1", node="n")], ours=False))
    loop.put(events.PodSeen(make.pod(name="behind", cpu="1")))
    with structlog.testing.capture_logs() as logs:
        turns_until(loop, lambda: "default/behind" in loop.cluster.pods)
        loop.mistakes.tell_all()
    assert [(log["log_level"], log["pod"]) for log in logs] == [("error", "default/odd")] * 3
    assert set(loop.cluster.pods_on["n"]) == {"default/odd"}
    assert [pod.key for pod in loop.pending.pods()] == ["default/behind"]
