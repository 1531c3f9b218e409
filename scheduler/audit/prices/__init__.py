"""Prices: what a month of each resource costs, so that all of it can be told in one figure.

Belongs here: ``prices.yaml`` is the list that comes with Evenkeel, which says where each price is from and of
what day it is; ``book`` reads it, a user's own list and the flags; ``rates`` turns it into dollars per
unit of every node. Does not belong here: what is counted, which is the measure's.
"""
