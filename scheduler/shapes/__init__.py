"""Shapes of pods, and for each shape the nodes it fits on and their scores.

Belongs here: what decides where a pod goes (``keys``, ``policies``, ``views``), boards that follow the changes of nodes
(``boards``, ``statics``, ``counted``), decisions for kinds of pods that come for the first time (``cold``), and why a
shape fits nowhere (``diagnosis``). Does not belong here: changes of the cluster.
"""
