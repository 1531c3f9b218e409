"""Answers for who judges a cluster as it is."""

from __future__ import annotations

from scheduler.engine.answers.inside import Inside
from scheduler.engine.questions import auditing as ask
from scheduler.measure import figures
from scheduler.measure.figures import Figures


def measure_by(inside: Inside, question: ask.FiguresBy) -> Figures:
    """What every node has in use, free and stranded."""
    return figures.of_cluster(inside.cluster, question.typical)


def count_empty(inside: Inside, question: ask.EmptyNodes) -> int:
    """How many nodes have no pod but their own."""
    return figures.count_empty(inside.cluster, question.own)
