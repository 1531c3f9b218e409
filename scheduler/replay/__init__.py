"""SHELL: the same core over traces of real clusters, in virtual time.

Belongs here: ``traces`` read (line by line in ``reading``) into the words of ``experiment``, ``demand``, which
is what they ask and of what there is the least for it, ``workloads`` drawn from them, ``run``, which plays
one, and ``objects``, what the engine sees of it, ``fan_out``, which plays many, ``measures`` of what came of
it, ``results`` and ``plots``, and the ``command``. Does not belong here: manifests (``simulate``), a queue or
a cycle of its own.
"""
