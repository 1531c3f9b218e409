"""Writing decisions: turns before nodes, locks, binds, and the fence around binds whose fate nobody knows.

A decision goes from ``binder`` through ``turns`` (a pure state machine, drawn in ``moves``) to a worker of
the ``crew``, which takes the ``steps`` before the bind (today the ``node_lock``) and then the ``binding``.
"""
