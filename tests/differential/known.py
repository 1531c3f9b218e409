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


def _is_of_features(difference: Difference, objects: Sequence[Json]) -> bool:
    """Only the numbers of the two reasons, and only of a pod that needs a feature."""
    needs = any("restartPolicyRules" in one for one in objects[-1]["spec"]["containers"])
    return needs and difference.what == "message" and _FEATURES in str(difference.ours)


def _is_of_pod_level(difference: Difference, objects: Sequence[Json]) -> bool:
    what = difference.what in {"NodeResourcesFit", "kube-scheduler's choice"}
    return what and "resources" in objects[-1]["spec"]


_FEATURES = "node(s) didn't match Pod's required features"

KNOWN: tuple[Known, ...] = (
    Known(
        "a node that lacks a declared feature and something else as well tells the feature; kube-scheduler"
        " asks that rule last, here what a node is comes before what it holds",
        _is_of_features,
    ),
    Known(
        "pod-level resources of the pod that comes: NodeResourcesFit scores by what its containers ask alone"
        " (1.37.1 forgets the gate in that scorer), here they count as in the filter",
        _is_of_pod_level,
    ),
)


def reason(difference: Difference, objects: Sequence[Json]) -> Known | None:
    """Which known difference it is, None when it is another."""
    return next((one for one in KNOWN if one.holds(difference, objects)), None)
