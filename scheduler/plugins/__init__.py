"""Rules: why a node will not do for a pod, and why one is better than another.

Belongs here: one file per rule, named after kube-scheduler's where it has it, that makes one value of
``contract.Rule``; and ``table.RULES``, the only place that lists them all. Nobody else names a rule. Does not
belong here: arithmetic that changes with every placement (``kernels``), clients, clocks.
"""
