"""A slow, obvious twin of Kueue's admission cycle, to be read beside its Go code.

Source: kubernetes-sigs/kueue (Apache-2.0) at ff69552e: pkg/cache/scheduler, pkg/cache/queue, pkg/scheduler and
pkg/workload, written anew in plain dicts and ints, with the feature gates at their defaults. Left out are topologies,
MultiKueue, concurrent admission, devices of DRA and slices of elastic jobs.

- ``amounts``: quantities as whole numbers, where the largest one stands for "unlimited".
- ``tree``: quota and usage in the tree of cohorts; ``shares``: dominant resource shares in it.
- ``workloads``: what a Workload asks; ``limits``: what a LimitRange says of it; ``selectors``: labels and taints.
- ``world``: the snapshot that one cycle works on.
- ``assignments`` and ``flavors``: the choice of flavors; ``partial``: fewer pods.
- ``preemption``, ``classical`` and ``fair``: who goes.
- ``order``: who comes first; ``queues``: who waits where; ``usage``: shares of local queues.
- ``cycle``: one cycle, and cycle after cycle.
- ``cases``: Kueue's tables in our words.

Where Go leaves an order to chance (maps, and sorting of equals), the twin goes by name.
"""
