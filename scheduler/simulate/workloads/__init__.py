"""Workloads stand for the pods that their controllers would make of them.

Belongs here: what each controller of Kubernetes makes, with its names, labels and owners, and how much of it
is there already. Does not belong here: where the pods go.
"""
