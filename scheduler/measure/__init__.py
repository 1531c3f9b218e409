"""What a cluster cannot use: how much of each node is used, free and stranded, judged by the pods it is asked for.

Belongs here: ``typical`` picks the pods to judge by, ``cards`` lays the devices out as columns, ``figures``
are those of every node. Both ``audit`` and the metrics of ``kube`` read them, so they say the same; ``replay``
counts extended resources too, and reads the cards. Does not belong here: words, money, and placing the same
pods again, which ``audit`` does.
"""
