"""The keepers of objects: one for each kind. A keeper applies new objects, changed objects and deletions.

A keeper takes an object whole, and knows the keys of the objects that it has. With these keys the engine finds out
which objects a new list no longer has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from scheduler.api import kinds, placement, steering
from scheduler.api.door import notes
from scheduler.api.door.notes import Note
from scheduler.api.groups import objects
from scheduler.api.groups import table as readers
from scheduler.api.groups.definitions import GroupKey, Topology
from scheduler.api.names import PeerKind
from scheduler.api.storage import KINDS as STORAGE_KINDS
from scheduler.api.storage import StorageObject
from scheduler.config import Config
from scheduler.engine import claims
from scheduler.engine.device_maps import DeviceMaps
from scheduler.engine.kai_queues import KaiQueues
from scheduler.engine.keeping import Keeper
from scheduler.engine.queues import Queues
from scheduler.engine.space_quotas import NamespaceQuotas
from scheduler.errors import BadInput
from scheduler.shapes import policies
from scheduler.shapes.policies import PolicyBook
from scheduler.state.cluster import Cluster
from scheduler.waiting.pending import Pending

_NOTHING: tuple[Note, ...] = ()
_KUEUE = str(objects.KueueTopology.__struct_config__.tag)


def make_table(
    config: Config,
    cluster: Cluster,
    book: PolicyBook,
    pending: Pending,
    queues: Queues,
    of_kai: KaiQueues,
    spaces: NamespaceQuotas,
) -> dict[str, Keeper]:
    """Make a keeper for each watched kind except pods and nodes, which the engine itself keeps."""
    return {
        **{str(kind): _keep_peers(kind, cluster) for kind in PeerKind},
        **{kind: _keep_storage(kind, cluster, pending) for kind in STORAGE_KINDS},
        **{kind: _keep_groups(kind, cluster, of_kai) for kind in objects.GROUP_KINDS},
        **{kind: _keep_topologies(kind, cluster, queues) for kind in objects.TOPOLOGY_KINDS},
        **queues.make_keepers(),
        **of_kai.make_keepers(),
        **claims.make_keepers(cluster.claims, pending),
        kinds.BUDGETS.name: _keep_budgets(cluster),
        kinds.NAMESPACES.name: _keep_namespaces(cluster, book, pending, queues),
        kinds.POLICIES.name: _keep_policies(config, book, pending),
        kinds.CONFIG_MAPS.name: DeviceMaps(
            config, cluster, pending, spaces.ledger.recount
        ).make_keeper(),
        kinds.RESOURCE_QUOTAS.name: spaces.make_keeper(),
    }


def _keep_peers(kind: PeerKind, cluster: Cluster) -> Keeper:
    """Keep objects that select pods that belong together, such as Services."""
    peers = cluster.peers

    def see(found: steering.PeerObject, _: float) -> Sequence[Note]:
        meta = found.metadata
        peers.see(kind, meta.namespace, meta.name, found.selector)
        if isinstance(found, steering.StatefulSet):
            cluster.groups.see_object(found)
        return _NOTHING

    def gone(key: str, _: float) -> Sequence[Note]:
        peers.drop(kind, *kinds.split_key(key))
        if kind == PeerKind.STATEFUL_SET:
            cluster.groups.drop_object(kind, *kinds.split_key(key))
        return _NOTHING

    return Keeper(see, gone, lambda: map(_join, peers.list_of_kind(kind)))


def _keep_storage(kind: str, cluster: Cluster, pending: Pending) -> Keeper:
    storage = cluster.storage

    def wake(uids: Iterable[str], now: float) -> Sequence[Note]:
        for uid in uids:
            pending.help_pod(uid, now)
        return _NOTHING

    def see(found: StorageObject, now: float) -> Sequence[Note]:
        return wake(storage.see(found).pods, now)

    def gone(key: str, now: float) -> Sequence[Note]:
        return wake(storage.drop_object(kind, *kinds.split_key(key)).pods, now)

    return Keeper(see, gone, lambda: map(_join, storage.list_of_kind(kind)))


def _keep_groups(kind: str, cluster: Cluster, of_kai: KaiQueues) -> Keeper:
    """Keep objects that say which pods are a group, and in which queue it is."""
    groups = cluster.groups

    def note(namespace: str, name: str) -> Sequence[Note]:
        of_kai.accounts.note_group(GroupKey(kind, namespace, name))
        return _NOTHING

    def see(found: objects.GroupObject, _: float) -> Sequence[Note]:
        groups.see_object(found)
        return note(found.metadata.namespace, found.metadata.name)

    def gone(key: str, _: float) -> Sequence[Note]:
        namespace, name = kinds.split_key(key)
        groups.drop_object(kind, namespace, name)
        return note(namespace, name)

    return Keeper(see, gone, lambda: map(_join, groups.list_objects(kind)))


def _keep_topologies(kind: str, cluster: Cluster, queues: Queues) -> Keeper:
    """Keep objects that describe how the cluster is built."""
    groups = cluster.groups

    def put(name: str, topology: Topology | None) -> Sequence[Note]:
        groups.see_topology(kind, name, topology)
        if kind == _KUEUE:
            queues.see_topology(name, topology)
        return _NOTHING

    def see(found: objects.TopologyObject, _: float) -> Sequence[Note]:
        try:
            return put(found.metadata.name, readers.read_topology(found))
        except BadInput:
            # Groups and flavors that name this topology wait, and say that it does not exist.
            return put(found.metadata.name, None)

    def gone(key: str, _: float) -> Sequence[Note]:
        return put(key, None)

    return Keeper(see, gone, lambda: groups.list_topologies(kind))


def _keep_budgets(cluster: Cluster) -> Keeper:
    budgets = cluster.budgets

    def see(found: steering.PodDisruptionBudget, _: float) -> Sequence[Note]:
        meta, status = found.metadata, found.status
        allowed = status.disruptions_allowed, tuple(status.disrupted_pods or ())
        budgets.see(meta.namespace, meta.name, found.spec.selector, allowed)
        return _NOTHING

    def gone(key: str, _: float) -> Sequence[Note]:
        budgets.drop(*kinds.split_key(key))
        return _NOTHING

    return Keeper(
        see, gone, lambda: [f"{space}/{name}" for space, name, _ in budgets.list_objects()]
    )


def _keep_namespaces(
    cluster: Cluster, book: PolicyBook, pending: Pending, queues: Queues
) -> Keeper:
    def see(found: steering.Namespace, now: float) -> Sequence[Note]:
        name, labels = found.metadata.name, found.metadata.labels or {}
        changes_terms = cluster.terms.see_namespace(name, labels)
        queues.tenants.see_namespace(name)
        if book.see_namespace(name, labels) or changes_terms:
            pending.retry_all(now)
        return _NOTHING

    # The labels of a deleted namespace stay known: its pods may go later than the namespace.
    return Keeper(see, lambda *_: _NOTHING, tuple)


def _keep_policies(config: Config, book: PolicyBook, pending: Pending) -> Keeper:
    def see(found: steering.BalancePolicy, now: float) -> Sequence[Note]:
        meta, problem, remark = found.metadata, "", ""
        try:
            policy = policies.parse_policy({"metadata": {"name": meta.name}, "spec": found.spec})
            # A write of a policy's status comes back as an event too, and steers nothing.
            changed = book.put(policy)
            remark = placement.describe_ineffective(
                dict(policy.changes), _list_node_policies(config)
            )
        except BadInput as error:
            problem = str(error)
            changed = book.drop(meta.name)
        if changed:
            pending.retry_all(now)
        return (notes.PolicyJudged(meta.name, meta.generation, problem, remark),)

    def gone(key: str, now: float) -> Sequence[Note]:
        book.drop(key)
        pending.retry_all(now)
        return (notes.PolicyLeft(key),)

    return Keeper(see, gone, tuple)


def _join(where: tuple[str, str]) -> str:
    """Join namespace and name to a key."""
    return "/".join(filter(None, where))


def _list_node_policies(config: Config) -> Mapping[str, str]:
    """Return the node policy that the configuration sets for each scheduler name."""
    return {one: config.profile(one).placement.node_policy for one in config.scheduler_names}
