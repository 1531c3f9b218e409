"""Who takes what of nodes and cards, and the one ledger in which it is written.

Belongs here: charges compiled once per template, what counts of a claim, the rows of pods that have a node,
the only calls that change totals, and the roster that keeps them in step with pods' records. Does not belong
here: when a pod is charged (``state/cluster.py``).
"""
