"""How much of each node is used, free and stranded. Stranded capacity is free, but typical pods cannot use it.

Belongs here: ``typical`` picks the typical pods, ``cards`` lays out the devices as columns, ``figures`` computes the
figures of every node, ``shares`` divides the used capacity among pods. Both ``audit`` and the metrics of ``kube`` read
these figures, so both report the same; ``replay`` counts extended resources too, and reads the cards. Does not belong
here: words, prices, and placing the same pods again (``audit``).
"""
