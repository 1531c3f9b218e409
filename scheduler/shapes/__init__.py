"""What fits where, and how well: shapes of pods and what is known of each on every node.

Belongs here: what decides where a pod goes (``keys``, ``policies``, ``views``), boards that are kept up with the nodes
(``boards``, ``statics``, ``counted``), nodes for kinds of pods that come for the first time (``cold``), and why nothing
fits (``diagnosis``). Does not belong here: changes of the cluster.
"""
