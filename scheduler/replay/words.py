"""The values of options of ``evenkeel replay``; quick to import, because the shell's completion needs them."""

from __future__ import annotations

from typing import Literal, get_args

from scheduler.api.placement import Mode

Experiment = Literal["fill", "churn", "bursts", "daily", "heavy-tail", "recorded"]
# From which pods a mode may learn the mix: those that arrived, or the whole trace.
Learning = Literal["seen", "trace"]
# In which order pods that wait are tried, see docs/replay.md.
Waiting = Literal["backfill", "best-effort", "fifo"]
Output = Literal["table", "json", "parquet"]

EXPERIMENTS: tuple[str, ...] = get_args(Experiment)
# Requested-to-capacity-ratio is left out: it is as good as its curve, and no curve is typical.
MODES = tuple(str(mode) for mode in Mode if mode != Mode.REQUESTED_TO_CAPACITY_RATIO)
