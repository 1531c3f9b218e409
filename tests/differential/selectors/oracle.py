"""Kubernetes' judge of devices, asked about many expressions at once."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from typing import Any

from tests.controlplane import build

Json = dict[str, Any]
NAME = "dra-cel"


def ask(questions: Iterable[Json]) -> list[Json]:
    """Return what it says, in order; a question has ``expr``, ``device`` and perhaps ``raw``, see the program."""
    asked = "\n".join(json.dumps(question) for question in questions)
    told = subprocess.run(
        [build.ensure(NAME)[NAME]],
        input=asked,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    return [json.loads(line) for line in told.stdout.splitlines()]
