"""Writes the headings by which the table of a replay names its figures.

The name of a figure in JSON and Parquet means the same in one word: ``allocated_cpu_percent_at_100`` is
"cpu allocated, %, at load 100".
"""

from __future__ import annotations

import re
from collections.abc import Callable

from scheduler.replay import demand
from scheduler.replay.measures.classes import CLASSES

_SIZES = dict(
    zip(
        CLASSES,
        (
            "pods without GPUs",
            "shares of a GPU",
            "1 GPU",
            "2 GPUs",
            "3 or 4 GPUs",
            "5 or more GPUs",
        ),
        strict=True,
    )
) | {"in_groups": "pods in groups", "alone": "pods by themselves"}
_SIZE = rf"(?:_(?P<size>{'|'.join(_SIZES)}))?"
_AT = r"(?:_at_(?P<at>\w+))?"
# A pattern matches a whole name, and the first that matches counts.
_RULES: tuple[tuple[str, Callable[[dict[str, str]], str]], ...] = (
    (rf"allocated_percent{_AT}", lambda _: "GPUs allocated, %"),
    (r"allocated_percent_by_time", lambda _: "GPUs allocated, %, over time"),
    (rf"allocated_(?P<of>.+)_percent{_AT}", lambda has: f"{_write_unit(has)} allocated, %"),
    (rf"stranded_(?P<of>.+)_percent{_AT}", lambda has: f"{_write_unit(has)} stranded, %"),
    (rf"asked_percent{_AT}", lambda _: "requested, % of capacity"),
    (rf"frag_percent{_AT}", lambda _: "fragments, % of GPUs"),
    (rf"frag_ratio_percent{_AT}", lambda _: "fragments, % of idle GPUs"),
    (r"frag_ratio_mean_percent", lambda _: "fragments, % of idle GPUs, mean"),
    (rf"occupied_nodes{_AT}", lambda _: "nodes in use"),
    (r"nodes_occupied_percent", lambda _: "nodes in use, %"),
    (r"dropped_pods", lambda _: "pods lost"),
    (r"still_waiting_pods", lambda _: "pods still waiting"),
    (rf"lost_pods_percent{_SIZE}", lambda _: "pods lost, %"),
    (rf"lost_gpu_percent{_SIZE}", lambda _: "requested GPUs lost, %"),
    (r"team_used_(?P<team>.+)_percent", lambda has: f"{has['team']}: used, % of all there is"),
    (r"team_missing_(?P<team>.+)_percent", lambda has: f"{has['team']}: missing, % of its fair part"),
    (r"team_wait_mean_(?P<team>.+)_seconds", lambda has: f"{has['team']}: wait, mean, seconds"),
    (r"team_wait_p95_(?P<team>.+)_seconds", lambda has: f"{has['team']}: wait, 95th percentile, seconds"),
    (r"teams_missing_percent", lambda _: "all teams: missing, % of fair parts"),
    (r"moves", lambda _: "moves"),
    (r"moves_missed_percent", lambda _: "moves that went elsewhere than planned, %"),
    (r"moves_freed_gpus_each", lambda _: "GPUs freed by each move"),
    (r"moves_let_in_each", lambda _: "waiting pods let in by each move"),
    (r"evicted_pods", lambda _: "evictions of pods"),
    (r"evicted_work_percent", lambda _: "work lost by evictions, %"),
    (r"lost_(?P<of>.+)_percent", lambda has: f"requested {_write_unit(has)} lost, %"),
    (r"lost_percent", lambda _: "requests lost, %, resources that bind"),
    (rf"wait_mean{_SIZE}(?P<s>_seconds)?", lambda has: f"wait, mean, {_write_time(has)}"),
    (rf"wait_p95{_SIZE}(?P<s>_seconds)?", lambda has: f"wait, 95th percentile, {_write_time(has)}"),
    (rf"wait_p99{_SIZE}(?P<s>_seconds)?", lambda has: f"wait, 99th percentile, {_write_time(has)}"),
    (r"wait_longest(?P<s>_seconds)?", lambda has: f"wait, longest, {_write_time(has)}"),
    (r"recorded_seconds", lambda _: "length of the trace, seconds"),
    (r"seconds", lambda _: "the run took, seconds"),
)  # fmt: skip


def write_heading(name: str) -> str:
    """Write what a figure is, its unit, and the load or size of pods that it is about."""
    for pattern, words in _RULES:
        if match := re.fullmatch(pattern, name):
            has = {key: value for key, value in match.groupdict().items() if value}
            at = "at the end" if has.get("at") == "end" else f"at load {has.get('at')}"
            size = _SIZES.get(has.get("size", ""))
            return ", ".join(filter(None, (words(has), at if "at" in has else "", size)))
    return name


def _write_unit(has: dict[str, str]) -> str:
    return "GPUs" if has["of"] == demand.GPU else has["of"]


def _write_time(has: dict[str, str]) -> str:
    return "seconds" if "s" in has else "lifetimes"
