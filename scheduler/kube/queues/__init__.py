"""Kueue's queues on a real cluster: decisions about quota are written here, and the statuses of queues.

No quota is chosen here: the engine does it. Nothing of this room exists where queues are not managed.
"""
