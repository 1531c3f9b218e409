"""SHELL: moves running pods by RebalancePolicies, in a process of its own.

Belongs here: when a plan is due, what a policy lets move, the moves of a plan one after the other, and the statuses of the
policies. Does not belong here: what a policy says (``api/rebalancing``), which moves are worth it (``defrag``), and how a plan
is made of a cluster (``plan``).
"""
