"""Preemption: whose place a pod may take, and the room that is promised to those that wait for it.

Belongs here: what is promised on nodes (``promised``), whom each node could spare for a kind of pods (``hunts``),
and the decision for one pod (``attempts``). Does not belong here: evicting anybody, which a shell does.
"""
