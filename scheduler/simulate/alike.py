"""Groups pods that a person regards as one thing: pods of a workload, and pods that wait for the same reason."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

Json = dict[str, Any]
# How controllers end the names of their pods: with a number, or with the hash of a ReplicaSet and letters for the pod.
_SAFE = "[bcdfghjklmnpqrstvwxz2456789]"
_ENDING = re.compile(rf"(-{_SAFE}{{8,10}})?-({_SAFE}{{5}}|\d+)$")
_FIGURE = re.compile(r"\d+")


class Likeness(NamedTuple):
    """A workload: its kind, namespace and name; the kind is empty if only the names of its pods show it."""

    kind: str
    namespace: str
    name: str


def read_rank(pod: Json) -> int:
    """Read the place of a pod in every answer: one's own pods come first, then those of a change."""
    return 0 if pod.get("own") else 1 if pod.get("ofChange") else 2


class Reason(NamedTuple):
    """Why pods wait, in the words of the first pod; the reasons of the others differ at most in figures."""

    pods: list[Json]
    differs: bool

    @property
    def message(self) -> str:
        """The sentences, with the figures of the first pod."""
        of_first = f" (The figures are those of {make_key(self.pods[0])}.)" if self.differs else ""
        return f"{self.pods[0]['message']}{of_first}"


def group_by_reason(pods: Iterable[Json]) -> list[Reason]:
    """Group pods by the reason for which they wait; the groups are in the order of their first pods."""
    alike: dict[str, list[Json]] = defaultdict(list)
    for pod in pods:
        if pod["node"] is None:
            alike[_FIGURE.sub("0", pod["unschedulable"] or pod["message"])].append(pod)
    return [Reason(those, len({pod["message"] for pod in those}) > 1) for those in alike.values()]


def group_by_workload(pods: Iterable[Json]) -> dict[Likeness, list[Json]]:
    """Group pods by their workloads; the groups are in the order of their first pods."""
    alike: dict[Likeness, list[Json]] = defaultdict(list)
    for pod in pods:
        alike[_find_workload(pod)].append(pod)
    return alike


def _find_workload(pod: Json) -> Likeness:
    """Find the workload of a pod: its owner, or else the beginning of its name."""
    if pod["owner"]:
        return Likeness(pod["owner"]["kind"], pod["namespace"], pod["owner"]["name"])
    return Likeness("", pod["namespace"], cut_ending(pod["name"]))


def cut_ending(name: str) -> str:
    """Cut the ending that a controller writes from the name of a pod."""
    return _ENDING.sub("", name)


def make_label(kind: Likeness, pods: Sequence[Json]) -> str:
    """Make a label: the name of one pod, or the beginning that the names of several pods have in common."""
    return make_key(pods[0]) if len(pods) == 1 else f"{kind.namespace}/{kind.name}-…"


def make_key(pod: Json) -> str:
    """Make the key of a pod from its namespace and name."""
    return f"{pod['namespace']}/{pod['name']}"
