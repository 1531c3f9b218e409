"""The policies that there are, as a watch shows them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from scheduler.api.door import events
from scheduler.api.rebalancing.policy import REBALANCE_POLICIES
from scheduler.api.steering import RebalancePolicy
from scheduler.kube.watch import listing
from scheduler.kube.watch.sources import Source


class Policies:
    """Takes what a stream reads.

    Attributes:
        changed: set when there is another policy, or another version of one.
    """

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self._known: dict[str, RebalancePolicy] = {}
        self._listed: dict[str, RebalancePolicy] = {}

    def list_policies(self) -> list[RebalancePolicy]:
        """List all policies, in the order of their names."""
        return [self._known[name] for name in sorted(self._known)]

    def find_policy(self, name: str) -> RebalancePolicy | None:
        """Find a policy; None if there is none of this name."""
        return self._known.get(name)

    def put(self, heard: events.Heard) -> None:
        """Take a page of a list, or a change."""
        match heard:
            case events.Page():
                if heard.is_first:
                    self._listed = {}
                self._listed |= _name_policies(heard.found)
                if heard.is_last:
                    self._known, self._listed = self._listed, {}
            case events.Seen():
                self._known |= _name_policies([heard.found])
            case events.Gone():
                self._known.pop(heard.key, None)
        self.changed.set()


def _name_policies(found: Iterable[Any]) -> dict[str, RebalancePolicy]:
    return {one.metadata.name: one for one in found}


def make_source() -> Source[RebalancePolicy]:
    """Make the source of the stream."""
    name = REBALANCE_POLICIES.plural
    return Source(name, REBALANCE_POLICIES, listing.make_reader(REBALANCE_POLICIES))
