"""The engine alone, row by row: what a pod costs from its event to the decision and on to its bind, and memory.

The clock is the thread's. Pods come in batches, as they do when a controller makes them, and each batch is seen,
decided and confirmed before the next: what a pod costs is the time of these three over the number of pods. A pod of a
batch of like pods should cost less than in proportion to the nodes: below their root.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from bench.floors import Floor
from bench.rows import memory
from bench.rows.row import Row, Size, for_scheduler
from scheduler.api import kinds, names, wire
from scheduler.api.door import events
from scheduler.api.groups.objects import GROUP_KINDS, KubePodGroup
from scheduler.api.limits import DEFAULT
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.kube import heap
from scheduler.kube.watch import listing
from tests.controlplane.objects import Manifest

SIZES, QUICK_SIZES = (100, 1_000, 5_000, 20_000), (100, 1_000)
_PODS, _BATCH, _UNTIMED = 2_048, 512, 512
# What these rows need is not in the events of an engine alone, but comes from others' answers.
_NOT_ALONE = {"provisioner", "kubelet"}


def floors(rows: Sequence[Row], sizes: Sequence[int]) -> tuple[Floor, ...]:
    """Like pods: what one costs grows more slowly than the root of the number of nodes."""
    if len(sizes) < 2:
        return ()
    alike = (row.name for row in _measured(rows) if row.alike)
    return tuple(Floor(f"{name}.growth_over_root", at_most=1.0) for name in alike)


def run(rows: Sequence[Row], sizes: Sequence[int]) -> dict[str, Any]:
    """By row and number of nodes: microseconds a pod; and by number of nodes what is in memory."""
    usual = gc.get_threshold()
    result: dict[str, Any] = {}
    for row in _measured(rows):
        found: dict[str, Any] = {}
        for n_nodes in sizes:
            found[str(n_nodes)] = microseconds(row, Size(n_nodes, _PODS))
            print(
                f"bench: {row.name}, {n_nodes} nodes: {found[str(n_nodes)]}",
                file=sys.stderr,
                flush=True,
            )
            gc.unfreeze()
        fewest, most = min(sizes), max(sizes)
        growth = found[str(most)]["us_a_pod"] / found[str(fewest)]["us_a_pod"]
        result[row.name] = found | {"growth_over_root": round(growth / (most / fewest) ** 0.5, 3)}
    gc.set_threshold(*usual)
    return result | {"memory": {str(n_nodes): memory.measure(n_nodes) for n_nodes in sizes}}


def _measured(rows: Sequence[Row]) -> Iterator[Row]:
    return (row for row in rows if not _NOT_ALONE & set(row.beside))


def microseconds(row: Row, size: Size) -> dict[str, float]:
    """A pod's share of what its batch takes, but for the first batches.

    Returns:
        Microseconds to see, to decide and to confirm a pod, and their sum; 0 bound pods are left out.
    """
    engine = Engine(Config())
    for number in range(size.nodes):
        engine.handle(events.Seen(_node(row.node(number))), 0.0)
    old: list[wire.Pod] = []
    for one in row.before(size):
        found = _pod(one) if one["kind"] == kinds.PODS.name else _group(one)
        engine.handle(events.Seen(found), 0.0)
        old += [found] if isinstance(found, wire.Pod) else []
    # As the operator does before its first decision.
    heap.freeze()
    spent = [0.0, 0.0, 0.0]
    n_bound = 0
    for begin in range(0, size.pods, _BATCH):
        numbers = range(begin, min(begin + _BATCH, size.pods))
        pods = [_pod(row.incoming(number, size, names.SCHEDULER)) for number in numbers]
        leaving = [pod.metadata.uid for pod in old[begin : begin + len(pods)]] if row.arrive else []
        took, bound = _batch(engine, pods, leaving)
        if begin >= _UNTIMED:
            spent = [a + b for a, b in zip(spent, took, strict=True)]
            n_bound += bound
    n_timed = size.pods - _UNTIMED
    if n_bound != n_timed:
        raise RuntimeError(
            f"{row.name}: {n_bound} of {n_timed} pods were bound on {size.nodes} nodes"
        )
    see, decide, confirm = (round(seconds / n_timed * 1e6, 2) for seconds in spent)
    return {
        "see_us": see,
        "decide_us": decide,
        "confirm_us": confirm,
        "us_a_pod": round(see + decide + confirm, 2),
    }


def _batch(
    engine: Engine, pods: list[wire.Pod], leaving: list[str]
) -> tuple[tuple[float, float, float], int]:
    """Seconds to see, decide and confirm, and how many were bound; for each that comes one may leave."""
    by_uid = {pod.metadata.uid: pod for pod in pods}
    began = time.thread_time()
    for uid in leaving:
        engine.handle(events.Gone("Pod", uid), 0.0)
    for pod in pods:
        engine.handle(events.Seen(pod), 0.0)
    seen = time.thread_time()
    binds = engine.decide(0.0, Unlimited()).binds
    decided = time.thread_time()
    for bind in binds:
        engine.handle(events.BindDone(bind.uid), 0.0)
        pod = by_uid[bind.uid]
        spec = msgspec.structs.replace(pod.spec, node_name=bind.node)
        engine.handle(events.Seen(msgspec.structs.replace(pod, spec=spec)), 0.0)
    confirmed = time.thread_time()
    return (seen - began, decided - seen, confirmed - decided), len(binds)


_read_pod = listing.make_pod_reader(DEFAULT)
_nodes = msgspec.json.Decoder(wire.Node)


def _node(manifest: Manifest) -> wire.Node:
    manifest["metadata"]["uid"] = manifest["metadata"]["name"]
    return _nodes.decode(msgspec.json.encode(manifest))


def _group(manifest: Manifest) -> KubePodGroup:
    return msgspec.convert({**manifest, "kind": GROUP_KINDS[0]}, KubePodGroup)


def _pod(manifest: Manifest) -> wire.Pod:
    for_scheduler(manifest, names.SCHEDULER)["metadata"]["uid"] = manifest["metadata"]["name"]
    return _read_pod(msgspec.json.encode(manifest))
