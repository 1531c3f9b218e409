"""Places the present pods again, on an empty copy of the cluster, with the product's own engine.

The pods come in a given order, and each place is final. The engine knows the mix of all pods from the start, as an
operator does that has run for a while. Pods that stay are charged for what they hold now.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from msgspec import structs

from scheduler.api import steering, wire
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
# What stays as it is.
Given = wire.Node | steering.ConfigMap


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of one mode in one order.

    Attributes:
        figures: the figures of the nodes afterwards.
        empty_nodes: how many nodes have no pods except those that belong to them.
        unplaced: ``namespace/name`` of pods that found no place, in the order in which they were tried.
    """

    figures: Figures
    empty_nodes: int
    unplaced: tuple[str, ...]


def unbind_pods(pods: Iterable[wire.Pod], config: Config) -> list[wire.Pod]:
    """Unbind pods, so that they come to Evenkeel in the given order; no pod preempts another."""
    return [
        structs.replace(
            pod,
            # The engine takes the oldest pod first, so all get the same age.
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


def replay_pods(
    nodes: Sequence[Given],
    staying: Sequence[wire.Pod],
    moving: Sequence[wire.Pod],
    own: Collection[str],
    typical: Typical,
    config: Config,
) -> Replayed:
    """Place the unbound pods ``moving`` one after the other on the nodes with the pods ``staying``.

    ``nodes``: the nodes, and before them what says how they are read.
    """
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
    """Run ``place`` for each mode and order. Modes that lead to the same configuration are run once.

    ``tell`` gets ``what`` is done, and the progress.
    """
    found: list[tuple[T, ...]] = []
    hows = [set_mode(config, mode) for mode in modes]
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


def set_mode(config: Config, mode: Mode | None) -> Config:
    """Set the mode of a configuration; None leaves it. A pod's own annotations still go before the mode."""
    if mode is None:
        return config
    # A node policy would replace the mode.
    return replace(
        config, placement=replace(config.placement, mode=mode, objective="", node_policy="")
    )
