"""Who may go for whom, and at what cost: which pods a pod may evict.

Belongs here: the possible victims on each node for a kind of pods (``hunts``), what the going of each would change in
counts of domains (``gains``), and the decision for one pod (``attempts``). Does not belong here: placing, and the
evictions themselves (``kube``, ``simulate``).
"""
