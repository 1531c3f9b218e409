"""Of many units that may go for a group the dearest stay, and no extra pod stays of a group that goes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from scheduler.api import names
from scheduler.api.groups.definitions import GroupKey
from scheduler.disruption.cleared import Cleared, Cost
from scheduler.disruption.dearest import Tries, choose_units, spare_dearest
from scheduler.disruption.elastic import choose_extras, list_elastic
from scheduler.disruption.group_units import Unit, list_units
from scheduler.disruption.weighing import sum_costs
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity, Team, make_entity
from tests import make

_GANG = "gang.scheduling.koordinator.sh/"
_FREE = Cost(0, 0, 0, 0.0, 0, ())


@dataclass
class Fake:
    """A place at which a group fits if any pod goes.

    Attributes:
        cluster: the pods at the place.
        gone: the units that went at each try that cleared the place.
    """

    cluster: Cluster
    gone: list[list[Unit]] = field(default_factory=list)

    def make_tries(self) -> Tries:
        return Tries(could_fit=bool, fits=bool, clear=self._clear)

    def clear_all(self, units: Sequence[Unit], n_budgets: int) -> Cleared:
        """Let all units go, of which so many pods violate a budget."""
        cost = _FREE._replace(budgets=n_budgets, pods=len(units))
        return Cleared((), tuple(units), cost, np.zeros(0, np.bool_))

    def _clear(self, units: Sequence[Unit]) -> Cleared:
        self.gone.append(list(units))
        hours = {pod.uid: 0.0 for unit in units for pod in unit.pods}
        cost = sum_costs(self.cluster, units, hours)
        return Cleared((), tuple(units), cost, np.zeros(0, np.bool_))


def make_group(cluster: Cluster) -> Entity:
    """Make a group of like pods."""
    cluster.see_pod(make.pod(name="member", priority=5))
    pod = cluster.pods["default/member"]
    return make_entity(GroupKey("", "", "group"), Team("", 1, (pod,), template=pod.template))


@pytest.mark.parametrize(("n_budgets", "n_go"), [(0, 20), (1, 1)])
def test_many_units_are_tried_elsewhere_for_like_pods_only_if_a_budget_may_be_spared(
    n_budgets: int, n_go: int
) -> None:
    cluster = make.cluster(nodes=[make.node(name="n", cpu=999)])
    for i in range(20):
        cluster.see_pod(make.pod(name=f"low-{i:02}", cpu=1, node="n"))
    units = list_units(cluster, cluster.pods.values(), 5)
    fake = Fake(cluster)
    found = fake.clear_all(units, n_budgets)
    spared = spare_dearest(cluster, make_group(cluster), found, units, fake.make_tries())
    assert len(spared.units) == n_go


def test_pods_of_an_elastic_group_stay_where_cheaper_ones_may_go() -> None:
    """By their priority they are dearer than pods by themselves, though any of them goes without its group."""
    cluster = make.cluster(nodes=[make.node(name="n", cpu=999)])
    words = {f"{_GANG}name": "elastic", f"{_GANG}min-available": "2"}
    for i in range(20):
        pod = make.pod(name=f"w{i:02}", cpu=1, node="n", priority=3, annotations=words)
        cluster.see_pod(pod)
    for i in range(3):
        cluster.see_pod(make.pod(name=f"low-{i}", cpu=1, node="n", priority=1))
    units = list_units(cluster, cluster.pods.values(), 5)
    fake = Fake(cluster)
    found = fake.clear_all(units, 1)
    spare_dearest(cluster, make_group(cluster), found, units, fake.make_tries())
    (gone,) = fake.gone
    assert [pod.priority for unit in gone for pod in unit.pods] == [1]


def test_no_extra_pod_stays_of_a_group_that_goes() -> None:
    group, other = GroupKey("", "", "a"), GroupKey("", "", "b")
    core, extra = Unit((), group), Unit((), group, is_extra=True)
    stays = Unit((), other, is_extra=True)
    assert choose_units([core, stays, extra], lambda gone: core in gone, 100) == [core, extra]


def make_ranked() -> Cluster:
    """Make a group of three pods with ranks, of which two are the minimum, each on a node of its own."""
    cluster = make.cluster(nodes=[make.node(name=f"n{i}", cpu=4) for i in range(3)])
    words = {f"{_GANG}name": "ranked", f"{_GANG}min-available": "2"}
    for i in range(3):
        ranked = words | {names.GANG_INDEX: str(i)}
        cluster.see_pod(make.pod(name=f"w{i}", cpu=4, node=f"n{i}", annotations=ranked))
    return cluster


def list_names(units: Sequence[Unit], *, is_extra: bool) -> list[str]:
    return [pod.name for unit in units if unit.is_extra == is_extra for pod in unit.pods]


def test_a_group_with_ranks_loses_the_last_ones_wherever_they_are() -> None:
    cluster = make_ranked()
    units = list_units(cluster, cluster.pods.values(), 5)
    divided = choose_extras(units, list_elastic(cluster, units), {"n0"})
    assert list_names(divided, is_extra=True) == ["w2"]
    assert list_names(divided, is_extra=False) == ["w0", "w1"]


def test_a_pod_that_is_being_evicted_is_beyond_the_minimum() -> None:
    """The first rank leaves, so the others are the minimum: neither goes without the other."""
    cluster = make_ranked()
    cluster.nominations.send_away(["default/w0"], "somebody")
    units = list_units(cluster, cluster.pods.values(), 5)
    assert list_names(units, is_extra=True) == ["w0"]
    assert list_names(units, is_extra=False) == ["w1", "w2"]
