"""When pods on nodes will have ended, as far as anybody says how long they run."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.schema import columns as c
from scheduler.state.charging.ledger import Ledger
from scheduler.state.groups.forming import DEPTH_MAX
from scheduler.state.groups.registry import Groups
from scheduler.state.pods import PodRecord

NEVER = float("inf")
# A pod that is being deleted is gone after its grace period, which is 30 s unless somebody says otherwise.
_LEAVING_SECONDS = 30.0
# A pod that runs longer than was said is given at least so much time more, and at least as long as it is late. Once it
# is as late as it was to run, nobody knows when it ends.
LATE_SECONDS = 60.0


class Ends:
    """Tells the end of pods from their own run time, or from that of their group or owner."""

    def __init__(self, groups: Groups, ledger: Ledger) -> None:
        self._groups, self._ledger = groups, ledger

    def find_run_seconds(self, pod: PodRecord) -> float | None:
        """Find for how long a pod runs at most, by what it says itself and by its group and owner; None: nobody says."""
        if pod.member is None and pod.owned is None:
            return pod.run_seconds
        said = [pod.run_seconds, *self._list_run_seconds(pod.uid)]
        return min((one for one in said if one is not None), default=None)

    def _list_run_seconds(self, uid: str) -> Iterator[float | None]:
        """Yield for how long a pod runs by its group, the groups around it, and its owner."""
        groups = self._groups
        for first in {groups.find_group(uid), groups.find_owner(uid)}:
            key = first
            for _ in range(DEPTH_MAX):
                definition = groups.find_definition(key) if key is not None else None
                if definition is None:
                    break
                yield definition.run_seconds
                key = definition.parent

    def find_end(self, pod: PodRecord, now: float, *, is_leaving: bool = False) -> float:
        """Find when a pod on a node will have ended, in seconds since 1970; infinite if nobody says so.

        A pod that has not started yet is expected to start now. ``is_leaving``: it is being evicted.
        """
        if pod.deleting or is_leaving:
            return now + _LEAVING_SECONDS
        seconds = self.find_run_seconds(pod)
        if seconds is None:
            return NEVER
        end = self._find_start(pod, now) + seconds
        late = now - end
        if late > max(LATE_SECONDS, seconds):
            return NEVER
        return end if late < 0 else now + max(LATE_SECONDS, late)

    def is_late(self, pod: PodRecord, now: float) -> bool:
        """Whether a pod on a node runs clearly longer than was said."""
        seconds = self.find_run_seconds(pod)
        if seconds is None or pod.deleting:
            return False
        return self._find_start(pod, now) + seconds + LATE_SECONDS < now

    def _find_start(self, pod: PodRecord, now: float) -> float:
        start = int(self._ledger.pods.columns.start[pod.row]) if pod.row >= 0 else c.NOT_STARTED
        return now if start == c.NOT_STARTED else start
