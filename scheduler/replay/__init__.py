"""SHELL: the same core over traces of real clusters, in virtual time.

Belongs here: ``traces`` read into the words of ``experiment``, ``workloads`` drawn from them, ``run`` that
plays one and ``fan_out`` that plays many, ``measures`` of what came of it, ``results`` and ``plots``, and
the ``command``. Does not belong here: manifests (``simulate``), a queue or a cycle of its own.
"""
