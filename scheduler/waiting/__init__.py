"""Waiting entities: which may be tried, their order, their backoff, and which of them a change could help.

Belongs here: everything about pods that have no node yet, except finding a node (``cycle``).
"""
