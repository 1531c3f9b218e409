"""SHELL: explains why a pod waits or is on its node, and what is on a node. The engine's state stays unchanged.

Belongs here: finding the pod or node, asking the engine about it, and the text. Does not belong here: the reasons
(``telling``), and reading objects (``simulate``).
"""
