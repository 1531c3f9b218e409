"""RebalancePolicies: who may be moved, how many, and at what hours.

Belongs here: the objects and their reading, and the hours that they name. Does not belong here: which pods are moved, which
``defrag`` finds, and the moving, which ``rebalance`` does.
"""
