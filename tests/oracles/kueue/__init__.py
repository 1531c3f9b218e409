"""A slow, obvious twin of Kueue's admission cycle, to be read beside its Go code.

Source: kubernetes-sigs/kueue (Apache-2.0) at ff69552e: pkg/cache/scheduler, pkg/cache/queue, pkg/scheduler and
pkg/workload, written anew in plain dicts and ints, with the feature gates at their defaults. Left out are topologies,
MultiKueue, concurrent admission and devices of DRA.

- ``amounts``: quantities as whole numbers, where the largest one stands for "unlimited".
- ``tree``: quota and usage in the tree of cohorts; ``shares``: dominant resource shares in it.
- ``workloads``: what a Workload asks; ``limits``: what a LimitRange says of it; ``selectors``: labels and taints.
- ``world``: the snapshot that one cycle works on.
- ``slices``: workloads that take the place of others, and need only what they ask beyond those.
- ``assignments`` and ``flavors``: the choice of flavors; ``partial``: fewer pods.
- ``victims``, ``classical``, ``fair`` and ``preemption``: who goes.
- ``order``: who comes first; ``queues``: who waits where; ``usage``: what local queues used.
- ``cycle``: one cycle, and cycle after cycle; ``course``: what is kept in between.
- ``statuses``: what is written into Workloads.
- ``cases``: Kueue's tables in our words.

Where Go leaves an order to chance (maps, and sorting of equals), the twin goes by name. With admission fair sharing
the order of candidates is no order at all: usage counts within a cluster queue only and comes before priority, so that
three workloads of two queues may each come before the next one. What Kueue does then depends on how Go sorts.
"""
