"""Pods of a kind that was not seen before: the same node as scoring them all would find, and nothing is kept.

Belongs here: what makes that fast. Nodes that are alike are one entry (``classes``), what no pod changes is
known beforehand (``known``), bounds come first (``bounds``), and only what can still win is scored
(``choose``). Does not belong here: scores.
"""
