"""How long the YAML of a dump takes to read, next to PyYAML's own fast loader and to the same dump as JSON."""

from __future__ import annotations

import gc
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import yaml

from bench.floors import Floor
from scheduler.documents import reading

_PODS, _QUICK_PODS, _ROUNDS = 1_500, 300, 3
FLOORS = (Floor("times_as_fast_as_pyyaml", at_least=3),)


def run(quick: bool) -> dict[str, Any]:
    """Median seconds over the rounds, which take turns."""
    dump = {"apiVersion": "v1", "kind": "List", "items": [_pod(i) for i in range(_QUICK_PODS if quick else _PODS)]}  # fmt: skip
    text, as_json = yaml.dump(dump, Dumper=yaml.CSafeDumper), json.dumps(dump)
    readers: dict[str, Callable[[], Any]] = {
        "yaml": lambda: reading.read_first(text),
        "pyyaml": lambda: yaml.load(text, Loader=yaml.CSafeLoader),
        "json": lambda: reading.read_first(as_json),
    }
    found: dict[str, list[float]] = {name: [] for name in readers}
    for _ in range(_ROUNDS):
        for name, read in readers.items():
            gc.collect()
            start = time.perf_counter()
            read()
            found[name].append(time.perf_counter() - start)
    seconds = {name: statistics.median(times) for name, times in found.items()}
    return {
        "mebibytes": round(len(text) / 2**20, 2),
        "seconds": {name: round(median, 4) for name, median in seconds.items()},
        "times_as_fast_as_pyyaml": round(seconds["pyyaml"] / seconds["yaml"], 2),
    }


def _pod(i: int) -> dict[str, Any]:
    """As the API server prints one, with what every field is managed by."""
    moment = "2026-01-02T03:04:05Z"
    containers = [
        {
            "name": f"c{j}",
            "image": "registry.example.com/app:1",
            "command": ["sh", "-c", "sleep 1 && echo 'x: y'"],
            "resources": {
                "limits": {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"},
                "requests": {"cpu": "100m", "memory": "1Gi", "nvidia.com/gpu": "1"},
            },
            "env": [{"name": f"SETTING_{k}", "value": str(k)} for k in range(6)],
            "volumeMounts": [{"mountPath": "/var/run", "name": "t", "readOnly": True}],
        }
        for j in range(2)
    ]
    managed: dict[str, Any] = {
        f"f:field{k}": {".": {}, "f:name": {}, "f:value": {}} for k in range(12)
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"app-{i}",
            "namespace": f"team-{i % 20}",
            "uid": f"uid-{i:08}",
            "creationTimestamp": moment,
            "labels": {"app": f"app-{i % 50}", "tier": "back"},
            "annotations": {"note": "text with a colon: and # a hash"},
            "managedFields": [{"manager": "kubectl", "time": moment, "fieldsV1": managed}],
        },
        "spec": {
            "schedulerName": "evenkeel",
            "nodeName": f"node-{i % 200}",
            "containers": containers,
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300}],
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": moment}
                for kind in ("Ready", "Initialized", "ContainersReady", "PodScheduled")
            ],
        },
    }  # fmt: skip
