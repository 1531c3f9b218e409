"""What a pod says, read into plain values: what it asks, of which nodes and cards, and near which other pods.

Belongs here: one file for each part of a pod's words, ``templates`` of them all, and the bounds that a pod keeps
before it is decoded (``bounded``). Does not belong here: words that others share (``api``), and what follows from
them (``plugins``, ``state``).
"""
