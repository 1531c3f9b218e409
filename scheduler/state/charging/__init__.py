"""One ledger of what each pod takes of nodes and cards.

Belongs here: charges compiled once per template, the part of a claim that counts, the rows of pods that have a node,
the only calls that change totals, and the roster that keeps them in step with pods' records. Does not belong
here: when a pod is charged (``state/cluster.py``).
"""
