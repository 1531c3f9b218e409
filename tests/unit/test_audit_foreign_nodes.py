"""What an audit says of nodes whose devices another scheduler allocates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from tests import make
from tests.unit.test_audit_command import run


def test_gpus_of_another_scheduler_are_no_loss(tmp_path: Path) -> None:
    """Its pods use them, so the money says of them what it says of ours."""
    path = tmp_path / "config.yaml"
    path.write_text("hamiSchedulerNodes: scheduler!=evenkeel")
    body: dict[str, Any] = msgspec.to_builtins(make.hami_node(name="n", cards=4, cpu=64))
    objects = [body | {"apiVersion": "v1", "kind": "Node"}]
    ours, theirs = (
        json.loads(run("-f", "-", "-o", "json", *more, objects=objects).stdout)["total"]
        for more in ((), ("--config", path))
    )
    assert theirs == ours
    assert ours["usable"]["gpuCompute"] == 4
