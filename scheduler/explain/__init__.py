"""SHELL: why a pod waits or went where it went, and what is on a node: the engine, asked and left as it was.

Belongs here: finding the pod or node, plain values for ``-o json``, and the text. Does not belong here: judging, which
the cycle does, and reading objects, which simulate does.
"""
