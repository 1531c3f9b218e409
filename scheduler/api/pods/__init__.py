"""A pod's spec and annotations, read into plain values: its requests, its nodes and cards, and its affinity to pods.

Belongs here: one file for each part of a pod, ``templates`` for all parts together, and the limits that are checked
before a pod is decoded (``bounded``). Does not belong here: formats that other objects share (``api``), and what
follows from the values (``plugins``, ``state``).
"""
