"""Whole operators on virtual time: a seed decides every delay, fault and order of steps.

What belongs here: the time and the turns of processes (``clock``), watches on the API server of tests/model
(``watches``), the way to it that delays, refuses and loses (``network``), what else lives in
a cluster (``world``), and one operator wired as the product wires it (``replica``). What does not:
sockets, threads, and claims about one part alone; those stand in tests/unit.
"""
