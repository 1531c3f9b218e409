"""Random worlds of queues, quotas and workloads, asked of the real Kueue and of Evenkeel.

- ``worlds``: ClusterQueues, cohorts and flavors, and the workloads that come to them step by step, from a seed; parts of
  it are ``quotas`` and ``workloads``, and ``slices`` of elastic jobs.
- ``outcomes``: what becomes of the workloads of a step, in one form for either side.
- ``program``: Kueue's controllers and scheduler on a real API server, with a gate before the scheduler.
- ``oracle``: a world given to it, step by step; it also plays the jobs, which let go of their quota when they are evicted.
- ``compare``: what is the same and what is not; ``known``: differences that stay, with a reason each.
- ``ours``: the answer of Evenkeel's queues; ``newer``: that of the twin of rules that are newer than the Kueue that is asked.
- ``run``: many worlds, each asked twice, as Kueue itself chooses by chance here and there.
- ``throughput``: how many workloads Kueue admits a second, in its own performance test's setting.

Time passes in rounds, so that two runs are the same. In a round the scheduler goes on until nothing changes any more;
then it is kept from its queues, those that are evicted let go of their quota, and the next round begins, with all that
wait in their queues again. A step is over once a round evicts nobody. The clock that Kueue orders by stands still in a
round, and the time of creation and the uid of each object are the world's. What a cycle has written is known before the
next one begins.

    make differential ARGS="kueue --cases 20 --seed 7 --fair"
    make differential ARGS="kueue --cases 20 --seed 7 --slices"
"""
