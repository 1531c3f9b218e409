"""Places the present pods, and more pods like them, with each mode, and compares the results.

Belongs here: ``staying`` says which pods are not placed again, and why; ``replay`` places pods in one order with
one mode; ``orders`` places the other pods again in several orders; ``filling`` fills up the cluster from its present
state; ``advice`` compares the modes. Does not belong here: a second way to place pods; the engine places them.
"""
