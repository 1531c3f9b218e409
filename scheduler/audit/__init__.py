"""What a cluster could use and does not, what it cannot use, and how other modes would do.

Belongs here: ``reasons`` says why a node strands what it strands, ``prices`` holds the money, ``again`` places
the same pods again, and ``comparison`` sets that beside the present; ``findings`` joins all with the figures
of ``measure`` into plain values. ``words`` are the sentences of ``table`` and ``page``, which show these;
``unread`` are the objects with mistakes; ``command`` is ``evenkeel audit`` without its flags. Does
not belong here: reading files or a cluster, which the rooms beside this one do, and a second way to
place pods.
"""
