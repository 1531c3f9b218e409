"""The bench of domains: everybody places the same stream, and what it counts is what fits."""

import pytest

from bench import domains

WAYS = domains.list_ways()


@pytest.mark.parametrize("way", list(WAYS))
def test_each_contestant_places_its_jobs_as_it_is_said_to(way: str) -> None:
    """Small jobs on an empty cluster all run, each gang within a domain of its level."""
    nodes = domains.draw_nodes(1, 2)
    for name, one in WAYS[way].items():
        cluster = domains.Cluster(nodes, one)
        for job in domains.draw_jobs(1, 12):
            if job.pods > 8:
                continue
            assert cluster.place(job), (name, job)
            rows = [row for _, row, _ in cluster.placed[-1][1]]
            assert len(rows) == job.pods
            if job.level:
                assert len({int(nodes.domain[job.level][row]) for row in rows}) == 1
        used = int(cluster.used.sum())
        freed = sum(gpus for _, _, gpus in cluster.placed[0][1])
        cluster.remove(0)
        assert cluster.used.sum() == used - freed


def test_a_job_that_does_not_fit_is_given_up_and_leaves_nothing() -> None:
    nodes = domains.draw_nodes(1, 1)
    for one in WAYS["own"].values():
        cluster = domains.Cluster(nodes, one)
        level = next(iter(nodes.domain))
        assert not cluster.place(domains.Job("huge", len(nodes.names) + 1, 8, level))
        assert cluster.place(domains.Job("fits", len(nodes.names), 8, level))
