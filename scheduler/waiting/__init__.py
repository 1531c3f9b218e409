"""Waiting entities: who may be tried, their order, backoff, parking, and which of them a change could help.

Belongs here: everything about pods that have no node yet, except finding a node (``cycle``).
"""
