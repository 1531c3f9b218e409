"""What rules about other pods need of a pod: equal for pods that they cannot tell apart.

Most pods have no such rule and no such rule sees them: then neither their labels nor their namespace matter,
and they share one view.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary, WeakValueDictionary

from scheduler.api.placement import Placement
from scheduler.api.pods.templates import PodTemplate
from scheduler.plugins import table
from scheduler.plugins.contract import Standing
from scheduler.state.cluster import Cluster
from scheduler.state.counting.groups import Controller
from scheduler.state.pods import PodRecord
from scheduler.state.structures.recent import Recent

_VIEWS_MAX = 4096
_NO_LABELS: dict[str, str] = {}
_Key = tuple[PodTemplate, Placement, str, frozenset[tuple[str, str]], Controller | None]


class View:
    """What every rule about other pods needs of a pod; compared by identity, as equal ones are the same.

    Attributes:
        needs: by rule, see ``table.peer_needs``.
        is_wide: whether a change on one node can help such a pod on another.
    """

    __slots__ = ("__weakref__", "is_wide", "needs")

    def __init__(self, needs: table.Needs) -> None:
        self.needs = needs
        self.is_wide = table.is_wide(needs)


# Of pods that no such rule concerns.
ALONE = View(table.NO_NEEDS)


class Views:
    """The views of the pods of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        # Templates that no rule about other pods concerned, and the version of the cluster when it was so.
        self._alone: WeakKeyDictionary[PodTemplate, int] = WeakKeyDictionary()
        self._views: WeakValueDictionary[table.Needs, View] = WeakValueDictionary()
        self._recent: Recent[_Key, tuple[int, View]] = Recent(_VIEWS_MAX)

    def of(self, pod: PodRecord, placement: Placement) -> View:
        """The view of a pod."""
        # Both only rise.
        template, version = pod.template, self._cluster.terms.version + self._cluster.groups.version
        if self._alone.get(template) == version:
            return ALONE
        if not table.has_peers(template, self._cluster):
            self._alone[template] = version
            return ALONE
        labels = pod.labels or _NO_LABELS
        key = template, placement, pod.namespace, frozenset(labels.items()), pod.controller
        known = self._recent.get(key)
        if known is not None and known[0] == version:
            return known[1]
        standing = Standing(template, placement, pod.namespace, labels, pod.controller)
        view = self._interned(table.peer_needs(standing, self._cluster))
        self._recent.put(key, (version, view))
        return view

    def _interned(self, needs: table.Needs) -> View:
        if needs == table.NO_NEEDS:
            return ALONE
        found = self._views.get(needs)
        if found is None:
            found = self._views[needs] = View(needs)
        return found
