"""Claims that keep a pod off every node: a claim is missing, lost, of another pod, or must be bound first.

kube-scheduler finds such claims before it evaluates nodes, in the PreFilter of its rules about volumes.
"""

from __future__ import annotations

import numpy as np

from scheduler.plugins.contract import (
    Change,
    Domain,
    Held,
    Hint,
    Judged,
    Reason,
    RowReasons,
    Rule,
    Standing,
    Tally,
)
from scheduler.plugins.contract import concerns_no_template as concerns
from scheduler.plugins.refusal import Refusal
from scheduler.plugins.volumes import refusals as words
from scheduler.plugins.volumes.everywhere import EVERYWHERE
from scheduler.state.cluster import Cluster


def _read_refusal(pod: Standing, _: Cluster) -> Refusal | None:
    return pod.storage.refusal if pod.storage else None


def _list_tallies(_: Refusal, __: Cluster) -> tuple[Tally, ...]:
    return (Tally(count=EVERYWHERE, gain=0),)


def _tell_reasons(judged: Judged) -> RowReasons:
    storage = judged.asked.storage
    text = storage.refusal.text if storage and storage.refusal else ""
    n = judged.rows.size
    return RowReasons((text,), np.ones((n, 1), np.bool_), np.ones(n, np.bool_))


def _make_hint(_: Held) -> Hint:
    """Another class was added. Pods that name a changed claim or volume are tried again in any case."""
    return Hint(anywhere=((Change.STORAGE, None),))


RULE = Rule(
    name=words.BINDING,
    reasons=(Reason(words.IMMEDIATE, resolvable=False),),
    domain=Domain(concerns=concerns, needs=_read_refusal, tallies=_list_tallies),
    tell=_tell_reasons,
    texts=(
        words.NOT_FOUND,
        words.NOT_MADE,
        words.LOST,
        words.DELETING,
        words.OF_OTHERS,
        words.IMMEDIATE,
        words.NO_VOLUME,
        words.NO_CLASS_NAME,
        words.NO_CLASS,
        words.NO_MODE,
        words.NO_VOLUME_NAME,
    ),
    hint=_make_hint,
    is_of_pod=True,
)
