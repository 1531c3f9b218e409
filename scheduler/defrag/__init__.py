"""Finds which running pods to move so that cards and nodes become whole, or so that a waiting pod finds room.

Belongs here: what is whole and what is broken (``whole``), which pods may be moved (``movable``), which sets of pods are
worth a try (``sets``), the try of one set on the cluster itself (``trying``), and the choice among tries (``planning``).
Does not belong here: who makes pods anew, which objects say (the shell tells), and to carry a plan out.
"""
