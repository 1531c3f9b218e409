"""Counts for rules about other pods: pods that selectors select, host ports, and the terms of pods on nodes.

Belongs here: counts by node row that are in use, kept up as pods come and go. Does not belong here: what a
count means for a pod (``plugins``), and totals of nodes (``charging``).
"""
