"""What would let a pod in that waits, and how far it is from that: every answer is tried on the cluster as it is.

Belongs here: changes of a pod's words, of what is on nodes and of nodes, each asked of the cycle and undone; the
node that comes closest, and what it lacks. Does not belong here: a second way to judge a node, and sentences.
"""
