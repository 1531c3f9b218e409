"""Which pods must end for another pod to fit, found by trials; no more pods than are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from scheduler.disruption.units import find_costs
from scheduler.shapes.boards import Shape
from scheduler.state.pods import PodRecord
from scheduler.telling.advice.asking import Asking

# Pods of other nodes that are looked at for one node, and pods that end already, at most.
_ELSEWHERE_MAX, _LEAVING_MAX = 200, 200


class Ending(NamedTuple):
    """Pods whose end would let another in; of none of them could be said that it may stay.

    Attributes:
        row: the node that would take it.
        pods: the most important first.
        share: what they hold, in parts of a node.
        violations: how many of them a PodDisruptionBudget protects.
    """

    row: int
    pods: tuple[PodRecord, ...]
    share: float
    violations: int

    @property
    def cost(self) -> tuple[int, int, int, float, int]:
        """Cheaper is less: whom budgets protect, the highest priority, how many there are, how much they hold."""
        most = max(pod.priority for pod in self.pods)
        return self.violations, most, len(self.pods), self.share, self.row


def leaving(asking: Asking, shape: Shape) -> tuple[PodRecord, ...]:
    """Pods that end already and whose end will let a pod in; none when it will not."""
    going = [pod for pod in asking.cluster.pods.values() if pod.deleting and pod.node]
    if not going or len(going) > _LEAVING_MAX:
        return ()
    return _needed(asking, going, lambda: _fits_anywhere(asking, shape))


def on(
    asking: Asking, shape: Shape, row: int, may_end: Callable[[PodRecord], bool]
) -> Ending | None:
    """The pods that would have to end for the node of a row to take a pod; None when that would not help."""
    pods = [pod for pod in _behind(asking, shape, row) if may_end(pod)]
    if not pods:
        return None

    def fits() -> bool:
        return asking.takes(shape, row)

    def share(pod: PodRecord) -> float:
        return _share(asking, pod, row)

    costs = find_costs(asking.cluster, pods)
    # What is put back first stays: whom budgets protect, the important, then the large.
    pods.sort(key=lambda pod: (-costs[pod.uid], -pod.priority, -share(pod), pod.key))
    needed = _needed(asking, pods, fits)
    found = [needed]
    if len(needed) > 1:
        # Where the small stay and not the large, fewer may be enough.
        small = sorted(pods, key=lambda pod: (-costs[pod.uid], -pod.priority, share(pod), pod.key))
        found += [_single(asking, pods, fits), _needed(asking, small, fits)]
    endings = [
        Ending(row, some, sum(map(share, some)), sum(costs[pod.uid] for pod in some))
        for some in found
        if some
    ]
    return min(endings, key=lambda one: one.cost, default=None)


def lessen(asking: Asking, shape: Shape, found: Ending) -> Ending:
    """Fewer of the pods of an ending, where the end of these lets the pod in on another node."""
    needed = _needed(asking, found.pods, lambda: _fits_anywhere(asking, shape))
    if len(needed) == len(found.pods):
        return found
    with asking.cluster.trial() as trial:
        for pod in needed:
            trial.take_away(pod.uid)
        judged = asking.judge_rows(shape)
        row = int(judged.rows[judged.bits[0] == 0][0])
    costs = find_costs(asking.cluster, needed)
    share = sum(_share(asking, pod, row) for pod in needed)
    return Ending(row, needed, share, sum(costs.values()))


def _fits_anywhere(asking: Asking, shape: Shape) -> bool:
    return not asking.judge_rows(shape).bits[0].all()


def _needed(
    asking: Asking, pods: Iterable[PodRecord], fits: Callable[[], bool]
) -> tuple[PodRecord, ...]:
    """Those of some pods that have to go; in the order given each stays that may. None when all are not enough."""
    going = list(pods)
    with asking.cluster.trial() as trial:
        for pod in going:
            trial.take_away(pod.uid)
        if not fits():
            return ()
        needed = []
        for pod in going:
            trial.put_back(pod.uid)
            if not fits():
                trial.take_away(pod.uid)
                needed.append(pod)
        return tuple(needed)


def _single(
    asking: Asking, pods: Iterable[PodRecord], fits: Callable[[], bool]
) -> tuple[PodRecord, ...]:
    """The least important pod whose end alone would be enough, and of several the one that holds the least; or none."""
    with asking.cluster.trial() as trial:
        for pod in reversed(list(pods)):
            trial.take_away(pod.uid)
            if fits():
                return (pod,)
            trial.put_back(pod.uid)
    return ()


def _behind(asking: Asking, shape: Shape, row: int) -> list[PodRecord]:
    """The pods of a node, and those of its domains that are counted against a pod there."""
    cluster = asking.cluster
    asking.takes(shape, row)  # what is counted is up to date
    found = asking.on(row)
    others = [
        pod for other in shape.counted.against(row).tolist() if other != row
        for pod in asking.on(other)
    ]  # fmt: skip
    if len(others) <= _ELSEWHERE_MAX:
        for pod in others:
            before = shape.counted.versions()
            with cluster.trial() as trial:
                trial.take_away(pod.uid)
                if shape.counted.versions() != before:
                    found.append(pod)
    return found


def _share(asking: Asking, pod: PodRecord, row: int) -> float:
    nodes = asking.cluster.nodes
    total = 0.0
    for resource, amount in pod.template.requests.amounts:
        offered = int(nodes.columns.allocatable[nodes.find_row_asked(resource), row])
        total += min(1.0, amount / offered) if offered else 0.0
    return total
