"""In which order the domains of a level are tried for a team, whose pods may be of several kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scheduler.placing.groups import choosing
from scheduler.placing.groups.domains import Domains
from scheduler.schema import columns as c
from scheduler.state.pods import PodRecord


class Kind(NamedTuple):
    """Waiting pods of a team that ask the same.

    Attributes:
        pods: the pods.
        least: how many of them must have a node at once at least.
        places: [N] how many fit on each node at most.
    """

    pods: list[PodRecord]
    least: int
    places: c.Ints

    @property
    def n_cards(self) -> int:
        """How many cards each of them requests."""
        gpu = self.pods[0].template.gpu
        return sum(one.cards for one in gpu.containers) if gpu is not None else 0

    @property
    def size(self) -> tuple[int, int]:
        """How many cards they request in all, and how many pods they are."""
        return self.n_cards * len(self.pods), len(self.pods)

    @property
    def has_rules(self) -> bool:
        """Whether they have rules about other pods."""
        template = self.pods[0].template
        return template.has_terms or bool(template.spread)


def order_domains(
    domains: Domains, labels: tuple[str, ...], kinds: Sequence[Kind], among: c.Flags
) -> tuple[c.Ints, c.Ints]:
    """Order the domains of a level that have places enough for each kind; the one that loses least is first.

    What is lost is counted in places for the kind that requests most cards in all, or has most pods.

    Returns:
        The domains, and [domains] how many pods of that kind fit in each at most.
    """
    level = domains.get_level(labels)
    n_domains = len(level.names)
    sums = [choosing.sum_places(one.places, level.domain, n_domains, among) for one in kinds]
    if not kinds or not n_domains:
        return np.arange(0), np.zeros(n_domains, np.int64)
    could = np.ones(n_domains, np.bool_)
    for one, places in zip(kinds, sums, strict=True):
        could &= places >= one.least
    main = max(range(len(kinds)), key=lambda i: (*kinds[i].size, -i))
    wanted, places = len(kinds[main].pods), sums[main]
    if kinds[main].n_cards:
        # Pods of other kinds take cards, too.
        wanted = -(-sum(one.size[0] for one in kinds) // kinds[main].n_cards)
    if not could.any():
        return np.arange(0), places
    around = domains.look_around(labels, places, wanted, kinds[main].places, among)
    order = choosing.order_domains(np.where(could, places, 0), 1, wanted, around)
    # Those without a place for that kind may still take as many of the others as must have a node.
    others = np.flatnonzero(could & (places == 0) & (np.sum(sums, axis=0) > 0))
    return np.concatenate((order, others)), places
