"""`make conformance`: Kubernetes' [sig-scheduling] specs with kube-scheduler and with Evenkeel, side by side."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conformance import lanes, suite, table
from tests.conformance.suite import Result
from tests.controlplane import build

_PROGRAMS = ("etcd", "kube-apiserver", "kubectl", "kube-scheduler", "kube-controller-manager", "kwok", "e2e.test")  # fmt: skip


def main() -> int:
    """0 when Evenkeel passes all that kube-scheduler passes."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--only", default="", help="specs whose text this pattern is found in")
    parser.add_argument("--clusters", type=int, default=3, help="clusters of each scheduler (3)")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--logs", type=Path, help="folder for what the suite and schedulers say")
    chosen = parser.parse_args()
    build.ensure(*_PROGRAMS)
    # Else each cluster's scheduler would compile the kernels for itself.
    subprocess.run([sys.executable, "-m", "scheduler", "warm"], check=True)
    with tempfile.TemporaryDirectory(prefix="conformance-") as temporary:
        folder = (chosen.logs or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        specs = suite.specs(folder, chosen.only)
        if not specs:
            print("no spec has that in its text", file=sys.stderr)
            return 2
        results = lanes.run(specs, folder, n_clusters=chosen.clusters, tell=_tell)
    print(table.drawn(results))
    if chosen.json:
        chosen.json.write_text(json.dumps(table.as_json(results), indent=2))
    return 1 if table.lost(results) else 0


def _tell(scheduler: str, spec: str, result: Result) -> None:
    line = f"{scheduler:15} {result.state:8} {result.seconds:5.0f} s  {spec}"
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
