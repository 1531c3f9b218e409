"""What a cluster cannot use: stranded resources per node, their price, and how other modes would do.

Belongs here: ``typical`` picks the pods to judge by, ``measure`` the figures of every node, ``reasons`` the
words, ``prices`` the money, ``replay`` the same pods placed again; ``findings`` joins them into plain
values, and ``table`` and ``page`` show these; ``command`` is ``evenkeel audit`` without its flags. Does not
belong here: reading files or a cluster, which the rooms beside this one do, and a second way to place
pods.
"""
