"""KAI's queues: what belongs to each, what its pods hold, its fair share, and what its pods may take from others.

Pods wait and run in these queues themselves; there are no workloads as in Kueue's. Belongs here: the tree and its figures,
fair shares, the order of queues, and the rules of quotas, of reclaiming and of protection. Does not belong here: which
pods go from which node (disruption).
"""
