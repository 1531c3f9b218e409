"""What rules about storage share: what they need of a pod, and which node its claims could be bound on.

Belongs here: judging nodes by storage, as arrays by node row. Does not belong here: the objects themselves and what
is used of them (``state/volumes``), and the reasons that people are told (``rules``).
"""
