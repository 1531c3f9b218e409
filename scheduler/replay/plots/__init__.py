"""Pictures of a replay: allocation and fragments as lines, and the cluster at the end, node by node.

Belongs here: ``picture`` draws the whole, ``lines`` and ``cluster`` draw its parts, ``look`` has their colours. Does
not belong here: figures, see ``measures``.

Colours are Okabe and Ito's, which colour-blind readers can distinguish, and every line also has its own dashes.
Shares use cividis, which grows darker evenly for all readers: idle parts are bright.
"""
