"""Preemption: which pods a pod may evict, and the room that is reserved for pods whose victims are leaving.

Belongs here: room reserved on nodes (``promised``), the possible victims on each node for a kind of pods (``hunts``),
and the decision for one pod (``attempts``). Does not belong here: the evictions themselves (``kube``, ``simulate``).
"""
