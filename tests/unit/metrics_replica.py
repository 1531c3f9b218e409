"""A replica's metrics without an API server, and what a scrape of them says."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.api.metrics_settings import HamiMetrics, MetricsConfig
from scheduler.api.queues.settings import QueueSettings
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.engine.questions.queues import QueueFigures, StatusesOfQueues
from scheduler.kube.lead.holding import Holder
from scheduler.kube.report.metrics.counting import Metrics
from scheduler.kube.report.metrics.exposition import Exposition
from scheduler.kube.report.metrics.queues import QueueCounts, QueueSources
from scheduler.kube.report.metrics.reading import Sources
from scheduler.kube.report.metrics.reviews import ReviewCounts
from scheduler.kube.report.metrics.stranded import Stranded
from scheduler.kube.report.metrics.tally import Tally
from tests import make

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Replica:
    """An engine with all its metrics; the parts that talk to an API server are stand-ins that are well."""

    def __init__(
        self,
        *,
        per_node: bool = True,
        per_card: bool = True,
        hami: HamiMetrics = HamiMetrics.NONE,
        hami_per_pod: bool = True,
        deciding: bool = True,
    ) -> None:
        self.now = 100.0
        config = Config(
            metrics=MetricsConfig(
                per_node=per_node, per_card=per_card, hami=hami, hami_per_pod=hami_per_pod
            ),
            queues=QueueSettings(kueue=True),
        )
        self.engine, self.is_deciding = Engine(config), deciding
        self.metrics = Metrics(config)
        self.tally = Tally(self.metrics, self.engine, lambda _: None, lambda: self.now)
        lease = SimpleNamespace(find_holder=lambda: Holder.SELF, n_errors=3)
        stream = SimpleNamespace(name="nodes", get_age=lambda _: 1.0, n_lists=2, trouble=None)
        rights = SimpleNamespace(missing=("create pods/binding",))
        signs: Any = SimpleNamespace(
            lease=lease, streams=[stream], rights=rights, fence=SimpleNamespace(n_left=0)
        )
        reporter: Any = SimpleNamespace(n_waiting=1, n_dropped=0)

        def leads() -> bool:
            return self.is_deciding

        self.stranded = Stranded(self.engine, leads, per_node=per_node)
        self.queue_counts = QueueCounts()
        queues = QueueSources(self.queue_counts, lambda: "", self.list_figures)
        sources = Sources(
            signs, self.engine, reporter, self.tally, leads, "1.2.3", queues, ReviewCounts()
        )
        self.exposition = Exposition(self.metrics, sources, self.stranded, config.metrics)

    def list_figures(self) -> Sequence[QueueFigures]:
        """List the figures of statuses, in one go."""
        steps = self.engine.ask(StatusesOfQueues())
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return tuple(end.value)

    def see(self, *objects: wire.Node | wire.Pod) -> None:
        for one in objects:
            self.engine.handle(events.Seen(one), self.now)

    def decide(self) -> Any:
        outcome = self.engine.decide(self.now, Unlimited())
        self.tally.note_outcome(outcome, 0.25)
        return outcome

    def bound(self, uid: str) -> None:
        done = events.BindDone(uid)
        self.tally.note_report(done)
        self.engine.handle(done, self.now)

    async def measure(self) -> None:
        measuring = asyncio.create_task(self.stranded.run())
        while not [*self.stranded.collect()]:
            assert not measuring.done()
            await asyncio.sleep(0)
        measuring.cancel()

    async def text(self, accept: str = "") -> str:
        _, parts = await self.exposition.make_text(accept)
        return b"".join([part async for part in parts]).decode()

    async def scrape(self) -> Samples:
        return samples(await self.text())


def samples(text: str) -> Samples:
    """Each once, by name and labels."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            key = one.name, tuple(sorted(one.labels.items()))
            assert key not in found
            found[key] = one.value
    return found


def of(found: Samples, name: str, **labels: str) -> float:
    """The sum over all samples with these labels, be they more."""
    picked = [
        v for (n, its), v in found.items() if n == name and labels.items() <= dict(its).items()
    ]
    assert picked, name
    return sum(picked)


def node(name: str = "g", **more: Any) -> wire.Node:
    return make.hami_node(name=name, cards=make.cards(count=2, mib=1000), cpu=16, **more)


def pod(name: str, mib: int = 250, **more: Any) -> wire.Pod:
    asks = [make.container(gpu=1, gpumem=mib, gpucores=50, cpu="1")]
    return make.pod(name=name, containers=asks, **more)
