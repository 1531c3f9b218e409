"""Units that go as a whole: whom the search of a place puts back is what trying one after another says."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scheduler.disruption import units as room
from scheduler.kernels import preempt as kernel
from scheduler.schema import preempting as p
from tests import make

CPUS = 12


@st.composite
def nodes(draw: st.DrawFn) -> list[list[tuple[int, int, int]]]:
    """Of each node its units, the most important first: how many CPUs each of its pods asks, its priority, its cost."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        sizes = draw(st.lists(st.integers(1, 3), max_size=5))
        priorities = sorted(draw(st.lists(st.integers(-2, 2), min_size=5, max_size=5)))[::-1]
        found.append(
            [(size, priorities[i], draw(st.integers(0, 2))) for i, size in enumerate(sizes)]
        )
    return found


@given(nodes(), st.integers(1, CPUS), st.integers(1, 2))
def test_units_that_cost_anything_stay_first_as_long_as_the_pod_fits(
    placed: list[list[tuple[int, int, int]]], asked: int, n_pods: int
) -> None:
    cluster = make.cluster(nodes=[make.node(name=f"n{i}", cpu=CPUS) for i in range(len(placed))])
    for i, there in enumerate(placed):
        for k, (size, priority, _) in enumerate(there):
            for j in range(n_pods):
                name = f"p-{i}-{k}-{j}"
                cluster.see_pod(make.pod(name=name, node=f"n{i}", cpu=size, priority=priority))
    asker = cluster.see_pod(make.pod(name="asker", cpu=asked, priority=10))
    assert asker is not None
    cycle = make.cycle(cluster=cluster)
    shape = cycle.get_unscored(asker)
    assert shape is not None
    rows = np.array([cluster.nodes.find_row(f"n{i}") for i in range(len(placed))], np.int64)
    every, _ = room.find_units(cluster, asker, rows)
    sizes = [n_pods] * sum(map(len, placed))
    uid_of = {pod.row: pod.uid for there in cluster.pods_on.values() for pod in there.values()}
    of_name = {uid: row for row, uid in uid_of.items()}
    pods = [
        of_name[f"default/p-{i}-{k}-{j}"]
        for i, there in enumerate(placed)
        for k in range(len(there))
        for j in range(n_pods)
    ]
    assert sorted(every.pods.tolist()) == sorted(pods)
    units = p.Units(
        rows=rows,
        first=np.cumsum([0, *map(len, placed)]),
        begins=np.cumsum([0, *sizes]),
        pods=np.array(pods, np.int64),
        cost=np.array([one[2] for there in placed for one in there], np.int64),
    )
    search = p.Search(
        words=np.zeros(rows.size, np.int64),
        gains=np.zeros((0, 0), np.int64),
        fewest=np.zeros(0, np.int64),
        order=np.zeros(len(sizes), np.int64),
        goes=np.zeros(len(sizes), np.bool_),
        figures=p.make_figures(cluster.nodes.capacity),
        refused=np.zeros((1, cluster.nodes.capacity), np.int64),
    )
    before = cluster.nodes.columns.requested.copy()
    world = cycle.boards.get_world(shape)
    kernel.search_places(world, shape.ask, shape.counted.arrays, units, search)
    assert (cluster.nodes.columns.requested == before).all()
    at = 0
    for row, there in zip(rows.tolist(), placed, strict=True):
        goes = search.goes[at : at + len(there)].tolist()
        code = int(search.figures[p.PLACE_CODE, row])
        at += len(there)
        if not there:
            assert code == p.NONE
            continue
        expected = _try(there, asked, n_pods)
        assert goes == expected
        gone = [one for one, is_gone in zip(there, goes, strict=True) if is_gone]
        assert code == (p.ENOUGH if gone else p.NOT_ASKED)
        if gone:
            figures = search.figures[:, row]
            assert figures[p.PLACE_COST] == sum(cost for *_, cost in gone)
            assert figures[p.PLACE_TOP] == max(priority for _, priority, _ in gone)
            assert figures[p.PLACE_COUNT] == n_pods * len(gone)


def _try(there: list[tuple[int, int, int]], asked: int, n_pods: int) -> list[bool]:
    """Whether each unit goes: those that cost anything are put back first, of these and of the others the most important."""
    free, goes = CPUS, [True] * len(there)
    for i in sorted(range(len(there)), key=lambda i: (there[i][2] == 0, i)):
        if n_pods * there[i][0] + asked <= free:
            free -= n_pods * there[i][0]
            goes[i] = False
    return goes
