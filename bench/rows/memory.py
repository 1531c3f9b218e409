"""What a node and a bound pod take in memory: the growth of a fresh process that holds the engine."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from bench.rows import table
from bench.rows.row import Size, for_scheduler
from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.api.limits import DEFAULT
from scheduler.config import Config
from scheduler.engine.engine import Engine
from scheduler.kernels import compiling
from scheduler.kube.watch import listing

_PODS_A_NODE = 4


def measure(n_nodes: int) -> dict[str, Any]:
    """KiB a node with 8 GPUs, KiB a bound pod of one GPU, and MiB of the whole process with both."""
    command = [sys.executable, "-m", "bench.rows.memory", str(n_nodes)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _grown(n_nodes: int) -> dict[str, float]:
    compiling.compile_kernels(lambda _: None)
    engine, row = Engine(Config()), table.BY_NAME["gpu"]
    size = Size(n_nodes, n_nodes * _PODS_A_NODE)
    read_pod = listing.make_pod_reader(DEFAULT)
    empty = _rss_kib()
    for number in range(size.nodes):
        node = row.node(number)
        node["metadata"]["uid"] = node["metadata"]["name"]
        engine.handle(
            events.Seen(msgspec.json.decode(msgspec.json.encode(node), type=wire.Node)), 0.0
        )
    gc.collect()
    with_nodes = _rss_kib()
    for number in range(size.pods):
        pod = for_scheduler(row.pod(number, size), names.SCHEDULER)
        pod["metadata"]["uid"] = pod["metadata"]["name"]
        pod["spec"]["nodeName"] = row.decide(number, size).node
        engine.handle(events.Seen(read_pod(msgspec.json.encode(pod))), 0.0)
    gc.collect()
    with_pods = _rss_kib()
    return {
        "kib_a_node": round((with_nodes - empty) / size.nodes, 2),
        "kib_a_pod": round((with_pods - with_nodes) / size.pods, 2),
        "rss_mib": round(with_pods / 1024),
    }


def _rss_kib() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (line,) = (line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1])


if __name__ == "__main__":
    print(json.dumps(_grown(int(sys.argv[1]))))
