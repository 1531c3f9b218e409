"""The cycle: decides for entities one after another; pure, synchronous, one thread.

Belongs here: the recipe, which is to place an entity, or else to find victims that make room for it (``schedule``), and
the answers to questions about pods (``asking``). Does not belong here: how nodes are judged (``shapes``), how a pod is
placed (``placing``), which pods are evicted (``disruption``), carrying anything out, clocks, words for users.
"""
