"""Differences that stay, each with its reason; any other fails a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tests.differential.compare import Difference

Json = dict[str, Any]


class Known(NamedTuple):
    """A difference that stays.

    Attributes:
        title: what is different and why, in a line.
        holds: whether a difference in a case of these objects, the pod last, is of this kind.
    """

    title: str
    holds: Callable[[Difference, Sequence[Json]], bool]


def _is_of_pod_level(difference: Difference, objects: Sequence[Json]) -> bool:
    what = difference.what in {"NodeResourcesFit", "kube-scheduler's choice"}
    return what and "resources" in objects[-1]["spec"]


KNOWN: tuple[Known, ...] = (
    Known(
        "pod-level resources of the pod that comes: NodeResourcesFit scores by what its containers ask alone"
        " (1.37.1 forgets the gate in that scorer), here they count as in the filter",
        _is_of_pod_level,
    ),
)


def reason(difference: Difference, objects: Sequence[Json]) -> Known | None:
    """Which known difference it is, None when it is another."""
    return next((one for one in KNOWN if one.holds(difference, objects)), None)
