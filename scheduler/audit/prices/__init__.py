"""Prices of each resource for a month, so that one figure can sum up all resources.

Belongs here: ``prices.yaml`` is the packaged list, with the source and the date of each price; ``book`` reads
this list, a user's own list and the flags; ``rates`` turns them into dollars per unit of every node. Does not
belong here: how much there is of each resource (``measure``).
"""
