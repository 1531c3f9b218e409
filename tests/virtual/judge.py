"""What is asked of the server's truth: nothing is given away twice, and in the end nobody waits without reason."""

import msgspec

from scheduler.api import names, wire
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.devices import table as devices
from scheduler.shapes.policies import PolicyBook
from scheduler.state.cluster import Cluster
from tests.model.server import Change, Json, Server
from tests.oracles import allocation

# Phases of pods that are over.
OVER = frozenset({"Succeeded", "Failed"})


def violations(server: Server, change: Change) -> list[str]:
    """What is given away twice on the node that a change is about, in words."""
    body = change.after
    if body is None or change.kind not in {"nodes", "pods"}:
        return []
    is_node = change.kind == "nodes"
    name = body["metadata"]["name"] if is_node else body["spec"].get("nodeName")
    if not name:
        return []
    node = server.find("nodes", "", name)
    if node is None:
        return [f"{body['metadata']['name']} is bound to {name}, which is not there"]
    return allocation.violations([node], unfinished(server)) + _mistaken(server, change, node)


def _mistaken(server: Server, change: Change, node: Json) -> list[str]:
    """What would make a plugin that wakes up late take one pod for another: it finds its pod by the node's lock."""
    lock = _lock(node)
    name = node["metadata"]["name"]
    if change.kind == "nodes":
        before = _lock(change.before) if change.before else ""
        if not lock or lock == before:
            return []
        return [
            f"{name} is locked with {lock} while {pod['metadata']['name']} is not served"
            for pod in server.of_kind("pods")
            if is_unserved(pod, name) and not lock.endswith(f",default,{pod['metadata']['name']}")
        ]
    body, before_it = change.after, change.before
    assert body is not None
    is_new = before_it is not None and not before_it["spec"].get("nodeName")
    if not (is_new and is_unserved(body, name)):
        return []
    pod = body["metadata"]["name"]
    return [] if lock.endswith(f",default,{pod}") else [f"{pod} is bound, and {name} has {lock!r}"]


def _lock(node: Json) -> str:
    return str((node["metadata"].get("annotations") or {}).get(names.HAMI_LOCK, ""))


def is_unserved(pod: Json, node: str = "") -> bool:
    """Whether a pod with cards is on a node, on ``node`` if it is given, and its plugin still has to serve it."""
    notes = pod["metadata"].get("annotations") or {}
    on = pod["spec"].get("nodeName")
    return (
        bool(on)
        and node in {"", on}
        and notes.get(names.HAMI_BIND_PHASE) == "allocating"
        and pod["status"].get("phase", "Pending") == "Pending"
    )


def unfinished(server: Server) -> list[Json]:
    """Pods that are not over."""
    return [pod for pod in server.of_kind("pods") if pod["status"].get("phase") not in OVER]


def restless(server: Server, config: Config) -> list[str]:
    """Pods that fit by a fresh look at the server's truth, or were not told why they wait."""
    cluster = Cluster(config.scheduler_names, devices.read_devices(config), config.pod_limits)
    cluster.records.trusts_claims = config.trust_claims
    for node in server.of_kind("nodes"):
        cluster.see_node(msgspec.convert(node, wire.Node))
    pods = unfinished(server)
    for pod in pods:
        cluster.see_pod(msgspec.convert(pod, wire.Pod))
    cycle, found = Cycle(cluster, PolicyBook(config)), []
    for body in pods:
        record = cluster.pods[body["metadata"]["uid"]]
        if record.node or not record.ours or record.deleting:
            continue
        if cycle.could_place(record):
            found.append(f"{record.key} fits and is not placed")
        elif not any(
            one["type"] == "PodScheduled" and one["status"] == "False"
            for one in body["status"].get("conditions") or ()
        ):
            found.append(f"{record.key} was not told why it waits")
    return found
