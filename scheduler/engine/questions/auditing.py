"""Questions of who judges a cluster as it is."""

from __future__ import annotations

from collections.abc import Container

from scheduler.engine.questions.contract import Question
from scheduler.measure.figures import Figures
from scheduler.measure.typical import Typical


class FiguresBy(Question[Figures], frozen=True):
    """What every node has in use, free and stranded, judged by these typical pods."""

    typical: Typical


class EmptyNodes(Question[int], frozen=True):
    """How many nodes have no pod but those that belong to them, whose uids are ``own``; of malformed nodes none."""

    own: Container[str]
