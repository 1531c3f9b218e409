"""What rules about other pods count: pods by what is said of them, host ports, terms that pods have, selectors.

Belongs here: counts by node row that somebody looks at, kept up as pods come and go. Does not belong here: what a
count means for a pod (``plugins``), and totals of nodes (``charging``).
"""
