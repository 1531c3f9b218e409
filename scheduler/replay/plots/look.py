"""Colours, dashes and the style that all parts of a picture share."""

from __future__ import annotations

from typing import Any

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES = ("-", "--", "-.", ":")
INK, FAINT = "#333333", "#DDDDDD"
STYLE: dict[Any, Any] = {
    # The name of a model may have a $.
    "text.parse_math": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "font.size": 9.5,
    "legend.frameon": False,
    "xtick.color": INK,
    "ytick.color": INK,
}


def make_look(i: int) -> dict[str, Any]:
    """Make the colour and dashes of the i-th line; 28 lines all look different."""
    n = len(COLOURS)
    return {"color": COLOURS[i % n], "linestyle": _DASHES[(i % n + i // n) % len(_DASHES)]}
