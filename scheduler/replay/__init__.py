"""SHELL: the same core over traces of real clusters, in virtual time.

Belongs here: ``traces`` reads a trace (line by line in ``reading``) into the types of ``experiment``; ``demand`` is
what its pods request, and which resource is the scarcest; ``workloads`` draws arrivals from the trace; ``run``
plays one workload, ``objects`` are the nodes and pods that the engine sees, ``fan_out`` plays many workloads;
``measures`` makes figures of the runs, ``headings`` names them, ``results`` and ``plots`` show them; ``command`` is
``evenkeel replay``. Does not belong here: manifests (``simulate``), a queue or a cycle of its own.
"""
