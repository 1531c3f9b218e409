"""Other queues of KAI than those of the baseline: which queues and which pods have more or less by the change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from scheduler.simulate.changes.quotas import By

Json = dict[str, Any]


class _Fate(NamedTuple):
    """What becomes of a pod.

    Attributes:
        row: names the pod.
        node: where it runs, or will run once others have left; empty for one that waits or is evicted.
        by: the pod for which it is evicted; empty for none.
        message: why it waits.
    """

    row: Json
    node: str
    by: str = ""
    message: str = ""


def compare(before: Json, after: Json, by: By) -> Json | None:
    """Compare the queues of KAI and the pods of two results of a simulation; None if neither has such queues.

    Returns:
        ``by``, what makes the difference; ``queues``: those that differ, each as it is before and after; and ``pods``:
        those that have a node in one of the two only. A pod that will have one once others have left has it already.
    """
    if not (before["kaiQueues"] or after["kaiQueues"]):
        return None
    return {
        "by": str(by),
        "queues": list(_compare_queues(before, after)),
        "pods": list(_compare_pods(_list_fates(before), _list_fates(after))),
    }


def _compare_queues(before: Json, after: Json) -> Iterator[Json]:
    olds, news = ({one["name"]: one for one in some["kaiQueues"]} for some in (before, after))
    for name in dict.fromkeys((*news, *olds)):
        if olds.get(name) != news.get(name):
            yield {"name": name, "before": olds.get(name), "after": news.get(name)}


def _compare_pods(before: Mapping[str, _Fate], after: Mapping[str, _Fate]) -> Iterator[Json]:
    for uid in dict.fromkeys((*after, *before)):
        # A pod that runs and of which nothing is decided is among neither.
        old, new = before.get(uid), after.get(uid)
        had, has = (one is None or bool(one.node) for one in (old, new))
        fate = new or old
        if had != has and fate is not None:
            yield {
                "namespace": fate.row["namespace"],
                "name": fate.row["name"],
                "change": "gains" if has else "loses",
                "node": (_find_node(new or old) if has else None) or None,
                "by": (new.by or None) if new is not None else None,
                "message": new.message if new is not None and not has else "",
            }


def _find_node(fate: _Fate | None) -> str:
    """Find the node of a pod that has one; of one that stays, it is the node that it would have left."""
    return "" if fate is None else fate.node or str(fate.row["node"] or "")


def _list_fates(result: Json) -> dict[str, _Fate]:
    """List by uid what becomes of the pods that are decided about, and of those that are evicted for them."""
    fates: dict[str, _Fate] = {}
    for pod in result["pods"]:
        node, why = pod["node"] or pod["nominated"] or "", pod["unschedulable"] or pod["message"]
        fates[pod["uid"]] = _Fate(pod, node, "", why)
    for pod in result["pods"]:
        for victim in pod["victims"]:
            fates[victim["uid"]] = _Fate(victim, "", f"{pod['namespace']}/{pod['name']}")
    return fates
