"""A trial that is rolled back leaves no trace, and one that is committed leaves what was done in it."""

import copy
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.errors import BrokenInvariant
from scheduler.schema import columns as c
from scheduler.schema.handles import Handle
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from scheduler.state.pods import Life
from scheduler.state.trials import Trial
from tests import make, slices
from tests.model.wild import OFTEN, Wild

# What these say of a node follows from the node alone, not from what was learnt.
MODES = (Mode.LEAST_ALLOCATED, Mode.FIRST_FIT, Mode.GPU_PACKING)
_DEPTH_MAX = 3


def snapshot(world: Wild) -> dict[str, Any]:
    """All that a trial may touch: columns byte by byte, records, and what followers count."""
    cluster = world.cluster
    cluster.nodes.refresh_ranks()
    pods = cluster.ledger.pods.columns
    rows, holds = pods.free[[c.END_ROW, c.END_HOLDS]].tolist()
    # The table may have grown in the trial, with rows that nobody has used.
    assert not pods.holds[holds:].any()
    assert (pods.node[rows:] == -1).all()
    return {
        "nodes": {name: column.tobytes() for name, column in _named(cluster.nodes.columns)},
        "pools": {name: column.tobytes() for name, column in _named(cluster.nodes.columns.pools)},
        "cards": {name: column.tobytes() for name, column in _named(cluster.cards.columns)},
        "pods": [
            column[..., :rows].tobytes()
            for column in (pods.node, pods.priority, pods.start, pods.charge, pods.held)
        ],
        "holds": (pods.holds[:holds].tobytes(), pods.free.tobytes()),
        "records": list(cluster.pods.items()),
        "meanwhile": dict(cluster.roster.meanwhile),
        "away": dict(cluster.roster.away),
        "on": {node: list(there.items()) for node, there in cluster.pods_on.items() if there},
        "ports": copy.deepcopy((cluster.nodes.ports._held, dict(cluster.nodes.ports._rows))),
        "followed": {key: n for key, n in world.counted.pods.items() if n},
        "demand": copy.deepcopy(cluster.demand.list_known()),
    }


def _named(columns: Handle) -> list[tuple[str, Any]]:
    """List the columns by name; the pools are listed by themselves."""
    named = zip(columns.fields, columns.list_values(), strict=True)
    return [(name, column) for name, column in named if not isinstance(column, Handle)]


class Attempt:
    """Does things at random in trials, which are within each other, committed or rolled back."""

    def __init__(self, world: Wild, rng: random.Random) -> None:
        self.world, self.rng = world, rng

    def go(self, depth: int = 0) -> None:
        world, cluster, rng = self.world, self.world.cluster, self.rng
        before, in_flight = snapshot(world), dict(world.in_flight)
        with cluster.trial() as trial:
            for _ in range(rng.randrange(1, 8)):
                self._one_thing(trial, depth)
                checks.verify(cluster)
                assert world.counted.holds_for(cluster)
            if rng.random() < 0.4:
                if depth == 0:
                    self._put_all_back(trial)
                trial.commit()
                return
            tried, position = _figures(cluster), cluster.moved.position
        world.in_flight = in_flight
        assert snapshot(world) == before
        changed = {row for row, was in _figures(cluster).items() if tried[row] != was}
        moved = cluster.moved.list_since(position)
        assert moved is not None
        assert changed <= set(moved.tolist())

    def _one_thing(self, trial: Trial, depth: int) -> None:
        rng, cluster = self.rng, self.world.cluster
        match rng.randrange(8):
            case 0 | 1:
                self.world.scheduler_decides(rng)
            case 2:
                self.world.pod_is_assumed_anywhere(rng)
            case 3:
                self._forget()
            case 4 | 5:
                self._take_away(trial)
            case 6 if cluster.roster.away:
                self._put_back(trial, rng.choice(sorted(cluster.roster.away)))
            case 7 if depth < _DEPTH_MAX:
                self.go(depth + 1)

    def _forget(self) -> None:
        cluster = self.world.cluster
        assumed = [uid for uid, pod in cluster.pods.items() if pod.life == Life.ASSUMED]
        if assumed := sorted({*assumed} - cluster.roster.away.keys()):
            cluster.forget(uid := self.rng.choice(assumed))
            self.world.in_flight.pop(uid, None)

    def _take_away(self, trial: Trial) -> None:
        cluster, rng = self.world.cluster, self.rng
        away = cluster.roster.away
        placed = [uid for uid, pod in cluster.pods.items() if pod.node and uid not in away]
        if placed:
            trial.take_away(uid := rng.choice(placed))
            if rng.random() < 0.2:
                cluster.assume(uid, rng.choice(["node-0", "node-1", "never-seen"]), ())

    def _put_all_back(self, trial: Trial) -> None:
        for uid in sorted(self.world.cluster.roster.away):
            self._put_back(trial, uid)

    def _put_back(self, trial: Trial, uid: str) -> None:
        # It may have been put elsewhere.
        self.world.cluster.forget(uid)
        if uid in self.world.cluster.roster.away:
            trial.put_back(uid)


def _figures(cluster: Cluster) -> dict[int, bytes]:
    """What boards read of every node that placements change."""
    nodes, cards = cluster.nodes.columns, cluster.cards.columns
    figures = {}
    for row in cluster.nodes.rows.values():
        pools, rows = cluster.registers.list_pools(row), cluster.registers.list_card_rows(row)
        used = nodes.pools.used[:, list(pools)].tobytes() + cards.used[:, rows].tobytes()
        figures[row] = nodes.totals[:, row].tobytes() + used
    return figures


def next_placements(world: Wild, fresh: Cluster, config: Config) -> tuple[list[Any], list[Any]]:
    """Where all that wait would go: by boards that lived through all of it, and in a fresh cluster."""
    found = []
    for cluster, cycle in (
        (world.cluster, world.cycle),
        (fresh, make.cycle(cluster=fresh, config=config)),
    ):
        waiting = sorted(uid for uid, pod in cluster.pods.items() if make.is_waiting(pod))
        with cluster.trial():
            made = cycle.schedule([cluster.pods[uid] for uid in waiting])
        found.append([made.binds, sorted((hold.uid, hold.problem) for hold in made.holds)])
    return found[0], found[1]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([*OFTEN * 2, *["trial"] * 2 * len(OFTEN)]), st.integers(0, 2**20)
        ),
        min_size=10,
        max_size=50,
    ),
    st.sampled_from(MODES),
)
@settings(max_examples=slices.count_examples(150), deadline=None)
def test_any_events_and_trials_leave_the_columns_and_the_next_placements_of_a_fresh_build(
    happened: list[tuple[str, int]], mode: Mode
) -> None:
    played(happened, mode)


@pytest.mark.parametrize("seed", range(4))
def test_long_histories_with_trials_leave_the_columns_of_a_fresh_build(seed: int) -> None:
    rng = random.Random(seed)
    drawn = [rng.choice([*OFTEN, *["trial"] * len(OFTEN)]) for _ in range(250)]
    played([(name, rng.randrange(2**20)) for name in drawn], MODES[seed % len(MODES)])


def played(happened: list[tuple[str, int]], mode: Mode) -> None:
    config = Config(placement=Placement(mode=mode))
    world = Wild(config)
    for i, (name, seed) in enumerate(happened, start=1):
        if name == "trial":
            Attempt(world, random.Random(seed)).go()
        else:
            world.happen(name, seed)
        checks.verify(world.cluster)
        if i % 10 == 0 or i == len(happened):
            world.settle()
            fresh = world.expected(i)
            assert checks.take_fingerprint(world.cluster) == checks.take_fingerprint(fresh)
            found, expected = next_placements(world, fresh, config)
            assert found == expected


def full_node() -> tuple[Cluster, str]:
    """A node with room for one pod, and the uid of who has it."""
    cluster = make.cluster(nodes=[make.node(name="n", cpu="1")])
    pod = cluster.see_pod(make.pod(name="there", cpu="1", node="n"))
    assert pod is not None
    return cluster, pod.uid


def test_an_event_inside_a_trial_is_a_broken_invariant() -> None:
    cluster, uid = full_node()
    node = make.node(name="other")
    with cluster.trial():
        for event in (
            lambda: cluster.see_node(node),
            lambda: cluster.drop_node("n"),
            lambda: cluster.close_cards("n", closed=True),
            lambda: cluster.see_pod(make.pod(name="new")),
            lambda: cluster.drop_pod(uid),
        ):
            with pytest.raises(BrokenInvariant, match="inside a trial"):
                event()
    cluster.see_node(node)


def test_a_pod_that_is_away_keeps_the_outermost_trial_from_being_committed() -> None:
    """It would run on, and its node would be given away under it."""
    cluster, uid = full_node()
    with cluster.trial() as outer:
        with cluster.trial() as inner:
            inner.take_away(uid)
            inner.commit()
        with pytest.raises(BrokenInvariant, match="not put back"):
            outer.commit()
        outer.put_back(uid)
        outer.commit()
    assert cluster.pods[uid].life == Life.BOUND
    checks.verify(cluster)


def test_a_pod_fits_where_another_was_taken_away_and_nowhere_after_the_rollback() -> None:
    cluster, uid = full_node()
    waits = cluster.see_pod(make.pod(name="waits", cpu="1"))
    assert waits is not None
    cycle = make.cycle(cluster=cluster)
    assert not cycle.schedule([waits]).binds
    with cluster.trial() as trial:
        trial.take_away(uid)
        assert [bind.node for bind in cycle.schedule([waits]).binds] == ["n"]
    assert cluster.pods[waits.uid] is waits
    assert not cycle.schedule([waits]).binds
    assert cluster.pods[uid].node == "n"


def test_a_trial_is_ended_once_and_from_within() -> None:
    cluster, uid = full_node()
    outer = cluster.trial()
    inner = cluster.trial()
    with pytest.raises(BrokenInvariant, match="another is open"):
        outer.rollback()
    inner.rollback()
    with pytest.raises(BrokenInvariant, match="over"):
        inner.take_away(uid)
    outer.commit()
    with pytest.raises(BrokenInvariant, match="over"):
        outer.rollback()


@pytest.mark.parametrize("how", ["take_away", "put_back"])
def test_a_pod_that_is_not_there_is_not_taken_away_and_one_that_is_not_away_not_put_back(
    how: str,
) -> None:
    cluster, uid = full_node()
    with cluster.trial() as trial:
        if how == "take_away":
            trial.take_away(uid)
        with pytest.raises(BrokenInvariant):
            getattr(trial, how)(uid)


def test_a_pod_that_was_assumed_before_a_trial_and_forgotten_in_it_is_free_after_the_commit() -> (
    None
):
    cluster = make.cluster(nodes=[make.hami_node(name="n", cards=1)])
    pod = cluster.see_pod(make.pod(name="p", gpu=1, gpumem=100))
    assert pod is not None
    [bind] = make.cycle(cluster=cluster).schedule([pod]).binds
    assert bind.node == "n"
    with cluster.trial() as trial:
        cluster.forget(pod.uid)
        trial.commit()
    assert cluster.pods[pod.uid].life == Life.PENDING
    assert not cluster.cards.columns.used.any()
    pods = cluster.ledger.pods.columns
    assert np.count_nonzero(pods.node >= 0) == 0
    # Its row may be another's.
    assert pods.free[c.FREE_ROW] == pods.free[c.END_ROW] - 1
    assert cluster.pods_on == {}


def test_a_pod_that_is_on_two_nodes_in_a_trial_is_on_none_after_it() -> None:
    """What is promised to a pod may be entered twice while it is tried who fits beside."""
    cluster = make.cluster(nodes=[make.node(name=name, cpu="1") for name in "ab"])
    pod = cluster.see_pod(make.pod(name="p", cpu="1"))
    assert pod is not None
    with cluster.trial():
        for name in "ab":
            cluster.assume(pod.uid, name, ())
    assert cluster.pods[pod.uid] == pod
    checks.verify(cluster)


def test_a_pod_that_is_forgotten_as_if_is_assumed_again_with_what_the_watch_told_of_it() -> None:
    cluster = make.cluster(nodes=[make.node(name="n", cpu="1")])
    pod = cluster.see_pod(make.pod(name="p", cpu="1"))
    assert pod is not None
    assert make.cycle(cluster=cluster).schedule([pod]).binds
    cluster.see_pod(make.pod(name="p", cpu="1", labels={"seen": "late"}))
    with cluster.trial():
        cluster.forget(pod.uid)
        assert cluster.pods[pod.uid].labels == {"seen": "late"}
    assert cluster.pods[pod.uid].life == Life.ASSUMED
    cluster.forget(pod.uid)
    assert cluster.pods[pod.uid].labels == {"seen": "late"}


def test_only_what_lasts_counts_as_lasting() -> None:
    cluster, uid = full_node()
    lasting = cluster.moved.n_lasting
    for is_quiet in (False, True):
        with cluster.trial() as trial:
            trial.take_away(uid)
            with cluster.trial(is_quiet=is_quiet) as inner:
                inner.put_back(uid)
                if not is_quiet:
                    inner.commit()
        assert cluster.moved.n_lasting == lasting
    with cluster.trial(is_quiet=True) as trial:
        trial.take_away(uid)
    assert cluster.moved.n_lasting == lasting
    with cluster.trial() as trial:
        trial.take_away(uid)
        trial.put_back(uid)
        trial.commit()
    assert cluster.moved.n_lasting > lasting


def test_a_quiet_trial_tells_no_rows_keeps_nothing_and_lets_no_board_read() -> None:
    cluster, uid = full_node()
    waits = cluster.see_pod(make.pod(name="waits", cpu="1"))
    assert waits is not None
    cycle = make.cycle(cluster=cluster)
    shape = cycle.get_shape(waits)
    assert shape is not None
    cycle.boards.refresh(shape)
    position, before = cluster.moved.position, checks.take_fingerprint(cluster)
    with cluster.trial(is_quiet=True) as trial:
        trial.take_away(uid)
        assert cluster.moved.position > position
        with cluster.trial(), pytest.raises(BrokenInvariant, match="quiet"):
            cycle.boards.refresh(shape)
        with pytest.raises(BrokenInvariant, match="only rolled back"):
            trial.commit()
    assert cluster.moved.position == position
    assert checks.take_fingerprint(cluster) == before
    assert not cycle.schedule([waits]).binds
    cluster.drop_pod(uid)
    assert [bind.node for bind in cycle.schedule([waits]).binds] == ["n"]
