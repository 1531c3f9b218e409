"""Changes that would let a waiting pod run, and the node that comes closest; each change is tried on the cluster.

Belongs here: changes of the pod, of the pods on nodes and of the nodes, each tried by the cycle and undone; the
node that comes closest, and what this node lacks. Does not belong here: a second way to evaluate a node, and
sentences.
"""
