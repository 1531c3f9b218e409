"""Pods on nodes: where kernels write how they placed pods (``rooms``), and runs of like pods (``runs``).

Does not belong here: who has to go, and the room that is promised to pods for whom others go.
"""
