"""What Prometheus reads of one replica.

Belongs here: ``catalogue`` has every metric with its labels, ``families`` makes samples of them; ``counting`` keeps
what happens, ``tally`` tells it of pods, ``reading`` reads what is so at the moment, ``devices`` the nodes' devices
``stranded`` the devices' free capacity that pods cannot use, and ``namespaces`` what each namespace holds and waits for; ``exposition`` joins them into a text. Does not belong here: anything that
decides, and labels with words that a tenant may write.
"""
