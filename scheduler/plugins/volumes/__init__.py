"""What rules about storage share: what they read about a pod, and the nodes on which its claims could be bound.

Belongs here: evaluating nodes by storage, as arrays by node row. Does not belong here: the storage objects and their
use (``state/volumes``), and the reasons that users read (``rules``).
"""
