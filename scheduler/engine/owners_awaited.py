"""Pods that come before their owner wait for it for a moment: it may ask that they be a group.

Pods and their owners come through watches of their own. If the owner does not come, its pods are placed one by one.
"""

from __future__ import annotations

from scheduler.state.cluster import Cluster

# Shorter than the time after which a held group is noted, so nobody reads of this.
_PATIENCE_SECONDS = 1.5
_AT_ONCE, _NEVER = float("-inf"), float("inf")


class OwnersAwaited:
    """Since when each of these pods has waited."""

    def __init__(self, cluster: Cluster) -> None:
        self._groups = cluster.groups
        self._since: dict[str, float] = {}

    def find_due(self) -> float:
        """Return when the first pod has waited for long enough, or at once if it is not known since when one waits."""
        waiting = self._groups.awaited.list_waiting()
        if not waiting:
            return _NEVER
        return min(self._since.get(uid, _AT_ONCE) for uid in waiting) + _PATIENCE_SECONDS

    def work(self, now: float) -> None:
        """Let the pods go that have waited for long enough."""
        waiting = self._groups.awaited.list_waiting()
        if not (waiting or self._since):
            return
        self._since = {uid: self._since.get(uid, now) for uid in waiting}
        for uid, since in list(self._since.items()):
            if since + _PATIENCE_SECONDS <= now:
                del self._since[uid]
                self._groups.give_up_owner(uid)
