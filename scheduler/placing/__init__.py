"""Pods on nodes: how kernels are called that place pods.

Belongs here: where kernels write how they placed pods (``rooms``), runs of like pods (``runs``), and several pods in one
trial (``together``). Does not belong here: who has to go, and the room that is promised to pods for whom others go.
"""
