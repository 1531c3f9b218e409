"""Evictions and nominations as requests to the API server.

Belongs here: the requests that evict pods for a pod of higher priority, in their order, and the request that writes
a pod's nomination; and ``moves``, by which commands move a pod that its controller makes again, where possible
with its successor first (``surge``). Does not belong here: the choice of the victims, which the engine makes.
"""
