"""What a cluster cannot use: stranded resources per node, their price, and how other modes would do.

Belongs here: ``reasons`` puts the figures of ``measure`` into words, ``prices`` into money, ``replay`` places
the same pods again; ``findings`` joins them into plain values, and ``table`` and ``page`` show these;
``command`` is ``evenkeel audit`` without its flags. Does not belong here: reading files or a cluster, which
the rooms beside this one do, and a second way to place pods.
"""
