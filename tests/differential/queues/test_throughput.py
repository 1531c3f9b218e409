"""What is measured is of the sizes that Kueue's own performance test has."""

from __future__ import annotations

from collections import Counter

from tests.differential.queues.throughput import make_workloads


def test_each_queue_gets_its_share_of_each_class() -> None:
    shares = Counter(
        (one["spec"]["queueName"], one["spec"]["priority"]) for one in make_workloads(600)
    )
    by_queue = {queue: [shares[queue, rank] for rank in (50, 100, 200)] for queue, _ in shares}
    assert len(by_queue) == 30
    assert all(shares == [14, 4, 2] for shares in by_queue.values())


def test_what_is_more_important_is_larger() -> None:
    for one in make_workloads(300):
        (pod_set,) = one["spec"]["podSets"]
        (container,) = pod_set["template"]["spec"]["containers"]
        cpu = int(container["resources"]["requests"]["cpu"])
        assert {50: 1, 100: 5, 200: 20}[one["spec"]["priority"]] == cpu
