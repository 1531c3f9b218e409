"""What Prometheus reads from one replica.

Belongs here: ``catalogue`` has every metric with its labels, ``families`` makes samples of them; ``counting`` keeps
events, ``tally`` feeds it with what happens to pods, ``reading`` reads the present state of the replica, ``devices``
the present state of the nodes' devices, ``stranded`` measures free capacity that pods cannot use, and ``namespaces``
has what each namespace holds and waits for; ``exposition`` joins them into a text. Does not belong here: anything that
decides, and labels whose values a tenant may choose.
"""
