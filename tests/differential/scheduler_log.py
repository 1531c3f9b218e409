"""What kube-scheduler prints of one pod at log level 10, read into an answer.

It prints each plugin's weighted score for each node, in lines such as

    I1123 04:43:59.89 17370 schedule_one.go:984] "Plugin scored node for pod" pod="a/b" plugin="ImageLocality" …

and one line at the end: that the pod is bound, or that it is not.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.differential.answers import Answer

_LINE = re.compile(r'[IWE]\d{4} \S+ +\d+ \w+\.go:\d+\] ("(?:[^"\\]|\\.)*")(.*)')
_FIELD = re.compile(r' (\w+)=("(?:[^"\\]|\\.)*"|\S+)')
_SCORED = "Plugin scored node for pod"
_BOUND = "Successfully bound pod to node"
_WAITS = ("Unable to schedule pod; no fit; waiting", "Unable to schedule pod; no nodes are registered to the cluster; waiting")  # fmt: skip
_BINDS_VOLUMES = "BindPodVolumes"
NO_NODES = "no nodes available to schedule pods"
_ERROR = "Error scheduling pod; retrying"
_GATED = "Status after running PreEnqueue plugin"
# What it says of pods that it keeps back is an answer.
_GATES = "DynamicResources"
_PREEMPTS = re.compile(
    r"found a potential placement for pod on node (\S+), preempting (\d+) victims$"
)
_VICTIMS = ("Preemptor Pod preempted victim Pod", "Victim Pod is already being deleted, skipping the API call for it")  # fmt: skip
_NEWS = frozenset({
    _SCORED, _BOUND, *_WAITS, _ERROR, _GATED, _BINDS_VOLUMES, *_VICTIMS, "Add event for node", "Delete event for node",
})  # fmt: skip
_SOURCES = (
    b" schedule_one.go:",
    b" scheduling_queue.go:",
    b" eventhandlers.go:",
    b" executor.go:",
    b" binder.go:",
)
_POLL_SECONDS = 0.002


class SilentError(TimeoutError):
    """kube-scheduler did not say what was waited for."""


class News(NamedTuple):
    """A line of the log that matters."""

    message: str
    fields: dict[str, str]


class Log:
    """The log of a running kube-scheduler, from its end on."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._file.seek(0, os.SEEK_END)
        self._rest = b""

    def close(self) -> None:
        """Read no further."""
        self._file.close()

    def news(self, seconds: float = 20.0) -> Iterator[News]:
        """What it prints from here on.

        Raises:
            SilentError: nothing that matters came within so many seconds.
        """
        gives_up_at = time.monotonic() + seconds
        while True:
            *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
            for line in lines:
                if (found := _read(line)) is not None:
                    gives_up_at = time.monotonic() + seconds
                    yield found
            if not lines:
                if time.monotonic() > gives_up_at:
                    raise SilentError(f"nothing for {seconds:g} s")
                time.sleep(_POLL_SECONDS)

    def wait_for_nodes(self, message: str, names: set[str]) -> None:
        """Return once it has seen all these nodes come, or go."""
        missing = set(names)
        if not missing:
            return
        for news in self.news():
            if news.message == message:
                missing.discard(news.fields["node"])
                if not missing:
                    return

    def wait_for_failure(self, pod: str) -> None:
        """Return once it has given up a pod that is gone."""
        for news in self.news():
            if news.message == _ERROR and news.fields.get("pod") == pod:
                return

    def answer(self, pod: str) -> Answer:
        """What it says of a pod that was just created, by ``namespace/name``."""
        scores: dict[str, dict[str, int]] = {}
        message, victims = "", set[str]()
        for news in self.news():
            if news.fields.get("pod", news.fields.get("preemptor")) != pod or _is_of_others(news):
                continue
            if news.message == _BINDS_VOLUMES:
                chosen = news.fields["node"]
                feasible = frozenset(scores) or frozenset({chosen})
                return Answer(chosen, feasible, scores, "", is_binding=True)
            if news.message == _SCORED:
                node = scores.setdefault(news.fields["node"], {})
                if points := int(news.fields["score"]):
                    node[news.fields["plugin"]] = points
            elif news.message == _BOUND:
                chosen = news.fields["node"]
                return Answer(chosen, frozenset(scores) or frozenset({chosen}), scores, "")
            elif news.message in _VICTIMS:
                victims.add(news.fields["victim"])
            else:
                message = _said(news)
            if message and (found := _pending(message, victims)):
                return found._replace(is_gated=news.message == _GATED)
        raise AssertionError  # the news never end


def _is_of_others(news: News) -> bool:
    """Whether a plugin keeps a pod back that is not asked about."""
    return news.message == _GATED and news.fields["plugin"] != _GATES


def _said(news: News) -> str:
    """Why it waits; anything that is no answer begins with ``error``."""
    if news.message == _GATED:
        return news.fields["status"]
    said = news.fields.get("err", NO_NODES)
    return said if news.message in _WAITS else f"error: {said}"


def _pending(message: str, victims: set[str]) -> Answer | None:
    """The answer, None while not all victims are told, which happens before or after the message."""
    answer = Answer(None, frozenset(), {}, message)
    found = _PREEMPTS.search(message)
    if found is None:
        return answer
    if len(victims) < int(found[2]):
        return None
    return answer._replace(nominated=found[1], victims=frozenset(victims))


def _read(line: bytes) -> News | None:
    # Most lines are of its HTTP client; they are not worth a look.
    if not any(source in line for source in _SOURCES):
        return None
    match = _LINE.match(line.decode(errors="replace"))
    if match is None or (message := _unquoted(match[1])) not in _NEWS:
        return None
    return News(message, {key: _unquoted(value) for key, value in _FIELD.findall(match[2])})


def _unquoted(text: str) -> str:
    return str(json.loads(text)) if text.startswith('"') else text
