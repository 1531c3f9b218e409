"""Structures that know nothing of clusters: numbers for words, runs of rows, logs of changes, bounded caches.

Belongs here: parts of tables and caches. Does not belong here: anything that knows of nodes or pods.
"""
