"""Other queues of KAI than those of the baseline: which queues and which pods have more or less by the change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from scheduler.api import wire
from scheduler.simulate.changes.quotas import By

Json = dict[str, Any]
_GONE = "is no longer there"


class _Fate(NamedTuple):
    """What becomes of a pod.

    Attributes:
        namespace, name: of the pod.
        node: where it runs, or will run once others have left; empty for one that waits or is evicted.
        by: the pod for which it is evicted; empty for none.
        message: why it waits.
    """

    namespace: str
    name: str
    node: str = ""
    by: str = ""
    message: str = ""


class Moment(NamedTuple):
    """A result of a simulation.

    Attributes:
        result: the result.
        pods: all pods that were there at its start.
    """

    result: Json
    pods: Sequence[wire.Pod]


def compare(before: Moment, after: Moment, by: By) -> Json | None:
    """Compare the queues of KAI and the pods of two results of a simulation; None if neither has such queues.

    Returns:
        ``by``, what makes the difference; ``queues``: those that differ, each as it is before and after; and ``pods``:
        those that have a node in one of the two only. A pod that will have one once others have left has it already.
    """
    olds, news = (one.result["kaiQueues"] for one in (before, after))
    if not (olds or news):
        return None
    return {
        "by": str(by),
        "queues": list(_compare_queues(olds, news)),
        "pods": list(_compare_pods(_list_fates(before), _list_fates(after))),
    }


def _compare_queues(before: Sequence[Json], after: Sequence[Json]) -> Iterator[Json]:
    olds, news = ({one["name"]: one for one in some} for some in (before, after))
    for name in dict.fromkeys((*news, *olds)):
        if olds.get(name) != news.get(name):
            yield {"name": name, "before": olds.get(name), "after": news.get(name)}


def _compare_pods(before: Mapping[str, _Fate], after: Mapping[str, _Fate]) -> Iterator[Json]:
    for uid in dict.fromkeys((*after, *before)):
        old = before[uid] if uid in before else after[uid]._replace(node="")
        new = after[uid] if uid in after else old._replace(node="", by="", message=_GONE)
        if bool(old.node) != bool(new.node):
            yield {
                "namespace": new.namespace,
                "name": new.name,
                "change": "gains" if new.node else "loses",
                "node": new.node or None,
                "by": new.by or None,
                "message": "" if new.node or new.by else new.message,
            }


def _list_fates(moment: Moment) -> dict[str, _Fate]:
    """List by uid what becomes of the pods that run, of those that are decided about, and of those evicted for them."""
    fates: dict[str, _Fate] = {}
    for pod in moment.pods:
        meta = pod.metadata
        fates[meta.uid] = _Fate(meta.namespace, meta.name, pod.spec.node_name or "")
    for row in moment.result["pods"]:
        node, why = row["node"] or row["nominated"] or "", row["unschedulable"] or row["message"]
        fates[row["uid"]] = _Fate(row["namespace"], row["name"], node, "", why)
    for row in moment.result["pods"]:
        for victim in row["victims"]:
            by = f"{row['namespace']}/{row['name']}"
            fates[victim["uid"]] = _Fate(victim["namespace"], victim["name"], "", by)
    return fates
