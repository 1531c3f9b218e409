"""SHELL: explains why a pod waits or why it is on its node, and what is on a node. The engine's state stays unchanged.

Belongs here: finding the pod or node, plain values for ``-o json``, and the text. Does not belong here: evaluating
nodes (``cycle``), and reading objects (``simulate``).
"""
