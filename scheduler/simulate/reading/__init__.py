"""Reads manifests from files and clusters into typed objects, each once, with what admission would have filled in.

Belongs here: files, kinds, the form of objects and their mistakes. Does not belong here: what follows from objects,
such as the pods of workloads.
"""
