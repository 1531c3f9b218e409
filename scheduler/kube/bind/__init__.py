"""Writes decisions: turns before nodes, locks, binds, and the fence around binds whose fate is not known.

A decision becomes a job of ``binder``, which a worker of the ``crew`` carries out: it takes the ``steps`` before the
bind (the rows are in ``volumes`` and ``node_lock``) and then the ``binding``. Jobs for a node whose device plugin serves
one pod at a time go through ``turns``, a pure state machine, drawn in ``moves``.
"""
