"""A pod's spec and annotations as plain values: its requests, its wishes for nodes and cards, its affinity to pods.

Belongs here: one file for each part of a pod, ``templates`` for all parts together, and the limits that are checked
before a pod is decoded (``bounded``). Does not belong here: formats that other objects share (``api``), and decisions
by these values (``plugins``, ``state``).
"""
