"""The audit: free capacity that pods can use, free capacity that pods cannot use, and the results of other modes.

Belongs here: ``reasons`` says why capacity of a node is stranded, ``barriers`` names taints and labels
that keep typical pods off, ``prices`` gives capacity a price, ``again`` places the same pods again, and ``comparison``
compares the result with the present. ``findings`` joins all this with the figures of ``measure`` into plain values.
``table`` and ``page`` show these values, with sentences from ``words``. ``unread`` lists the objects with mistakes.
``command`` is ``evenkeel audit`` without its flags. Does not belong
here: reading files or a cluster (``cli``), and a second way to place pods.
"""
