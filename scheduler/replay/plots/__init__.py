"""Pictures of a replay: allocation and fragments as lines, and the cluster at the end, node by node.

Belongs here: ``picture`` is the whole, ``lines`` and ``cluster`` are its parts, ``look`` their colours. Does
not belong here: figures, see ``measures``.

Colours are Okabe and Ito's, which colour-blind readers can distinguish, and every line has its own dashes
besides; shares use cividis, which grows darker evenly for every kind of sight: what lies idle shines.
"""
