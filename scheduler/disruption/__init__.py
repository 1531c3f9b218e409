"""Who may go for whom, and at what cost: which pods a pod may evict, and the room that is promised to it then.

- ``protectors``: the table of what protects pods on nodes.
- ``units``: who may go from a place, as columns.
- ``importance``: how important pods are, for those who advise which pods to end.
- ``gains``: what the going of each would change in counts of domains.
- ``promises``, ``reserved``: the room that is promised to pods for whom others go.
- ``hunts``: the cheapest set of units on each node, for a kind of pods.
- ``attempts``: the decision for one pod.

No other room decides by priority which running pods may go. Does not belong here: placing, and the evictions themselves
(``kube``, ``simulate``).
"""
