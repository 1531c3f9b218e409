"""Which pods must end for another pod to fit, found by trials; no more pods than are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from scheduler.disruption.importance import Importance, find_importance, rank_pods
from scheduler.shapes.boards import Shape
from scheduler.state.pods import PodRecord
from scheduler.telling.advice.asking import Asking

# The most pods on other nodes that are tried for one node, and the most ending pods that are tried.
_ELSEWHERE_MAX, _LEAVING_MAX = 200, 200


class Ending(NamedTuple):
    """Pods after whose end another pod would fit; none of them could be left out.

    Attributes:
        row: the row of the node that would take the other pod.
        pods: the pods, the most important first.
        share: what the pods hold, in parts of a node.
        importance: how important the pods are together.
    """

    row: int
    pods: tuple[PodRecord, ...]
    share: float
    importance: Importance

    @property
    def cost(self) -> tuple[Importance, int, float, int]:
        """The sort key, less for a cheaper ending: importance, number of pods, share, row."""
        return self.importance, len(self.pods), self.share, self.row


def find_leaving(asking: Asking, shape: Shape) -> tuple[PodRecord, ...]:
    """Find the pods that are ending already and after whose end a pod fits; none if it does not fit then."""
    going = [pod for pod in asking.cluster.pods.values() if pod.deleting and pod.node]
    if not going or len(going) > _LEAVING_MAX:
        return ()
    return _find_needed(asking, going, lambda: _fits_anywhere(asking, shape))


def find_ending(
    asking: Asking, shape: Shape, row: int, may_end: Callable[[PodRecord], bool]
) -> Ending | None:
    """Find the pods that would have to end so that the node of a row takes a pod; None if their end would not help."""
    pods = [pod for pod in _list_opposing_pods(asking, shape, row) if may_end(pod)]
    if not pods:
        return None

    def fits() -> bool:
        return asking.takes(shape, row)

    def share(pod: PodRecord) -> float:
        return _measure_share(asking, pod, row)

    rank_of = rank_pods(asking.cluster, pods)
    # Pods are put back in this order, and stay if they can: important pods first, then large pods.
    pods.sort(key=lambda pod: (rank_of[pod.uid], -share(pod), pod.key))
    needed = _find_needed(asking, pods, fits)
    found = [needed]
    if len(needed) > 1:
        # If small pods are put back before large pods, fewer pods may have to end.
        small = sorted(pods, key=lambda pod: (rank_of[pod.uid], share(pod), pod.key))
        found += [_find_single(asking, pods, fits), _find_needed(asking, small, fits)]
    endings = [
        Ending(row, some, sum(map(share, some)), find_importance(asking.cluster, some))
        for some in found
        if some
    ]
    return min(endings, key=lambda one: one.cost, default=None)


def lessen_ending(asking: Asking, shape: Shape, found: Ending) -> Ending:
    """Drop pods from an ending, if the pod fits on another node after the end of fewer pods."""
    needed = _find_needed(asking, found.pods, lambda: _fits_anywhere(asking, shape))
    if len(needed) == len(found.pods):
        return found
    with asking.cluster.trial() as trial:
        trial.take_away(*(pod.uid for pod in needed))
        judged = asking.judge_rows(shape)
        row = int(judged.rows[judged.bits[0] == 0][0])
    share = sum(_measure_share(asking, pod, row) for pod in needed)
    return Ending(row, needed, share, find_importance(asking.cluster, needed))


def _fits_anywhere(asking: Asking, shape: Shape) -> bool:
    return not asking.judge_rows(shape).bits[0].all()


def _find_needed(
    asking: Asking, pods: Iterable[PodRecord], fits: Callable[[], bool]
) -> tuple[PodRecord, ...]:
    """Find which of some pods have to go; pods stay in the given order if they can. Empty if all are not enough."""
    going = list(pods)
    with asking.cluster.trial() as trial:
        trial.take_away(*(pod.uid for pod in going))
        if not fits():
            return ()
        needed = []
        for pod in going:
            trial.put_back(pod.uid)
            if not fits():
                trial.take_away(pod.uid)
                needed.append(pod)
        return tuple(needed)


def _find_single(
    asking: Asking, pods: Iterable[PodRecord], fits: Callable[[], bool]
) -> tuple[PodRecord, ...]:
    """Find one pod whose end alone is enough, in the reverse of the order in which pods are put back; or none."""
    with asking.cluster.trial() as trial:
        for pod in reversed(list(pods)):
            trial.take_away(pod.uid)
            if fits():
                return (pod,)
            trial.put_back(pod.uid)
    return ()


def _list_opposing_pods(asking: Asking, shape: Shape, row: int) -> list[PodRecord]:
    """List the pods on a node, and the pods in the node's domains that tallies count against a pod on the node."""
    cluster = asking.cluster
    asking.takes(shape, row)  # brings the tallies of the shape up to date
    found = asking.list_pods(row)
    others = [
        pod for other in shape.counted.find_opposing_rows(row).tolist() if other != row
        for pod in asking.list_pods(other)
    ]  # fmt: skip
    if len(others) <= _ELSEWHERE_MAX:
        for pod in others:
            before = shape.counted.read_versions()
            with cluster.trial() as trial:
                trial.take_away(pod.uid)
                if shape.counted.read_versions() != before:
                    found.append(pod)
    return found


def _measure_share(asking: Asking, pod: PodRecord, row: int) -> float:
    nodes = asking.cluster.nodes
    total = 0.0
    for resource, amount in pod.template.requests.amounts:
        offered = int(nodes.columns.allocatable[nodes.find_row_asked(resource), row])
        total += min(1.0, amount / offered) if offered else 0.0
    return total
