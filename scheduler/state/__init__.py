"""The cluster as numbers: which pod runs on which node, what is free, and what has changed.

Belongs here: node rows, the card table, pods and their charges, trials, interned names, and the
checks that recompute every total. Written by the loop task only (``kube`` or ``simulate``), through
``cluster.Cluster``. Does not belong here: what should happen next (``cycle``).
"""
