"""What each mode makes of the present pods and of more like them, and what follows from it.

Belongs here: ``staying`` says which pods are not placed again, and why; ``replay`` places pods in one order with
one mode; ``orders`` places the others anew in several orders; ``filling`` fills the cluster up from where it is;
``advice`` is what the comparison comes to.
Does not belong here: a second way to place pods, for the engine does it.
"""
