"""Structures that know nothing of clusters: numbers for words, runs of rows, logs of changes, what was used last.

Belongs here: what a table or a cache is made of. Does not belong here: anything with a node or a pod in it.
"""
