"""Evictions and nominations as the API server has to be told of them.

Belongs here: the requests by which pods make room for one of higher priority, in their order, and by which a pod's
nomination is written. Does not belong here: who goes for whom, which the engine decides.
"""
