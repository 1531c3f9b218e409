"""Manifests: from files and clusters to typed objects, each once, with what admission would have filled in.

Belongs here: files, kinds, the form of objects and what is wrong with them. Does not belong here: what becomes of
them, such as the pods of workloads.
"""
