"""The cycle: decides for entities one after another; pure, synchronous, one thread.

Belongs here: the recipe, which is to place an entity, or else to find room that others make (``schedule``), and the
answers for those who only ask (``asking``). Does not belong here: how nodes are judged (``shapes``), how a pod is placed
(``placing``), who has to go (``disruption``), carrying anything out, clocks, words for users.
"""
