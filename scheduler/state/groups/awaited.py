"""Pods whose owner is not known yet: their watch was faster than that of the owner, which may ask that they be a group."""

from __future__ import annotations

from scheduler.state.pods import Life, PodRecord


class Awaited:
    """Which pods wait for the object of their owner. Each does so once, for a while that somebody else measures."""

    def __init__(self) -> None:
        # The kinds of which all objects are known that there were at the list.
        self._listed: set[str] = set()
        self._waiting: dict[str, None] = {}
        self._given_up: set[str] = set()

    def note_listed(self, kind: str) -> None:
        """Note that all objects of a kind are known; of other kinds no object is waited for."""
        self._listed.add(kind)

    def list_listed(self) -> list[str]:
        """List the kinds of which all objects are known."""
        return sorted(self._listed)

    def waits(self, pod: PodRecord, kind: str) -> bool:
        """Whether a pod waits for its owner, an object of this kind that is not known; it waits from now on if so."""
        is_new = pod.ours and pod.life == Life.PENDING and not pod.deleting
        if not is_new or kind not in self._listed or pod.uid in self._given_up:
            self._waiting.pop(pod.uid, None)
            return False
        self._waiting[pod.uid] = None
        return True

    def give_up(self, uid: str) -> None:
        """Note that a pod waits no more for its owner."""
        self._waiting.pop(uid, None)
        self._given_up.add(uid)

    def drop(self, uid: str) -> None:
        """Forget a pod that is gone, or whose owner is known."""
        self._waiting.pop(uid, None)
        self._given_up.discard(uid)

    def list_waiting(self) -> list[str]:
        """List the pods that wait for their owner, in the order in which they came."""
        return list(self._waiting)
