"""Moves a pod of a Deployment by one more replica: the successor is ready before the pod goes.

Belongs here: which workloads allow that, the writes in their order, and putting right what a process left that ended in the
midst of them. Does not belong here: the move by an eviction, which ``moves`` does where a workload does not allow this.
"""
