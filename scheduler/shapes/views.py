"""What rules about other pods read from a pod; equal for pods that these rules treat alike.

No such rule concerns most pods. Neither the labels nor the namespace of these pods matter, so they all share one view.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary, WeakValueDictionary

from scheduler.api.placement import Placement
from scheduler.api.pods.templates import PodTemplate
from scheduler.plugins import table
from scheduler.plugins.claims import needs as claims
from scheduler.plugins.claims.needs import Needs as Claimed
from scheduler.plugins.contract import Standing
from scheduler.plugins.volumes import needs
from scheduler.plugins.volumes.needs import Needs as Storage
from scheduler.shapes.caches import IsThere, TemplateSizes
from scheduler.state.cluster import Cluster
from scheduler.state.counting.peers import Controller
from scheduler.state.pods import PodRecord
from scheduler.state.structures.recent import Recent

_VIEWS_MAX, _VIEWS_BYTES_MAX = 4096, 24 << 20
# The bytes that a label takes, and the bytes of an entry without its labels.
_LABEL_BYTES, _ENTRY_BYTES = 300, 1000
_NO_LABELS: dict[str, str] = {}
_Key = tuple[
    PodTemplate,
    Placement,
    str,
    frozenset[tuple[str, str]],
    Controller | None,
    Storage | None,
    Claimed | None,
]
# The versions of the terms of pods on nodes, of the Services and controllers of the pod's namespace, and of the nodes'
# labels.
_Version = tuple[int, int, int]


class View:
    """What every rule about other pods reads from a pod. Equal views are one object, so they are compared by identity.

    Attributes:
        needs: by rule, see ``table.read_peer_needs``.
        is_wide: whether a change on one node can help such a pod on another.
        storage: what rules read about the pod's storage, None for a pod without storage.
        claims: what rules read about the pod's ResourceClaims, None for a pod without them.
        is_single: such pods are placed one at a time, because each placement may change where the next pod may go.
        is_alone: no rule about other pods, about volumes or about devices that claims have already concerns such pods.
    """

    __slots__ = ("__weakref__", "claims", "is_alone", "is_single", "is_wide", "needs", "storage")

    def __init__(
        self, needs: table.Needs, storage: Storage | None = None, claims: Claimed | None = None
    ) -> None:
        self.needs, self.storage, self.claims = needs, storage, claims
        self.is_wide = table.is_wide(needs)
        self.is_single = any(one is not None and one.is_single for one in (storage, claims))
        self.is_alone = needs == table.NO_NEEDS and storage is None and not self.is_single


# The view of pods that no such rule concerns.
ALONE = View(table.NO_NEEDS)


class Views:
    """The views of the pods of one cluster."""

    def __init__(self, cluster: Cluster, sizes: TemplateSizes) -> None:
        self._cluster = cluster
        # Templates that no rule about other pods concerned, and the version of the cluster at that time.
        self._alone: WeakKeyDictionary[PodTemplate, _Version] = WeakKeyDictionary()
        self._version: _Version = 0, 0, 0
        self._views: WeakValueDictionary[
            tuple[table.Needs, Storage | None, Claimed | None], View
        ] = WeakValueDictionary()
        self._sizes = sizes
        self._recent: Recent[_Key, tuple[_Version, View]] = Recent(
            _VIEWS_MAX, _VIEWS_BYTES_MAX, self._estimate_size
        )

    def make_view(self, pod: PodRecord, placement: Placement) -> View:
        """Make the view of a pod."""
        terms, groups = self._cluster.terms, self._cluster.peers
        template, stored, claimed = pod.template, None, None
        keys = self._cluster.nodes.label_keys_version
        if self._version != (terms.version, groups.version, keys):
            # Thousands of templates share this one tuple.
            self._version = terms.version, groups.version, keys
        if pod.volumes is not None or self._cluster.claims.has_claims(pod):
            stored = needs.find_needs(pod, self._cluster.storage, placement.kube)
            claimed = claims.find_needs(pod, self._cluster.claims, placement.kube)
        elif self._alone.get(template) == self._version:
            return ALONE
        elif not table.has_peers(template, self._cluster):
            self._alone[template] = self._version
            return ALONE
        labels = pod.labels or _NO_LABELS
        words = frozenset(labels.items())
        key = template, placement, pod.namespace, words, pod.controller, stored, claimed
        # Only Services of the pod's namespace count: thousands of Services of other namespaces may change.
        own_version = terms.version, groups.find_version(pod.namespace), keys
        known = self._recent.get(key)
        if known is not None and known[0] == own_version:
            return known[1]
        standing = Standing(
            template, placement, pod.namespace, labels, pod.controller, stored, claimed
        )
        view = self._intern_view(table.read_peer_needs(standing, self._cluster), stored, claimed)
        self._recent.put(key, (own_version, view))
        return view

    def forget(self, is_there: IsThere) -> None:
        """Forget the views of pods that are gone."""
        self._recent.keep(lambda key, _: is_there(key[0]))

    def _estimate_size(self, key: _Key, _: tuple[_Version, View]) -> int:
        """Estimate the bytes of an entry: what rules read is made of the template's strings and the pod's labels."""
        return 2 * self._sizes.estimate(key[0]) + _LABEL_BYTES * len(key[3]) + _ENTRY_BYTES

    def _intern_view(
        self, needs: table.Needs, stored: Storage | None, claimed: Claimed | None
    ) -> View:
        is_single = stored is not None and stored.is_single
        if needs == table.NO_NEEDS and not is_single and claimed is None:
            return ALONE
        key = needs, stored, claimed
        found = self._views.get(key)
        if found is None:
            found = self._views[key] = View(*key)
        return found
