"""The columns of pods that have a node say what decisions read of each."""

import pytest

from scheduler.api import wire
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from tests import make


def seen(cluster: Cluster, pod: wire.Pod, start: str | None) -> PodRecord:
    pod.status.start_time = start
    record = cluster.see_pod(pod)
    assert record is not None
    return record


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("1970-01-01T00:01:00Z", 60),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:01:00", c.NOT_STARTED),
        ("yesterday", c.NOT_STARTED),
        ("", c.NOT_STARTED),
        (None, c.NOT_STARTED),
    ],
)
def test_a_pod_starts_when_its_status_says_so_in_a_time_that_means_one_moment(
    text: str | None, start: int
) -> None:
    cluster = make.cluster(nodes=[make.node(name="n")])
    record = seen(cluster, make.pod(name="p", node="n"), text)
    assert cluster.ledger.pods.columns.start[record.row] == start


def test_a_pod_that_starts_or_changes_its_priority_keeps_its_row() -> None:
    cluster = make.cluster(nodes=[make.node(name="n")])
    bound = seen(cluster, make.pod(name="p", node="n"), None)
    started = seen(cluster, make.pod(name="p", node="n", priority=7), "1970-01-01T00:00:09Z")
    pods = cluster.ledger.pods.columns
    assert started.row == bound.row
    assert (pods.node[bound.row], pods.priority[bound.row], pods.start[bound.row]) == (
        cluster.nodes.find_row("n"),
        7,
        9,
    )


def test_pods_of_a_node_that_is_not_there_are_on_no_row_until_it_comes() -> None:
    cluster = make.cluster(nodes=[make.node(name="other")])
    record = seen(cluster, make.pod(name="p", node="late"), None)
    node = cluster.ledger.pods.columns.node
    assert node[record.row] == -1
    cluster.see_node(make.node(name="late"))
    assert node[record.row] == cluster.nodes.find_row("late")
    cluster.drop_node("late")
    assert node[record.row] == -1


def test_the_row_of_a_pod_that_left_is_the_next_ones() -> None:
    """Else the table grows for ever in a cluster in which pods come and go."""
    cluster = make.cluster(nodes=[make.hami_node(name="n", cards=2)])
    rows = set()
    for i in range(300):
        record = seen(cluster, make.pod(name=f"p{i}", node="n", gpu=1 + i % 2, gpumem=10), None)
        rows.add(record.row)
        cluster.drop_pod(record.uid)
    assert rows == {0}
    assert cluster.ledger.pods.ends[1] <= 3
