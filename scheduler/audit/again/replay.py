"""The present pods placed again, on an empty copy of the cluster, by the product's own engine.

In a given order, each for good, with the mix of all of them known from the start, as an operator knows it
that has run for a while. What stays is charged for what it holds, as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from msgspec import structs

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.api.placement import Mode
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.engine.questions.auditing import EmptyNodes, FiguresBy
from scheduler.engine.questions.pods import NamedPod
from scheduler.measure.figures import Figures
from scheduler.measure.typical import Typical

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Replayed:
    """How one mode did in one order.

    Attributes:
        figures: of the nodes, afterwards.
        empty_nodes: how many have no pod but those that belong to them.
        unplaced: ``namespace/name`` of pods that found no place, in the order they were tried.
    """

    figures: Figures
    empty_nodes: int
    unplaced: tuple[str, ...]


def unbound(pods: Iterable[wire.Pod], config: Config) -> list[wire.Pod]:
    """As they would come to us, whoever placed them: in the order given, and none sends another away."""
    return [
        structs.replace(
            pod,
            # The engine takes the oldest first, whatever order they are given in.
            metadata=structs.replace(pod.metadata, creation_timestamp=""),
            spec=structs.replace(
                pod.spec,
                node_name=None,
                scheduler_name=config.scheduler_name,
                priority=0,
                preemption_policy="Never",
            ),
        )
        for pod in pods
    ]


def run(
    nodes: Sequence[wire.Node],
    staying: Sequence[wire.Pod],
    moving: Sequence[wire.Pod],
    own: Collection[str],
    typical: Typical,
    config: Config,
) -> Replayed:
    """Place ``moving``, unbound, one after the other on the nodes, on which ``staying`` are."""
    engine = Engine(config, pace=PROMPT, is_shared=False, explains=False)
    for node in nodes:
        engine.handle(events.Seen(node), 0.0)
    for pod in (*staying, *moving):
        engine.handle(events.Seen(pod), 0.0)
    outcome = engine.decide(0.0, Unlimited())
    return Replayed(
        engine.ask(FiguresBy(typical)),
        engine.ask(EmptyNodes(own)),
        tuple(engine.ask(NamedPod(hold.uid)).key for hold in outcome.holds),
    )


def run_modes(
    config: Config,
    modes: Sequence[Mode | None],
    orders: Sequence[Sequence[wire.Pod]],
    place: Callable[[Sequence[wire.Pod], Config], T],
    what: str,
    tell: Callable[[str], None],
) -> list[tuple[T, ...]]:
    """What ``place`` makes of each order, by mode. Modes that come to the same configuration are run once.

    ``tell`` hears ``what`` is being done, and how far it has come.
    """
    found: list[tuple[T, ...]] = []
    hows = [with_mode(config, mode) for mode in modes]
    for i, how in enumerate(hows):
        if how in hows[:i]:
            found.append(found[hows.index(how)])
            continue
        runs = []
        for k, pods in enumerate(orders):
            tell(f"{what}, {i * len(orders) + k} of {len(modes) * len(orders)} times done")
            runs.append(place(pods, how))
        found.append(tuple(runs))
    return found


def with_mode(config: Config, mode: Mode | None) -> Config:
    """The configuration with another mode; None leaves it. A pod's own annotations go before it."""
    if mode is None:
        return config
    # A node policy would stand in the mode's place.
    return replace(
        config, placement=replace(config.placement, mode=mode, objective="", node_policy="")
    )
