"""Questions about pods that leave the cluster unchanged."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduler.api.door.decisions import Hold
from scheduler.cycle.asking import Answers
from scheduler.devices.table import Devices
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
        rule: the rule that gives the reason.
        rows: the rows of the nodes, by rank.
        resolvable: on how many of the nodes an eviction could help.
    """

    rule: str
    text: str
    rows: c.Ints
    resolvable: int


class Asking:
    """Asks the cycle of one cluster."""

    def __init__(self, cluster: Cluster, answers: Answers) -> None:
        """``answers`` belong to ``cluster``."""
        self.cluster, self.answers = cluster, answers

    @property
    def devices(self) -> Devices:
        """The drivers and families of devices."""
        return self.cluster.nodes.devices

    def make_shape(self, pod: PodRecord) -> Shape | None:
        """Make the shape of a pod, which several questions use; None if a mistake on the pod must be corrected first."""
        return self.answers.get_unscored(pod)

    def judge_rows(
        self, shape: Shape, rows: c.Ints | None = None, pod: PodRecord | None = None
    ) -> Judged:
        """Find the refusal bits of the given rows, or of all rows by rank.

        With a ``pod`` the bits also tell where room is promised to other pods.
        """
        boards = self.answers.boards
        rows = diagnosis.list_rows(self.cluster) if rows is None else rows
        bits = boards.find_refusals(shape, rows)
        if pod is not None and self.cluster.nominations:
            bits |= self.answers.promises.find_refusals(pod, rows, len(bits))
        return diagnosis.gather_refusals(self.cluster, shape, boards.get_world(shape), rows, bits)

    def takes(self, shape: Shape, row: int) -> bool:
        """Whether the node of a row takes a pod of a shape now."""
        return not self.answers.boards.find_refusals(shape, np.array([row], np.int64))[0, 0]

    def find_fitting(self, pod: PodRecord) -> c.Ints:
        """Find the rows on which a pod fits now, by rank; none if a mistake on the pod must be corrected first."""
        shape = self.make_shape(pod)
        if shape is None:
            return _NO_ROWS
        judged = self.judge_rows(shape, pod=pod)
        rows: c.Ints = judged.rows[judged.bits[0] == 0]
        return rows

    def fits(self, pod: PodRecord) -> bool:
        """Whether a pod fits on any node now."""
        return self.find_fitting(pod).size > 0

    def find_hold(self, pod: PodRecord) -> Hold | None:
        """Find why a pod is pending; None if it fits on a node."""
        hold, shape = self.answers.explain_hold(pod), self.make_shape(pod)
        if hold is not None or shape is None:
            return hold
        # The cycle gives no reason for a pod for which others could make room, because it tries to place such a pod.
        judged = self.judge_rows(shape, pod=pod)
        return Hold(pod.uid, diagnosis.sum_up_reasons(judged)) if judged.bits[0].all() else None

    def find_refusals(self, judged: Judged) -> list[Refused]:
        """Find why nodes are refused, by the first rule that refuses each node; reasons of the most nodes come first."""
        at = np.flatnonzero(judged.bits[0])
        part = judged._replace(rows=judged.rows[at], bits=judged.bits[:, at])
        found: list[Refused] = []
        for (positions, told), (rule, summary) in zip(
            table.tell_reasons(part), table.sum_up_reasons(part), strict=True
        ):
            texts = [text for text, _ in summary.reasons]
            # The text about one node may be shorter than the text about all nodes that begins with it.
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

    def list_pods(self, row: int) -> list[PodRecord]:
        """List the pods on the node of a row."""
        return list(self.cluster.pods_on.get(self.cluster.nodes.find_name(row), {}).values())

    def list_names(self, rows: c.Ints) -> list[str]:
        """List the names of nodes."""
        return [self.cluster.nodes.find_name(row) for row in rows.tolist()]
