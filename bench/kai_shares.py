"""The fair shares of KAI's queues, from the input of KAI's own fair-share simulator.

``python -m bench.kai_shares FILE`` reads the JSON that KAI's ``cmd/fairshare-simulator`` takes at ``/simulate``, and prints
what that would answer: the fair share of each queue, found by Evenkeel's own code. ``-`` reads standard input. As there, all
queues have one parent, a queue without figures for cpu or memory has no quota to keep to, and whatever has no
request wants 100,000. Amounts have no unit; GPUs are given in whole ones.

Two fields are Evenkeel's own: ``kValue`` (0 in KAI's simulator), and ``usage`` of a resource of a queue, as a part of all
there is.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scheduler.api.queues.kai import UNLIMITED
from scheduler.tenancy.kai.shares import Claimant, divide

Json = Mapping[str, Any]

# By the name in the figures of a queue: the name in what there is, and the quota of a queue that has no figures.
_RESOURCES = {"gpu": ("GPU", 0.0), "cpu": ("CPU", UNLIMITED), "memory": ("Memory", UNLIMITED)}
_REQUEST = 100_000.0


def find_shares(given: Json) -> dict[str, dict[str, float]]:
    """Find the fair share of each queue, by its uid and the resource.

    Args:
        given: ``totalResource`` with what there is, ``queues`` with ``uid``, ``priority``, ``creationTimestamp`` and
            ``resourceShare``, and ``kValue``.
    """
    found: dict[str, dict[str, float]] = {one["uid"]: {} for one in given["queues"]}
    for resource, (name, quota) in _RESOURCES.items():
        claimants = [_read_claimant(one, resource, quota) for one in given["queues"]]
        total = float(given["totalResource"].get(name, 0))
        divide(total, float(given.get("kValue", 0)), claimants)
        for one, claimant in zip(given["queues"], claimants, strict=True):
            found[one["uid"]][resource] = claimant.share
    return found


def _read_claimant(queue: Json, resource: str, quota: float) -> Claimant:
    figures = (queue.get("resourceShare") or {}).get(resource)
    if figures is None:
        figures = {"deserved": quota}
    return Claimant(
        quota=_read(figures, "deserved", 0),
        limit=_read(figures, "maxAllowed", UNLIMITED),
        weight=_read(figures, "overQuotaWeight", 1),
        request=_read(figures, "request", _REQUEST),
        usage=_read(figures, "usage", 0),
        priority=int(queue.get("priority") or 0),
        age=(str(queue.get("creationTimestamp") or ""), str(queue["uid"])),
    )


def _read(figures: Json, name: str, default: float) -> float:
    found = figures.get(name)
    return float(default if found is None else found)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.kai_shares")
    parser.add_argument("file", help="the JSON of a request; - reads standard input")
    given = parser.parse_args()
    text = sys.stdin.read() if given.file == "-" else Path(given.file).read_text(encoding="utf-8")
    print(json.dumps(find_shares(json.loads(text)), indent=2))


if __name__ == "__main__":
    main()
