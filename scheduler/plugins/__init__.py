"""Rules: why a node does not fit a pod, and why one node is better than another.

Belongs here: one file for each rule, which makes one value of ``contract.Rule``; a rule that kube-scheduler has too has
kube-scheduler's name. ``table.RULES`` is the only place that lists all rules; no other module names a rule. Does not
belong here: arithmetic that changes with every placement (``kernels``), clients, clocks.
"""
