"""The present pods placed again: what stays, what other modes do with the rest, and what follows from it.

Belongs here: ``staying`` says which pods are not placed again, and why; ``replay`` places the others in one
order with one mode; ``orders`` does so in several orders; ``advice`` is what the comparison comes to.
Does not belong here: a second way to place pods, for the engine does it.
"""
