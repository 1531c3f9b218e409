"""Pods that a person regards as one thing: those of a workload, and those that wait for the same reason."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

Json = dict[str, Any]
# How controllers end the names of their pods: a number, or the words of a ReplicaSet and of a pod.
_SAFE = "[bcdfghjklmnpqrstvwxz2456789]"
_ENDING = re.compile(rf"(-{_SAFE}{{8,10}})?-({_SAFE}{{5}}|\d+)$")
_FIGURE = re.compile(r"\d+")


class Likeness(NamedTuple):
    """A workload: its kind, namespace and name; the kind is empty if only the names of its pods show it."""

    kind: str
    namespace: str
    name: str


def rank(pod: Json) -> int:
    """The place of a pod in every answer: one's own pods come first, then those of a change."""
    return 0 if pod.get("own") else 1 if pod.get("ofChange") else 2


class Reason(NamedTuple):
    """Why pods wait, in the words of the first pod; the reasons of the others differ at most in figures."""

    pods: list[Json]
    differs: bool

    @property
    def message(self) -> str:
        """The sentences, with the figures of the first pod."""
        of_first = f" (The figures are those of {key(self.pods[0])}.)" if self.differs else ""
        return f"{self.pods[0]['message']}{of_first}"


def reasons(pods: Iterable[Json]) -> list[Reason]:
    """Each reason for waiting once, with its pods, in the order of the first ones."""
    alike: dict[str, list[Json]] = defaultdict(list)
    for pod in pods:
        if pod["node"] is None:
            alike[_FIGURE.sub("0", pod["unschedulable"] or pod["message"])].append(pod)
    return [Reason(those, len({pod["message"] for pod in those}) > 1) for those in alike.values()]


def by_workload(pods: Iterable[Json]) -> dict[Likeness, list[Json]]:
    """Pods by their workloads, in the order of the first ones."""
    alike: dict[Likeness, list[Json]] = defaultdict(list)
    for pod in pods:
        alike[_kind(pod)].append(pod)
    return alike


def _kind(pod: Json) -> Likeness:
    """The owner, or the beginning of the name."""
    if pod["owner"]:
        return Likeness(pod["owner"]["kind"], pod["namespace"], pod["owner"]["name"])
    return Likeness("", pod["namespace"], stem(pod["name"]))


def stem(name: str) -> str:
    """The name of a pod without the ending that a controller writes."""
    return _ENDING.sub("", name)


def label(kind: Likeness, pods: Sequence[Json]) -> str:
    """The name of one pod, or the beginning that the names of several have in common."""
    return key(pods[0]) if len(pods) == 1 else f"{kind.namespace}/{kind.name}-…"


def key(pod: Json) -> str:
    """The namespace and the name of a pod."""
    return f"{pod['namespace']}/{pod['name']}"
