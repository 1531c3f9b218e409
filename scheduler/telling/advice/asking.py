"""Answers questions about pods without changing the cluster."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduler.api.door.decisions import Hold
from scheduler.cycle.asking import Answers
from scheduler.plugins import table
from scheduler.plugins.contract import Judged
from scheduler.schema import columns as c
from scheduler.shapes import diagnosis
from scheduler.shapes.boards import Shape
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

_NO_ROWS: c.Ints = np.zeros(0, np.int64)


class Refused(NamedTuple):
    """Nodes that are refused for one reason.

    Attributes:
        rule: whose reason it is.
        rows: of the nodes, by rank.
        resolvable: of how many an eviction could help.
    """

    rule: str
    text: str
    rows: c.Ints
    resolvable: int


class Asking:
    """Asks the cycle of one cluster, one question after another."""

    def __init__(self, cluster: Cluster, answers: Answers) -> None:
        """The answers are of the cluster."""
        self.cluster, self.answers = cluster, answers

    def shape(self, pod: PodRecord) -> Shape | None:
        """What is asked of a pod again and again; None when something on it must be mended first."""
        return self.answers.get_unscored(pod)

    def judge_rows(
        self, shape: Shape, rows: c.Ints | None = None, pod: PodRecord | None = None
    ) -> Judged:
        """Rows, all by rank unless some are given, and their refusal bits; for a pod also by what is promised there."""
        boards = self.answers.boards
        rows = diagnosis.all_rows(self.cluster) if rows is None else rows
        bits = boards.refusals(shape, rows)
        if pod is not None and self.cluster.nominations:
            bits |= self.answers.promises.find_refusals(pod, rows, len(bits))
        return diagnosis.gather_refusals(self.cluster, shape, boards.world(shape), rows, bits)

    def takes(self, shape: Shape, row: int) -> bool:
        """Whether the node of a row takes a pod of a shape now."""
        return not self.answers.boards.refusals(shape, np.array([row], np.int64))[0, 0]

    def fitting(self, pod: PodRecord) -> c.Ints:
        """The rows on which a pod fits now, by rank; none when something on it must be mended first."""
        shape = self.shape(pod)
        if shape is None:
            return _NO_ROWS
        judged = self.judge_rows(shape, pod=pod)
        rows: c.Ints = judged.rows[judged.bits[0] == 0]
        return rows

    def fits(self, pod: PodRecord) -> bool:
        """Whether a pod fits on any node now."""
        return self.fitting(pod).size > 0

    def why_not(self, pod: PodRecord) -> Hold | None:
        """What the pod is told; None when it fits somewhere."""
        hold, shape = self.answers.explain_hold(pod), self.shape(pod)
        if hold is not None or shape is None:
            return hold
        # The cycle says nothing of a pod that others could make room for: it is tried instead.
        judged = self.judge_rows(shape, pod=pod)
        return Hold(pod.uid, diagnosis.sum_up(judged)) if judged.bits[0].all() else None

    def find_refusals(self, judged: Judged) -> list[Refused]:
        """Why nodes are refused, each for the first rule that refuses it: those of the most nodes first."""
        at = np.flatnonzero(judged.bits[0])
        part = judged._replace(rows=judged.rows[at], bits=judged.bits[:, at])
        found: list[Refused] = []
        for (positions, told), (rule, summary) in zip(
            table.tell(part), table.sum_up(part), strict=True
        ):
            texts = [text for text, _ in summary.reasons]
            # What is told of a node may say more than what is told of all of them.
            short = [
                max((one for one in texts if text.startswith(one)), key=len, default=text)
                for text in told.texts
            ]
            for text in dict.fromkeys(short):
                mine = told.which[:, [one == text for one in short]].any(axis=1)
                if mine.any():
                    rows = part.rows[positions[mine]]
                    found.append(
                        Refused(rule.name, text, rows, int((~told.unresolvable[mine]).sum()))
                    )
        return sorted(found, key=lambda one: (-one.rows.size, one.text))

    def on(self, row: int) -> list[PodRecord]:
        """The pods of the node of a row."""
        return list(self.cluster.pods_on.get(self.cluster.nodes.name_of(row), {}).values())

    def names(self, rows: c.Ints) -> list[str]:
        """The names of nodes."""
        return [self.cluster.nodes.name_of(row) for row in rows.tolist()]
