"""A pod or a node explained, as plain values: the form of ``-o json``.

Belongs here: why a pod waits or runs where it runs, what a node has and who waits for it, as rows and sentences. What
is tried is undone. Does not belong here: finding what a user means, and the text for a terminal.
"""
