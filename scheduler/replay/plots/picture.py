"""Draws the whole picture: a row of lines per variant, and a cluster per mode."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scheduler.errors import BadInput
from scheduler.replay.fan_out import Finished, Traces
from scheduler.replay.plots import cluster, lines, look, shares

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png")
_WIDTH, _LINES_HEIGHT, _SHARES_HEIGHT, _CLUSTER_HEIGHT = 12.0, 4.0, 3.4, 2.4


def check_picture(path: Path) -> None:
    """Refuse a picture that cannot be drawn.

    Raises:
        BadInput: the form of the file is not supported, or the extra is not installed.
    """
    if path.suffix not in SUFFIXES:
        raise BadInput("--plot", f"{path} does not end in {' or '.join(SUFFIXES)}")
    try:
        importlib.import_module("matplotlib")
    except ModuleNotFoundError as error:
        raise BadInput(
            "--plot", "needs the extra plot: pip install evenkeel-scheduler[plot]"
        ) from error


def draw_picture(finished: Sequence[Finished], traces: Traces, path: Path) -> None:
    """Draw the picture of a replay as SVG or PNG, by the name of the file.

    It has a row of lines per variant, then those of the first variant and seed: the teams of each mode and policy, and
    the cluster at the end.

    Raises:
        BadInput: the extra is not installed, or the file cannot be written.
    """
    check_picture(path)
    import matplotlib as mpl  # noqa: PLC0415 - an extra, and a second at import
    from matplotlib.figure import Figure  # noqa: PLC0415

    variants = list(dict.fromkeys(one.job.variant for one in finished))
    last = _pick_one_per_mode([one for one in finished if one.job.variant == variants[0]])
    shared = [one for one in last if one.teams is not None]
    heights = (
        [_LINES_HEIGHT] * len(variants)
        + [_SHARES_HEIGHT] * len(shared)
        + [_CLUSTER_HEIGHT] * len(last)
    )
    with mpl.rc_context(look.STYLE):
        figure = Figure(figsize=(_WIDTH, sum(heights)), layout="constrained")
        parts = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
        for part, variant in zip(parts, variants, strict=False):
            lines.draw_lines(part, [one for one in finished if one.job.variant == variant])
        unit = lines.choose_unit(finished)
        for part, one in zip(parts[len(variants) :], shared, strict=False):
            if one.teams is not None:
                shares.draw_shares(part, one.job.label, one.teams, unit)
        for part, one in zip(parts[len(variants) + len(shared) :], last, strict=True):
            cluster.draw_cluster(part, one, traces[one.job.variant])
        _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise BadInput("--plot", f"{path}: {error}") from error


def _pick_one_per_mode(finished: Sequence[Finished]) -> list[Finished]:
    by_mode: dict[str, Finished] = {}
    for one in finished:
        by_mode.setdefault(one.job.label, one)
    return list(by_mode.values())
