"""The version of a pod is what its bind carries, so the newest that was seen must be known, and be no change."""

import msgspec

from scheduler.api import wire
from scheduler.config import Config
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord, make_charge_key
from scheduler.waiting.pending import Pending
from tests import make


def pod(version: str, *, node: str = "") -> wire.Pod:
    found = make.pod(name="p", node=node)
    found.metadata.resource_version = version
    return found


def test_the_newest_version_is_known_also_of_a_pod_whose_bind_is_under_way() -> None:
    cluster = Cluster()
    cluster.see_node(make.node(name="n"))
    uid = pod("1").metadata.uid
    assert cluster.find_version(uid) == ""
    cluster.see_pod(pod("1"))
    assert cluster.find_version(uid) == "1"
    cluster.see_pod(pod("2"))
    assert cluster.find_version(uid) == "2"
    cluster.assume(uid, "n", ())
    cluster.see_pod(pod("3"))
    assert cluster.find_version(uid) == "3"
    cluster.forget(uid)
    assert cluster.find_version(uid) == "3"
    cluster.drop_pod(uid)
    assert cluster.find_version(uid) == ""


def test_a_new_version_alone_is_no_change() -> None:
    """Neither of what a pod is charged, nor a reason to try a pod again that waits for a change."""
    cluster, pending = Cluster(), Pending(Config())
    before = msgspec.structs.replace(record(cluster, pod("1", node="n")))
    assert make_charge_key(before) == make_charge_key(record(cluster, pod("2", node="n")))
    cluster.drop_pod(before.uid)
    pending.offer(record(cluster, pod("3")), 0.0)
    (waiting,) = pending.pop(1, 0.0)
    pending.park_pod(waiting.uid, 0.0, "kind")
    pending.offer(record(cluster, pod("4")), 0.0)
    assert pending.is_parked(waiting.uid)


def record(cluster: Cluster, seen: wire.Pod) -> PodRecord:
    found = cluster.see_pod(seen)
    assert found is not None
    return found
