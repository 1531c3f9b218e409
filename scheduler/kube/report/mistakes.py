"""Reports malformed nodes and malformed bound pods: once, and again if the mistake comes back."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from scheduler.engine.engine import Engine
from scheduler.engine.questions.nodes import DriverNotices, KnownNode, KnownNodes
from scheduler.engine.questions.pods import KnownPods, ToldCardsMistake
from scheduler.errors import Mistake
from scheduler.kube.report.reporter import Reporter
from scheduler.state.nodes import NodeFacts
from scheduler.state.pods import Life, PodRecord

_log = structlog.get_logger("evenkeel.mistakes")


class Mistakes:
    """Reports what people must mend, as long as this replica leads.

    Nothing is charged here, so an error costs no more than the report about one pod.
    """

    def __init__(self, engine: Engine, reporter: Reporter, is_leading: Callable[[], bool]) -> None:
        self._engine, self._reporter, self._is_leading = engine, reporter, is_leading
        self._noticed: set[str] = set()

    def report_all(self) -> None:
        """For a new leader: report all mistakes, whether a predecessor has reported them or not."""
        for facts in self._engine.ask(KnownNodes()).values():
            self.check_node(facts)
        for pod in self._engine.ask(KnownPods()).values():
            self.check_bound(pod)

    def check_node(self, facts: NodeFacts) -> None:
        """Report what is malformed in a node that was read."""
        for one in self._engine.ask(DriverNotices(facts.name)):
            if one.driver not in self._noticed:
                self._noticed.add(one.driver)
                _log.warning(one.notice, node=facts.name, taken=one.taken)
        if not facts.problem:
            # If the same mistake comes back, it is reported again.
            self._reporter.forget_object(facts.uid)
        elif self._is_leading():
            self._reporter.report_malformed_node(facts)

    def check_bound(self, pod: PodRecord) -> None:
        """Report what is malformed in a bound pod, ours or another's; only its annotations about cards can be malformed."""
        if pod.life != Life.BOUND:
            return
        try:
            self._report_bound(pod, self._engine.ask(ToldCardsMistake(pod.uid)))
        except Exception:  # noqa: BLE001 - whatever it is, the others are scheduled
            _log.exception("the mistake of a bound pod cannot be reported", pod=pod.key)

    def _report_bound(self, pod: PodRecord, problem: Mistake | None) -> None:
        if not problem:
            # If the same mistake comes back, it is reported again.
            self._reporter.forget_object(pod.uid)
        elif self._is_leading():
            self._reporter.report_malformed_pod(
                pod,
                self._engine.ask(KnownNode(pod.node)),
                f"{problem}; until this is corrected, requested cards that the claim does not name are charged to the first "
                f"cards of node {pod.node}",
            )
