"""The table of what was compared, for people."""

from __future__ import annotations

from typing import Any

from bench.rows import table

_HEAD = (
    "row", "nodes", "pods", "Evenkeel", "kube-scheduler", "null scheduler", "× kube-scheduler", "× null scheduler",
    "CPU ms/pod", "MiB", "first bind s",
)  # fmt: skip


def lines(result: dict[str, dict[str, Any]]) -> list[str]:
    """A table in Markdown; — where there is no figure, and * behind that of a scheduler that left pods unbound."""
    rows = [
        _cells(table.BY_NAME[name].title, n_nodes, compared)
        for name, sizes in result.items()
        for n_nodes, compared in sizes.items()
    ]
    return [_line(_HEAD), _line(["---"] * len(_HEAD)), *map(_line, rows)]


def _cells(title: str, n_nodes: str, compared: dict[str, Any]) -> list[str]:
    figures = compared["schedulers"]
    ours = figures.get("evenkeel", {})
    speeds = [
        _of(of, "pods_per_second", "{:,.0f}") + "*" * bool(of.get("unbound"))
        for of in (figures.get(one, {}) for one in ("evenkeel", "kube-scheduler", "null"))
    ]
    return [
        title,
        f"{int(n_nodes):,}",
        f"{compared['pods']:,}",
        *speeds,
        _of(compared, "times_kube_scheduler", "{:.2f}"),
        _of(compared, "of_null_scheduler", "{:.2f}"),
        _of(ours, "cpu_ms_per_pod", "{:.2f}"),
        _of(ours, "rss_mib", "{:,.0f}"),
        _of(ours, "start_to_first_bind_seconds", "{:.1f}"),
    ]


def _of(figures: dict[str, Any], figure: str, shape: str) -> str:
    found = figures.get(figure)
    return "—" if found is None else shape.format(found)


def _line(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"
