"""A pod or a node explained, as plain values: the form of ``-o json``.

Belongs here: why a pod waits or why it runs on its node, what a node has and which pods wait for it, as rows and
sentences. All trials are undone. Does not belong here: finding the object that a user means, and the text for a terminal.
"""
