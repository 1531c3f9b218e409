"""Pods on nodes: placing them, and the room that is promised to pods whose victims are leaving.

Belongs here: where kernels write how they placed pods (``rooms``), runs of like pods (``runs``), several pods in one
trial (``together``), and promised room (``promised``, ``reserved``). Does not belong here: who has to go.
"""
