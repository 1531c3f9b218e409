"""Which groups below their minimum come before all others of their priority, and before what is promised for later.

What such a group holds is of no use to anybody until it has its minimum again, so it should not wait long. But a tenant
could let a pod of a group end again and again, or raise the minimum, to pass others each time. So a group is urgent in
two cases only. Either it was cut short by the scheduler: a bind failed, or the scheduler died between two binds. Or it
has lost pods: then it is urgent until it has as many on nodes as before, and if it is one of the first few of its
namespace, counting those that have got their pods back lately.
"""

from __future__ import annotations

from collections.abc import Callable

from scheduler.api.groups.definitions import GroupKey

# So many groups of a namespace are urgent in so many seconds.
_OF_A_NAMESPACE, _WITHIN_SECONDS = 2, 3600.0


class Urgency:
    """What is known of the groups of one cluster."""

    def __init__(self, tell_time: Callable[[], float]) -> None:
        """``tell_time`` returns the present time, in seconds."""
        self._tell_time = tell_time
        self._is_starting = True
        # The most pods that each group has had on nodes.
        self._most: dict[GroupKey, int] = {}
        # The groups that were cut short by the scheduler.
        self._cut: set[GroupKey] = set()
        # By namespace: the groups that have lost pods, in the order in which they lost them.
        self._short: dict[str, dict[GroupKey, None]] = {}
        # By namespace: when such groups got back their pods.
        self._restored: dict[str, list[float]] = {}

    def note_size(
        self, root: GroupKey, n_below: int, n_there: int, *, is_binding: bool = False
    ) -> None:
        """Note how many pods a group lacks until it has its minimum, and how many it has on nodes.

        ``is_binding``: the bind of a pod is under way, so that there will be pods on nodes.
        """
        if not n_there:
            self._most.pop(root, None)
            self._end_shortage(root)
            if not is_binding:
                self._cut.discard(root)
            return
        if n_below and self._is_starting:
            self._cut.add(root)
        elif not n_below:
            self._cut.discard(root)
        most = self._most.get(root, 0)
        if n_below and n_there < most:
            self._short.setdefault(root.namespace, {})[root] = None
            return
        if root in self._short.get(root.namespace, ()):
            self._restored.setdefault(root.namespace, []).append(self._tell_time())
            self._end_shortage(root)
        self._most[root] = n_there if not n_below else max(most, n_there)

    def note_cut(self, root: GroupKey) -> None:
        """Note that the bind of a pod of a group has failed."""
        self._cut.add(root)

    def was_cut(self, root: GroupKey) -> bool:
        """Whether a group that is below its minimum was cut short by the scheduler."""
        return self._is_starting or root in self._cut

    def end_start(self) -> None:
        """Note that the first decisions are made: who is below the minimum from now on was not found so."""
        self._is_starting = False

    def is_urgent(self, root: GroupKey) -> bool:
        """Whether a group that is below its minimum comes before others."""
        if root in self._cut:
            return True
        namespace = root.namespace
        since = self._tell_time() - _WITHIN_SECONDS
        lately = [at for at in self._restored.get(namespace, ()) if at > since]
        if lately:
            self._restored[namespace] = lately
        else:
            self._restored.pop(namespace, None)
        n_urgent = max(0, _OF_A_NAMESPACE - len(lately))
        return root in list(self._short.get(namespace, ()))[:n_urgent]

    def _end_shortage(self, root: GroupKey) -> None:
        short = self._short.get(root.namespace)
        if short is not None:
            short.pop(root, None)
            if not short:
                del self._short[root.namespace]
